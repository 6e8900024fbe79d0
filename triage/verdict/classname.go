package verdict

import (
	"strings"

	"dumptriage/triage/crash"
)

// accessSuffixes are what signatures add to "AV_READ" and the like. Classes that
// depend on whether the dump has a list of memory, or on what a stray pointer
// happened to hold, add nothing: one fault would have several buckets.
var accessSuffixes = map[crash.Class]string{
	crash.NullPointer:     "_NULL",
	crash.UseAfterFree:    "_FREED",
	crash.Uninitialized:   "_UNINITIALIZED",
	crash.OutOfBounds:     "_OUT_OF_BOUNDS",
	crash.UnloadedModule:  "_UNLOADED",
	crash.NonCanonical:    "",
	crash.WildPointer:     "",
	crash.ExecuteData:     "",
	crash.WriteReadOnly:   "",
	crash.KernelAddress:   "",
	crash.GuardPage:       "",
	crash.MisalignedData:  "",
	crash.AccessViolation: "",
}

// byCode marks the classes that the exception's own code names better.
const byCode = ""

// classNames are what signatures call crashes that are no failed accesses,
// whatever code they ended with: abort has half a dozen.
var classNames = map[crash.Class]string{
	crash.StackOverflow:         "STACK_OVERFLOW",
	crash.HeapCorruption:        "HEAP_CORRUPTION",
	crash.StackCookie:           "STACK_COOKIE",
	crash.ControlFlowGuard:      "CONTROL_FLOW_GUARD",
	crash.CorruptList:           "CORRUPT_LIST",
	crash.OutOfBounds:           "OUT_OF_BOUNDS",
	crash.InvalidParameter:      "INVALID_PARAMETER",
	crash.Abort:                 "ABORT",
	crash.Assertion:             "ASSERTION",
	crash.PureCall:              "PURE_VIRTUAL_CALL",
	crash.Terminate:             "TERMINATE",
	crash.OutOfMemory:           "OUT_OF_MEMORY",
	crash.CxxException:          "CPP_EXCEPTION",
	crash.CLRException:          "CLR_EXCEPTION",
	crash.DelayLoad:             "DELAY_LOAD",
	crash.LoaderFailure:         "LOADER_FAILURE",
	crash.InvalidHandle:         "INVALID_HANDLE",
	crash.Deliberate:            "DELIBERATE_CRASH",
	crash.DivideByZero:          "INT_DIVIDE_BY_ZERO",
	crash.ArithmeticOverflow:    "INT_OVERFLOW",
	crash.IllegalInstruction:    "ILLEGAL_INSTRUCTION",
	crash.PrivilegedInstruction: "PRIVILEGED_INSTRUCTION",
	crash.Breakpoint:            "BREAKPOINT",
	crash.SingleStep:            "SINGLE_STEP",
	crash.InPageError:           "IN_PAGE_ERROR",
	crash.FailFast:              byCode, // FASTFAIL_5
	crash.FloatingPoint:         byCode,
	crash.LanguageException:     byCode,
	crash.RaisedException:       byCode,
	crash.StatusRaised:          byCode,
	crash.BadHandler:            byCode,
	crash.HangReported:          byCode,
	crash.DebuggerBreak:         byCode, // no fault: a snapshot
	crash.DumpRequested:         byCode,
	crash.Unknown:               byCode,
}

var accessNames = map[crash.Access]string{crash.Read: "AV_READ", crash.Write: "AV_WRITE", crash.Execute: "AV_EXEC", "": "AV"}

const codeAccessViolation = 0xc0000005

// className is what a signature calls a crash, "" when the exception's code says
// it best. A class of a user's own rules is called what it is.
func className(v *crash.Verdict, code uint32) string {
	if suffix, ok := accessSuffixes[v.Class]; ok && code == codeAccessViolation {
		return accessNames[v.Access] + suffix
	}
	if _, access := accessSuffixes[v.Class]; access && v.Class != crash.OutOfBounds {
		return byCode // of a code of its own, such as a guard page's
	}
	if name, ok := classNames[v.Class]; ok {
		return name
	}
	return strings.ToUpper(string(v.Class))
}
