package codes

import (
	"slices"
	"testing"
)

// Values are those of the public headers and documentation pages.
func TestException(t *testing.T) {
	for code, want := range map[uint32]string{
		0xc0000005: "EXCEPTION_ACCESS_VIOLATION",
		0xc0000006: "EXCEPTION_IN_PAGE_ERROR",
		0xc00000fd: "EXCEPTION_STACK_OVERFLOW",
		0xc0000409: "EXCEPTION_STACK_BUFFER_OVERRUN",
		0xc0000374: "STATUS_HEAP_CORRUPTION",
		0xc000000d: "STATUS_INVALID_PARAMETER",
		0xc0000420: "STATUS_ASSERTION_FAILURE",
		0xc0000602: "STATUS_FAIL_FAST_EXCEPTION",
		0xc0000135: "STATUS_DLL_NOT_FOUND",
		0xc000013a: "STATUS_CONTROL_C_EXIT",
		0x80000003: "EXCEPTION_BREAKPOINT",
		0x80000004: "EXCEPTION_SINGLE_STEP",
		0x4000001f: "STATUS_WX86_BREAKPOINT",
		0x40000015: "STATUS_FATAL_APP_EXIT",
		0x40010005: "DBG_CONTROL_C",
		0x40010006: "DBG_PRINTEXCEPTION_C",
		0xe06d7363: "Unhandled C++ Exception",
		0xe0434352: "CLR_EXCEPTION",
		0xe0434f4d: "COMPLUS_EXCEPTION",
		0x0eedfade: "DELPHI_EXCEPTION",
		0x20474343: "STATUS_GCC_THROW",
		0x406d1388: "MS_VC_EXCEPTION",
		0xe0001234: "", // raised by a program: no name of its own
		0:          "",
		0xffffffff: "",
	} {
		if got := Exception(code); got != want {
			t.Errorf("Exception(%#x) = %q, want %q", code, got, want)
		}
	}
	if got := NTStatus(0xc0000005); got != "STATUS_ACCESS_VIOLATION" {
		t.Errorf("NTStatus(0xc0000005) = %q", got)
	}
}

func TestWin32Error(t *testing.T) {
	for code, want := range map[uint32]string{0: "ERROR_SUCCESS", 2: "ERROR_FILE_NOT_FOUND", 5: "ERROR_ACCESS_DENIED", 0xb7: "ERROR_ALREADY_EXISTS",
		1450: "ERROR_NO_SYSTEM_RESOURCES", 1722: "RPC_S_SERVER_UNAVAILABLE", 10054: "WSAECONNRESET", 0xc0000005: "STATUS_ACCESS_VIOLATION", 15: "ERROR_INVALID_DRIVE", 0xe0001234: ""} {
		if got := Win32Error(code); got != want {
			t.Errorf("Win32Error(%d) = %q, want %q", code, got, want)
		}
	}
}

func TestFastFail(t *testing.T) {
	for sub, want := range map[uint32]string{
		0: "FAST_FAIL_LEGACY_GS_VIOLATION", 2: "FAST_FAIL_STACK_COOKIE_CHECK_FAILURE", 3: "FAST_FAIL_CORRUPT_LIST_ENTRY",
		7: "FAST_FAIL_FATAL_APP_EXIT", 10: "FAST_FAIL_GUARD_ICALL_CHECK_FAILURE", 65: "FAST_FAIL_CAST_GUARD",
		71: "FAST_FAIL_ASAN_ERROR", 15: "", 0xffffffff: "FAST_FAIL_INVALID_FAST_FAIL_CODE",
	} {
		if got := FastFail(sub); got != want {
			t.Errorf("FastFail(%d) = %q, want %q", sub, got, want)
		}
	}
}

func TestBugCheck(t *testing.T) {
	for code, want := range map[uint32]struct {
		name string
		live bool
	}{
		0x0a:       {"IRQL_NOT_LESS_OR_EQUAL", false},
		0x4a:       {"IRQL_GT_ZERO_AT_SYSTEM_SERVICE", false},
		0x7e:       {"SYSTEM_THREAD_EXCEPTION_NOT_HANDLED", false},
		0x1000007e: {"SYSTEM_THREAD_EXCEPTION_NOT_HANDLED", false}, // the minidump bit
		0x133:      {"DPC_WATCHDOG_VIOLATION", false},
		0x161:      {"LIVE_SYSTEM_DUMP", true},
		0x193:      {"VIDEO_DXGKRNL_LIVEDUMP", true},
		0x1cc:      {"EXRESOURCE_TIMEOUT_LIVEDUMP", true},
		0x144:      {"BUGCODE_USB3_DRIVER", false}, // used for both
		0xdeaddead: {"MANUALLY_INITIATED_CRASH1", false},
		0xc000021a: {"STATUS_SYSTEM_PROCESS_TERMINATED", false},
		0x7777:     {"", false},
		0x10007777: {"", false},
	} {
		name, _, live := BugCheck(code)
		if name != want.name || live != want.live {
			t.Errorf("BugCheck(%#x) = %q, live %v; want %q, %v", code, name, live, want.name, want.live)
		}
	}
	_, p, _ := BugCheck(0x1000008e)
	if p[2] != "trap frame" || p[3] != "reserved" {
		t.Errorf("parameters of 0x8e: %q", p)
	}
}

// State 5 and reason 0 are what the debugger calls WAIT (Executive).
func TestThreadStates(t *testing.T) {
	if ThreadState(5) != "Waiting" || ThreadState(2) != "Running" || ThreadState(0xff) != "" {
		t.Error("thread states", ThreadState(5), ThreadState(2), ThreadState(0xff))
	}
	if IRPMajor(3) != "IRP_MJ_READ" || IRPMajor(0xe) != "IRP_MJ_DEVICE_CONTROL" || IRPMajor(0x1b) != "IRP_MJ_PNP" || IRPMajor(0x1c) != "" { // wdm.h
		t.Error("IRP major functions", IRPMajor(3), IRPMajor(0xe), IRPMajor(0x1b))
	}
	if WaitReason(0) != "Executive" || WaitReason(6) != "UserRequest" || WaitReason(15) != "WrQueue" || WaitReason(37) != "WrAlertByThreadId" || WaitReason(99) != "" {
		t.Error("wait reasons", WaitReason(0), WaitReason(6), WaitReason(15), WaitReason(37), WaitReason(99))
	}
}

func BenchmarkException(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if Exception(0xc0000374) == "" {
			b.Fatal("unknown")
		}
	}
}

// The parameters' meaning as the pages of the reference give it.
func TestBugCheckParams(t *testing.T) {
	p, unverified := BugCheckParams(0x9f, [4]uint64{3, 1, 2, 3})
	if p[0].Kind != KindSub || p[1] != (Param{"physical device object", KindDevice}) || p[3].Kind != KindIRP || unverified {
		t.Errorf("0x9f, 3: %+v, unverified %v", p, unverified)
	}
	if p, _ = BugCheckParams(0x9f, [4]uint64{4}); p[1].Kind != KindDecimal || p[2].Kind != KindThread {
		t.Errorf("0x9f, 4: %+v", p)
	}
	if p, _ = BugCheckParams(0x9f, [4]uint64{77}); p[1] != (Param{}) {
		t.Errorf("0x9f with a kind that nobody knows: %+v", p)
	}
	if p, _ = BugCheckParams(0x1000007e, [4]uint64{}); p[3] != (Param{"context record", KindContext}) {
		t.Errorf("0x7e: %+v", p)
	}
	if _, unverified = BugCheckParams(0xd4, [4]uint64{}); !unverified {
		t.Error("0xd4 is not marked as unverified")
	}
	if v, ok := BugCheckValueOf(0x109, 3, [4]uint64{3: 0x1c}); !ok || v.Text != "a driver object" {
		t.Errorf("0x109: %+v", v)
	}
	if v, ok := BugCheckValueOf(0x1a, 0, [4]uint64{0x41792}); !ok || v.Params[1].Kind != KindAddress {
		t.Errorf("0x1a: %+v", v)
	}
	// The page of 0x9F: parameter 3 is power down (1) or up (0) when parameter 1 is 6.
	if v, ok := BugCheckValueOf(0x9f, 2, [4]uint64{6, 0, 1, 0}); !ok || v.Text != "power down" {
		t.Errorf("0x9f, 6: %+v", v)
	}
	if v, ok := BugCheckValueOf(0x9f, 2, [4]uint64{5, 0, 1, 0}); ok {
		t.Errorf("0x9f, 5: %+v", v)
	}
	// The page of 0x1DA: with 4 and 6 parameter 2 is the operation, 2 of them an MSR write.
	if v, ok := BugCheckValueOf(0x1da, 1, [4]uint64{6, 2, 0, 0}); !ok || v.Text != "writing an MSR" {
		t.Errorf("0x1da, 6: %+v", v)
	}
	if p, _ = BugCheckParams(0x1da, [4]uint64{2}); p[1].Kind != KindDecimal || p[2].Meaning != "APIC id" {
		t.Errorf("0x1da, 2: %+v", p)
	}
	if p, _ = BugCheckParams(0x30, [4]uint64{}); p[2].Kind != KindTrap {
		t.Errorf("0x30: %+v", p)
	}
	if _, ok := BugCheckValueOf(0x1a, 7, [4]uint64{1}); ok {
		t.Error("a fifth parameter")
	}
}

func TestBugCheckTextOf(t *testing.T) {
	for code, want := range map[uint32]BugCheckClass{0x124: ClassHardware, 0x9c: ClassHardware, 0xef: ClassProcess, 0x1000007e: ClassDriver,
		0x161: ClassLive, 0x195: ClassLive, 0x7777: ClassOther, 2: ClassOther, 0xe2: ClassRequested} {
		if got := BugCheckTextOf(code, 0x77); got.Class != want {
			t.Errorf("%#x is %q, want %q", code, got.Class, want)
		}
	}
}

func TestSecondaryData(t *testing.T) {
	// {F57308DF-CC45-4E01-AD76-29A4EBB010EC} as it stands in a file.
	g := [16]byte{0xdf, 0x08, 0x73, 0xf5, 0x45, 0xcc, 0x01, 0x4e, 0xad, 0x76, 0x29, 0xa4, 0xeb, 0xb0, 0x10, 0xec}
	if name, holds := SecondaryData(g); name != "BlackBoxBSD" || holds == "" {
		t.Errorf("%q, %q", name, holds)
	}
	if name, _ := SecondaryData([16]byte{}); name != "" {
		t.Errorf("the zero GUID is %q", name)
	}
}

// What holds of the whole table of bugchecks: values are of parameters that it
// knows, and a parameter that tells kinds apart has kinds.
func TestBugCheckTableHolds(t *testing.T) {
	const documented = 286 // codes with parameters; more are welcome
	if n := len(bugCheckParams); n < documented {
		t.Errorf("%d codes have parameters, want %d", n, documented)
	}
	named := map[uint32]int{}           // bits of the parameters that have values
	conditional := map[[3]uint64]bool{} // code, value of the other parameter, parameter
	for key, v := range bugCheckValues {
		if name, _, _ := BugCheck(key.code); name == "" {
			t.Errorf("%#x has values and no name", key.code)
		}
		if v.Text == "" {
			t.Errorf("%#x, parameter %d: %#x means nothing", key.code, key.param+1, key.value)
		}
		var values [4]uint64
		values[key.param] = key.value
		if key.by > 0 {
			values[key.by-1] = key.of
			conditional[[3]uint64{uint64(key.code), key.of, uint64(key.param)}] = true
		} else {
			named[key.code] |= 1 << key.param
		}
		params, _ := BugCheckParams(key.code, values)
		p := params[key.param]
		if p == (Param{}) || key.by > 0 && p.Kind != KindValue {
			t.Errorf("%#x: parameter %d has values and no meaning", key.code, key.param+1)
		}
	}
	for key, v := range bugCheckValues {
		for i, p := range v.Params {
			if p.Kind == KindValue && i != int(key.param) && !conditional[[3]uint64{uint64(key.code), key.value, uint64(i)}] {
				t.Errorf("%#x, %#x: parameter %d is of kind %q, and none of its values is known", key.code, key.value, i+1, p.Kind)
			}
		}
	}
	for code, params := range bugCheckParams {
		for i, p := range params {
			if (p.Kind == KindSub || p.Kind == KindValue) && named[code]&(1<<i) == 0 {
				t.Errorf("%#x: parameter %d is of kind %q, and none of its values is known", code, i+1, p.Kind)
			}
			if p.Meaning == "reserved" && p.Kind != KindNumber {
				t.Errorf("%#x: parameter %d is reserved, of kind %q", code, i+1, p.Kind)
			}
		}
	}
	if n := len(bugCheckUnverified); n > 1 {
		t.Errorf("%d codes were not checked against their pages", n)
	}
}

// By corerror.h and rexcep.h of the runtime, as published.
func TestCLRExceptions(t *testing.T) {
	for hr, want := range map[uint32][]string{
		0x80131509: {"System.InvalidOperationException"},
		0x80131523: {"System.EntryPointNotFoundException"}, // and not 0x80131525,
		0x80131525: {"System.Threading.ThreadStartException"},
		0x80131577: {"System.Collections.Generic.KeyNotFoundException"},
		0x80131500: {"System.Exception"},
		0x80070002: {"System.IO.FileNotFoundException"},
		0x80004003: {"System.NullReferenceException", "System.ArgumentNullException", "System.AccessViolationException"},
		0x80131499: nil, 0: nil, 0xffffffff: nil,
	} {
		if got := CLRExceptions(hr); !slices.Equal(got, want) {
			t.Errorf("%#x: %q, want %q", hr, got, want)
		}
	}
}
