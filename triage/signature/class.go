package signature

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// classSnapshot is that of a dump of nothing in particular.
const classSnapshot = "SNAPSHOT"

// classStackOverflow is the class whose stacks are named by their recursion.
const classStackOverflow = "STACK_OVERFLOW"

// classes name exception codes in texts. They are this package's own and not
// those of a table that grows, since a code that got a name would move to
// another bucket. Codes that are not here are written in hexadecimal.
var classes = map[uint32]string{
	0x4000001f: "BREAKPOINT", // of 32-bit code
	0x4000001e: "SINGLE_STEP",
	0x40000015: "FATAL_APP_EXIT",
	0x80000001: "GUARD_PAGE",
	0x80000002: "DATATYPE_MISALIGNMENT",
	0x80000003: "BREAKPOINT",
	0x80000004: "SINGLE_STEP",
	0xc0000006: "IN_PAGE_ERROR",
	0xc0000008: "INVALID_HANDLE",
	0xc0000017: "NO_MEMORY",
	0xc000001d: "ILLEGAL_INSTRUCTION",
	0xc0000025: "NONCONTINUABLE_EXCEPTION",
	0xc0000026: "INVALID_DISPOSITION",
	0xc000008c: "ARRAY_BOUNDS_EXCEEDED",
	0xc000008d: "FLOAT_DENORMAL_OPERAND",
	0xc000008e: "FLOAT_DIVIDE_BY_ZERO",
	0xc000008f: "FLOAT_INEXACT_RESULT",
	0xc0000090: "FLOAT_INVALID_OPERATION",
	0xc0000091: "FLOAT_OVERFLOW",
	0xc0000092: "FLOAT_STACK_CHECK",
	0xc0000093: "FLOAT_UNDERFLOW",
	0xc0000094: "INT_DIVIDE_BY_ZERO",
	0xc0000095: "INT_OVERFLOW",
	0xc0000096: "PRIVILEGED_INSTRUCTION",
	0xc00000fd: classStackOverflow,
	0xc0000194: "POSSIBLE_DEADLOCK",
	0xc0000374: "HEAP_CORRUPTION",
	0xc0000417: "INVALID_CRT_PARAMETER",
	0xc000041d: "FATAL_USER_CALLBACK",
	0xc0000420: "ASSERTION_FAILURE",
	0xc0000602: "FAIL_FAST_EXCEPTION",
	0xe0434352: "CLR_EXCEPTION",
	0xe0434f4d: "CLR_EXCEPTION", // of .NET before 4
	0xe06d7363: "CPP_EXCEPTION", // Microsoft's
	0x20474343: "CPP_EXCEPTION", // GCC's
	0xe0000008: "NO_MEMORY",     // raised by Chromium
}

const (
	codeAccessViolation = 0xc0000005
	codeFastFail        = 0xc0000409
	nullPages           = 0x10000 // what Windows never maps at address 0
)

// classOf says what kind of incident this is and what it is about.
func classOf(inc *triage.Incident) (Kind, string) {
	switch {
	case inc.Crash != nil:
		return KindCrash, exceptionClass(&inc.Crash.Exception, inc.System.Arch)
	case inc.BugCheck == nil, inc.LiveCompanion():
		return KindSnapshot, classSnapshot // a kernel dump beside a user dump changes no name
	}
	code := inc.BugCheck.Code
	if !inc.BugCheck.Live && !liveCode(code) {
		return KindBugCheck, fmt.Sprintf("BUGCHECK_0x%X", code) + subcode(code, inc.BugCheck.Parameters)
	}
	kind := KindSnapshot
	if liveCode(code) && !ofPrograms[code] {
		kind = KindLiveDump
	}
	return kind, fmt.Sprintf("LIVE_0x%X", code) + subcode(code, inc.BugCheck.Parameters)
}

// subcodes are the bugchecks whose code stands for several failures that have no more in
// common than two codes, and the parameter, from 0, that tells them apart. They are this
// package's own for the same reason as classes.
var subcodes = map[uint32]int{
	0x19:  0, // BAD_POOL_HEADER
	0x1a:  0, // MEMORY_MANAGEMENT
	0x4e:  0, // PFN_LIST_CORRUPT
	0x7f:  0, // UNEXPECTED_KERNEL_MODE_TRAP
	0x9f:  0, // DRIVER_POWER_STATE_FAILURE
	0xa0:  0, // INTERNAL_POWER_ERROR
	0xc1:  3, // SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION
	0xc2:  0, // BAD_POOL_CALLER
	0xc4:  0, // DRIVER_VERIFIER_DETECTED_VIOLATION
	0xc9:  0, // DRIVER_VERIFIER_IOMANAGER_VIOLATION
	0xe6:  0, // DRIVER_VERIFIER_DMA_VIOLATION
	0xfe:  0, // BUGCODE_USB_DRIVER
	0x109: 3, // CRITICAL_STRUCTURE_CORRUPTION
	0x10d: 0, // WDF_VIOLATION
	0x10e: 0, // VIDEO_MEMORY_MANAGEMENT_INTERNAL
	0x119: 0, // VIDEO_SCHEDULER_INTERNAL_ERROR
	0x124: 0, // WHEA_UNCORRECTABLE_ERROR
	0x133: 0, // DPC_WATCHDOG_VIOLATION
	0x139: 0, // KERNEL_SECURITY_CHECK_FAILURE
	0x13a: 0, // KERNEL_MODE_HEAP_CORRUPTION
	0x144: 0, // BUGCODE_USB3_DRIVER
	0x15e: 0, // BUGCODE_NDIS_DRIVER_LIVE_DUMP
	0x18c: 0, // HYPERGUARD_VIOLATION
	0x1c4: 0, // DRIVER_VERIFIER_DETECTED_VIOLATION_LIVEDUMP
	0x1d3: 0, // WFP_INVALID_OPERATION
}

// maxSubcode is above all known ones: what is larger is an address or damage, another in
// each dump.
const maxSubcode = 1 << 20

// subcode is what a bugcheck's text has behind its code: "_8" for the double fault of 0x7F.
func subcode(code uint32, values [4]uint64) string {
	param, ok := subcodes[code]
	if !ok || values[param] >= maxSubcode {
		return ""
	}
	return fmt.Sprintf("_%X", values[param])
}

// liveCode reports whether a code is used for live dumps only.
func liveCode(code uint32) bool {
	_, _, live := codes.BugCheck(code)
	return live
}

// ofPrograms are the codes of live dumps that say nothing of the kernel: what they
// were asked for is in the programs' threads.
var ofPrograms = map[uint32]bool{
	0x161: true, // LIVE_SYSTEM_DUMP
	0x1f5: true, // APPLICATION_HANG_KERNEL_LIVEDUMP
}

func exceptionClass(e *dump.Exception, arch dump.Arch) string {
	switch e.Code {
	case codeAccessViolation:
		return accessClass(e, arch)
	case codeFastFail:
		if len(e.Parameters) > 0 {
			return fmt.Sprintf("FASTFAIL_%d", uint32(e.Parameters[0]))
		}
		return "FASTFAIL"
	}
	if c, ok := classes[e.Code]; ok {
		return c
	}
	return fmt.Sprintf("EXCEPTION_0x%08X", e.Code)
}

// accessClass tells reading, writing and executing apart, and whether it was
// about the first 64 KB.
func accessClass(e *dump.Exception, arch dump.Arch) string {
	class := "AV"
	if len(e.Parameters) == 0 {
		return class
	}
	switch e.Parameters[0] {
	case 0:
		class = "AV_READ"
	case 1:
		class = "AV_WRITE"
	case 8:
		class = "AV_EXEC"
	}
	if len(e.Parameters) > 1 && arch.Narrow(e.Parameters[1]) < nullPages {
		class += "_NULL"
	}
	return class
}

// Place names a frame in a signature by its module and, where that is known, its function.
// The frame must have a module.
func Place(f *triage.Frame) string {
	name := rules.Module(f.Module.Name())
	if f.Name.Function != "" {
		name += "!" + Normalize(f.Name.Function)
	}
	return name
}

// withBlame puts the module of the instruction at fault in front when registers
// prove it, else the driver that is blamed for what is not on the stack, else the one that
// the kernel named, unless a frame names it already.
func withBlame(frames []string, bc *triage.BugCheck, blamed string) []string {
	name := ""
	switch {
	case bc.Fault.Source != dump.ContextHeader && bc.Fault.At != nil && bc.Fault.At.Module != nil:
		name = Place(bc.Fault.At)
	case blamed != "":
		name = blamed
	case bc.BrokenDriver != "":
		name = rules.Module(bc.BrokenDriver)
	}
	module, _, _ := strings.Cut(name, "!")
	if module == "" {
		return frames
	}
	for _, f := range frames {
		if m, _ := splitName(f); m == module {
			return frames
		}
	}
	return append([]string{name}, frames...)
}
