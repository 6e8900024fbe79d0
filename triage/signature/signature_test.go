package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/managed"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

const av = 0xc0000005

// Each text is what somebody who knows the stack would call it.
func TestText(t *testing.T) {
	for name, c := range map[string]struct {
		inc  *triage.Incident
		want string
	}{
		"the first frame of the program ends the walk": {
			newScene(1<<32).crash(av, "app!parse+4\napp!load+20\napp!main+8\nkernel32!BaseThreadInitThunk\nntdll!RtlUserThreadStart", 0, 0x18),
			"AV_READ_NULL | app!parse"},
		"the system's frames lead to the program's": {
			newScene(1<<32).crash(av, "ntdll!RtlpAllocateHeap+8\nntdll!RtlAllocateHeap\nucrtbase!_malloc_base\napp!grow\napp!main", 1, 0xdddddddd0000),
			"AV_WRITE | ntdll!RtlpAllocateHeap | ntdll!RtlAllocateHeap | ucrtbase!_malloc_base | app!grow"},
		"a throw is named by who threw": {
			newScene(1<<32).crash(0xe06d7363, "kernelbase!RaiseException\nvcruntime140!_CxxThrowException\napp!check\napp!main"),
			"CPP_EXCEPTION | app!check"},
		"what reports an abort is not to blame, whatever it is": {
			newScene(1<<32).crash(0x80000003, "reporter!write_dump\nreporter!on_signal\nucrtbase!raise\nucrtbase!abort\napp!verify\napp!main"),
			"BREAKPOINT | app!verify"},
		"the outermost sentinel counts": {
			newScene(1<<32).crash(av, "app!filter\nntdll!RtlDispatchException\nntdll!KiUserExceptionDispatcher\napp!abort\napp!deep", 0, 8),
			"AV_READ_NULL | app!deep"},
		"a sentinel without anything below it does not count": {
			newScene(1<<32).crash(0xc0000409, "app!helper\nucrtbase!abort", 7),
			"FASTFAIL_7 | app!helper"},
		"guesses and the writer's frames take no part": {
			newScene(1<<32).crash(av, "ntdll!RtlFreeHeap\n?app!wrong\n~app!snap\napp!right", 0, 1<<40),
			"AV_READ | ntdll!RtlFreeHeap | app!right"},
		"frames without names count by their place in the image": {
			newScene(1<<32).crash(av, "app+1a2b\napp+44", 8, 0),
			"AV_EXEC_NULL | app+1a2b"},
		"a jump to nowhere is named by who jumped": {
			newScene(1<<32).crash(av, "@0\napp!call", 8, 0),
			"AV_EXEC_NULL | app!call"},
		"code made at run time stands once, before its caller": {
			newScene(1<<32).crash(av, "jit\njit\njit\napp!run", 0, 0),
			"AV_READ_NULL | [jit] | app!run"},
		"a program is named where no frame of it is": {
			newScene(1<<32).crash(0xc0000374, "ntdll!RtlpFreeHeap\nntdll!RtlFreeHeap\nntdll!RtlUserThreadStart"),
			"HEAP_CORRUPTION | ntdll!RtlpFreeHeap | ntdll!RtlFreeHeap | in app.exe"},
		"nothing to go by": {
			newScene(1<<32).crash(0xdead, "@1000\n?app!f"),
			"EXCEPTION_0x0000DEAD | no usable frames in app.exe"},
		"only irrelevant frames": {
			newScene(1 << 32).snapshot("ntdll!NtWaitForSingleObject\nkernelbase!WaitForSingleObjectEx\nkernel32!BaseThreadInitThunk"),
			"SNAPSHOT | ntdll!NtWaitForSingleObject | kernelbase!WaitForSingleObjectEx | kernel32!BaseThreadInitThunk | in app.exe"},
		"templates and lambdas": {
			newScene(1<<32).crash(av, "app!Map<int,std::vector<int> >::find\napp!main", 0, 16),
			"AV_READ_NULL | app!Map<T>::find"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Of(c.inc, Options{})
			if s.Text != c.want {
				t.Errorf("got  %s\nwant %s", s.Text, c.want)
				for _, st := range s.Steps {
					t.Logf("%+v", st)
				}
			}
			if sum := sha256.Sum256([]byte(s.Text)); s.ID != hex.EncodeToString(sum[:8]) {
				t.Errorf("the id %s is not of the text", s.ID)
			}
		})
	}
}

func TestBugCheck(t *testing.T) {
	s := newScene(0xfffff80000000000)
	inc := s.snapshot()
	inc.Crashing = 0
	inc.Threads = []triage.Thread{{Kernel: s.half("nt!KeBugCheckEx\nnt!KiBugCheckDispatch+69\nnt!KiPageFault+247\nntfs!Read\nnt!IofCallDriver"), User: s.half("app!main")}}
	inc.BugCheck = &triage.BugCheck{BugCheck: dump.BugCheck{Code: 0xd1}}
	if got := Of(inc, Options{}).Text; got != "BUGCHECK_0xD1 | ntfs!Read" {
		t.Errorf("got %s", got)
	}
	inc.BugCheck.Fault = triage.Fault{Source: dump.ContextParameter, At: &triage.Frame{Module: s.module("evil"), Name: symbols.Name{Function: "Dispatch"}}}
	if got := Of(inc, Options{}).Text; got != "BUGCHECK_0xD1 | evil!Dispatch | ntfs!Read" {
		t.Errorf("with blame: %s", got)
	}
	inc.BugCheck.Live = true // a live dump: the process's own stack counts
	inc.Crashing = -1
	if got := Of(inc, Options{}).Text; got != "LIVE_0xD1 | app!main" {
		t.Errorf("live: %s", got)
	}
}

// Failures that share a code are not one bucket. What is no kind but an address splits
// nothing.
func TestBugCheckSubcode(t *testing.T) {
	for _, x := range []struct {
		code  uint32
		param [4]uint64
		want  string
	}{
		{0x7f, [4]uint64{8, 0xffff900012340000, 0x406f8, 0xfffff80012345678}, "BUGCHECK_0x7F_8"},
		{0x7f, [4]uint64{}, "BUGCHECK_0x7F_0"},
		{0x1a, [4]uint64{0x41790}, "BUGCHECK_0x1A_41790"},
		{0x1a, [4]uint64{0xffffe00012345678}, "BUGCHECK_0x1A"},
		{0x139, [4]uint64{3, 0xffff900012340000}, "BUGCHECK_0x139_3"},
		{0x109, [4]uint64{0xa39fdf0b2a5b1f5b, 0xb3b6eb917cd9f30c, 0xfffff80012345678, 1}, "BUGCHECK_0x109_1"},
		{0xd1, [4]uint64{8, 2, 0, 0xfffff80012345678}, "BUGCHECK_0xD1"}, // an address
		{0x15e, [4]uint64{0x26}, "LIVE_0x15E_26"},
		{0xdeaddead, [4]uint64{1}, "BUGCHECK_0xDEADDEAD"},
	} {
		s := newScene(0xfffff80000000000)
		inc := s.snapshot()
		inc.Crashing = 0
		inc.Threads = []triage.Thread{{Kernel: s.half("nt!KeBugCheckEx\nntfs!Read")}}
		inc.BugCheck = &triage.BugCheck{BugCheck: dump.BugCheck{Code: x.code, Parameters: x.param}}
		if got, _, _ := strings.Cut(Of(inc, Options{}).Text, " | "); got != x.want {
			t.Errorf("%#x %x: %s, want %s", x.code, x.param, got, x.want)
		}
	}
}

// A live dump never reads like a system that stopped, whether its layout tells or
// only its code. What a watchdog of the kernel found is named by the kernel's stack,
// what somebody asked for by the program's.
func TestLiveDump(t *testing.T) {
	const hung = "nt!DbgkWerCaptureLiveKernelDump+10\nwatchdog!WdDbgReportRecreate\ndxgkrnl!TdrUpdateDbgReport\ndxgmms2!VidSchiReportHwHang\nnt!PspSystemThreadStartup"
	for _, x := range []struct {
		code   uint32
		layout bool
		want   string
	}{
		{0x141, false, "LIVE_0x141 | dxgkrnl!TdrUpdateDbgReport | dxgmms2!VidSchiReportHwHang"},
		{0x141, true, "LIVE_0x141 | dxgkrnl!TdrUpdateDbgReport | dxgmms2!VidSchiReportHwHang"},
		{0x117, false, "LIVE_0x117 | dxgkrnl!TdrUpdateDbgReport | dxgmms2!VidSchiReportHwHang"},
		{0x1a8, false, "LIVE_0x1A8 | dxgkrnl!TdrUpdateDbgReport | dxgmms2!VidSchiReportHwHang"},
		{0x161, false, "LIVE_0x161 | app!main"},
		{0x161, true, "LIVE_0x161 | app!main"},
		{0x1f5, false, "LIVE_0x1F5 | app!main"},
		{0x116, false, "BUGCHECK_0x116 | dxgkrnl!TdrUpdateDbgReport | dxgmms2!VidSchiReportHwHang"}, // the neighbour that stops the system
	} {
		s := newScene(0xfffff80000000000)
		inc := s.snapshot()
		inc.Crashing = 0
		inc.Threads = []triage.Thread{{Kernel: s.half(hung), User: s.half("app!main")}}
		inc.BugCheck = &triage.BugCheck{BugCheck: dump.BugCheck{Code: x.code}, Live: x.layout}
		if x.layout {
			inc.Crashing = -1
		}
		// Threads that wait do not take the name of what a watchdog found.
		opt := Options{}
		if x.code == 0x141 {
			opt.Hang = &Hang{Class: "deadlock", Threads: []int{0}}
		}
		if got := Of(inc, opt).Text; got != x.want {
			t.Errorf("%#x, layout %v: %s, want %s", x.code, x.layout, got, x.want)
		}
	}
}

// One program at 14 bases, and a stack with other addresses in it.
func TestIdsDoNotDependOnAddresses(t *testing.T) {
	const lines = "ntdll!RtlpAllocateHeap+8\napp!grow+44\napp+1234\njit\napp!main+%x"
	want := Of(newScene(1<<32).crash(av, fmt.Sprintf(lines, 8), 0, 0x18), Options{})
	sums := map[uint32]bool{}
	for i := range 14 {
		got := Of(newScene(0x7ff600000000+uint64(i)<<16).crash(av, fmt.Sprintf(lines, i), 0, uint64(i)), Options{})
		if got.ID != want.ID || got.ExactID != want.ExactID || strings.Join(got.DepthIDs, " ") != strings.Join(want.DepthIDs, " ") {
			t.Errorf("base %d: %s %s, want %s %s", i, got.ID, got.ExactID, want.ID, want.ExactID)
		}
		sums[got.RTLSum] = true
	}
	if len(sums) != 14 {
		t.Errorf("%d address sums, want 14: did the addresses differ at all?", len(sums))
	}
}

func TestRecursionDepthDoesNotMatter(t *testing.T) {
	build := func(rounds int, top string) *Signature {
		return Of(newScene(1<<32).crash(av, top+strings.Repeat("app!b\napp!a\n", rounds)+"app!main", 0, 0), Options{})
	}
	want := build(1, "app!leaf\n")
	for _, rounds := range []int{2, 3, 50} {
		if got := build(rounds, "app!leaf\n"); got.ExactID != want.ExactID || got.Text != want.Text {
			t.Errorf("%d rounds: %v, want %v", rounds, got.Stack, want.Stack)
		}
	}
	if got := build(3, "app!other\n"); got.ExactID == want.ExactID {
		t.Error("another leaf has the same exact id")
	}
}

// A stack overflow strikes anywhere in a round, and in whatever it called.
func TestStackOverflowIsItsRecursion(t *testing.T) {
	build := func(top string, rounds int) *Signature {
		return Of(newScene(1<<32).crash(0xc00000fd, top+strings.Repeat("app!c\napp!b\napp!a\n", rounds)+"app!start\napp!main"), Options{})
	}
	want := build("", 100)
	if want.Text != "STACK_OVERFLOW | app!a | app!c | app!b" {
		t.Fatalf("text %s", want.Text)
	}
	for _, top := range []string{"app!a\n", "app!b\napp!a\n", "ntdll!_chkstk\napp!leaf\napp!b\napp!a\n"} {
		if got := build(top, 80); got.ID != want.ID || got.ExactID != want.ExactID {
			t.Errorf("top %q: %s %v", top, got.Text, got.Stack)
		}
	}
	// One that is no recursion.
	if got := Of(newScene(1<<32).crash(0xc00000fd, "app!big\napp!main"), Options{}).Text; got != "STACK_OVERFLOW | app!big" {
		t.Errorf("without a recursion: %s", got)
	}
}

// What struck when the stack was used up lies above the recursion, each frame of it;
// the outermost round stands for all.
func TestFatesOfAStackOverflow(t *testing.T) {
	s := Of(newScene(1<<32).crash(0xc00000fd, "ntdll!_chkstk\napp!leaf\n"+strings.Repeat("app!c\napp!b\napp!a\n", 3)+"app!start\napp!main"), Options{})
	want := []Fate{FateAbove, FateAbove, FateRecursion, FateRecursion, FateRecursion, FateRecursion, FateRecursion, FateRecursion, FateKept, FateKept, FateKept, FateBelow, FateBelow}
	if len(s.Steps) != len(want) {
		t.Fatalf("%d steps: %+v", len(s.Steps), s.Steps)
	}
	for i, st := range s.Steps {
		if st.Fate != want[i] {
			t.Errorf("frame %d (%s): %s, want %s", i, st.Name, st.Fate, want[i])
		}
	}
	if s.Text != "STACK_OVERFLOW | app!a | app!c | app!b" {
		t.Errorf("text %s", s.Text)
	}
	// Its places in the code are those of a fault of another class with these frames.
	other := Of(newScene(1<<32).crash(av, "app!a\napp!c\napp!b\napp!start\napp!main", 0, 0), Options{})
	if !slices.Equal(s.DepthIDs, other.DepthIDs) || s.ID == other.ID {
		t.Errorf("depth ids %v, of another class %v", s.DepthIDs, other.DepthIDs)
	}
	// Nothing but the recursion and what struck.
	s = Of(newScene(1<<32).crash(0xc00000fd, "app!leaf\n"+strings.TrimSuffix(strings.Repeat("app!b\napp!a\n", 3), "\n")), Options{})
	if s.Text != "STACK_OVERFLOW | app!a | app!b" {
		t.Errorf("without an outermost frame: %s", s.Text)
	}
}

// Code that no module holds is called what the frame knows of it, the strongest
// first; that it was made at run time shows in how its caller was found.
func TestOutsideModules(t *testing.T) {
	gone := triage.UnloadedHit{Module: &dump.Module{Path: `C:\app\Plug.DLL`}, Offset: 0x1234}
	for _, c := range []struct {
		frame  triage.Frame
		caller unwind.Method
		want   string
	}{
		{triage.Frame{}, unwind.MethodFunctionTable, jitName},
		{triage.Frame{}, unwind.MethodDynamicTable, jitName},
		{triage.Frame{}, unwind.MethodCodeHeap, jitName},
		{triage.Frame{}, unwind.MethodPdata, ""},
		{triage.Frame{}, unwind.MethodRBP, ""},
		{triage.Frame{}, unwind.MethodScan, ""},
		{triage.Frame{Unloaded: []triage.UnloadedHit{gone}}, unwind.MethodFunctionTable, "plug.dll+1234"},
		{triage.Frame{Unloaded: []triage.UnloadedHit{gone}, Name: symbols.Name{Function: "f"}}, unwind.MethodFunctionTable, "f"},
	} {
		frames := []triage.Frame{c.frame, {Frame: unwind.Frame{Method: c.caller}}}
		if got := (&namer{}).frame(frames, 0); got.name != c.want {
			t.Errorf("%+v, called from what %v found: %q, want %q", c.frame.Name, c.caller, got.name, c.want)
		}
		if got := (&namer{}).frame(frames[:1], 0); c.want == jitName && got.name != "" {
			t.Errorf("%q without a caller", got.name)
		}
	}
	// A .NET method goes by its own name; one that nothing tells is code like other.
	frames := []triage.Frame{{Managed: &managed.Method{Module: "Shop.dll", Type: "Cart", Name: "Pay"}}, {Managed: &managed.Method{}}, {Frame: unwind.Frame{Method: unwind.MethodCodeHeap}}}
	if a, b := (&namer{}).frame(frames, 0), (&namer{}).frame(frames, 1); a.name != "shop!Cart.Pay" || b.name != jitName {
		t.Errorf("%q, %q", a.name, b.name)
	}
}

func TestFates(t *testing.T) {
	s := Of(newScene(1<<32).crash(0xe06d7363, strings.Join([]string{
		"kernelbase!RaiseException", "msvcp!_CxxThrowException", "ucrtbase!_malloc_base", "ntdll!NtClose", "?app!guess", "-app!lost", "!app!over", "~app!snap", "@5000", "app!f", "+app!f", "+app!main",
	}, "\n")), Options{})
	want := []Fate{FateSentinel, FateSentinel, FatePrefix, FateIrrelevant, FateScan, FateUnproven, FateUnproven, FateCapture, FateNoModule, FateRecursion, FateKept, FateBelow}
	for i, st := range s.Steps {
		if st.Fate != want[i] {
			t.Errorf("frame %d (%s): %s, want %s", i, st.Name, st.Fate, want[i])
		}
		if decided := st.Fate == FateSentinel || st.Fate == FatePrefix || st.Fate == FateIrrelevant; decided != strings.HasPrefix(st.Rule, "signature.rules:") {
			t.Errorf("frame %d (%s): rule %q", i, st.Name, st.Rule)
		}
	}
}

func TestDepthIDs(t *testing.T) {
	const top = "ucrtbase!memcpy\napp!a\napp!b\napp!c\napp!d\napp!e\n"
	x := Of(newScene(1<<32).crash(av, top+"app!f\napp!g\nkernel32!BaseThreadInitThunk", 0, 0), Options{})
	y := Of(newScene(1<<32).crash(0xc0000094, top+"app!other"), Options{})
	for i, n := range Depths {
		if same := x.DepthIDs[i] == y.DepthIDs[i]; same != (n != 0) {
			t.Errorf("depth %d: same is %v", n, same)
		}
	}
	if x.ID == y.ID {
		t.Error("a division by zero is in the bucket of an access violation")
	}
}

func TestUserRulesComeFirst(t *testing.T) {
	list, err := rules.Parse("mine.rules", "[prefix]\napp!assert_*\n[keep]\nucrtbase!memcpy\n", rules.ParseOptions{Sections: Sections})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Rules: NewRules(list)}
	if got := Of(newScene(1<<32).crash(av, "app!assert_that\napp!f\napp!main", 0, 0), opt).Text; got != "AV_READ_NULL | app!assert_that | app!f" {
		t.Error(got)
	}
	if got := Of(newScene(1<<32).crash(av, "ucrtbase!memcpy\napp!f", 0, 0), opt).Text; got != "AV_READ_NULL | ucrtbase!memcpy" {
		t.Error(got)
	}
}

// Either thread of a deadlock may be found first.
func TestHangCycle(t *testing.T) {
	const a, b = "ntdll!NtWaitForSingleObject\nntdll!RtlEnterCriticalSection\napp!a\napp!main", "ntdll!NtWaitForSingleObject\nntdll!RtlEnterCriticalSection\napp!b\napp!worker"
	x := Of(newScene(1<<32).snapshot(a, b), Options{Hang: &Hang{Class: "deadlock", Threads: []int{0, 1}, Cycle: true}})
	y := Of(newScene(1<<32).snapshot(b, a), Options{Hang: &Hang{Class: "deadlock", Threads: []int{0, 1}, Cycle: true}})
	if x.Text != "HANG_DEADLOCK | ntdll!RtlEnterCriticalSection | app!a | waits for | ntdll!RtlEnterCriticalSection | app!b" {
		t.Errorf("text %s", x.Text)
	}
	if x.ID != y.ID || x.ExactID != y.ExactID {
		t.Errorf("from the other thread: %s", y.Text)
	}
	z := Of(newScene(1<<32).snapshot(b, a), Options{Hang: &Hang{Class: "blocked", Threads: []int{0, 1}}})
	if !strings.HasPrefix(z.Text, "HANG_BLOCKED | ntdll!RtlEnterCriticalSection | app!b | waits for") {
		t.Errorf("a chain keeps its order: %s", z.Text)
	}
}

// A debugger that breaks in makes a thread of its own: that is not what it is about.
func TestNoFault(t *testing.T) {
	inc := newScene(1<<32).snapshot("ntdll!DbgBreakPoint\nntdll!DbgUiRemoteBreakin", "ntdll!NtReadFile\napp!wait")
	inc.Crashing, inc.Crash = 0, &triage.Crash{Exception: dump.Exception{Code: 0x80000003}}
	main := 1
	if got := Of(inc, Options{NoFault: true, Thread: &main}).Text; got != "SNAPSHOT | app!wait" {
		t.Error(got)
	}
	if got := Of(inc, Options{NoFault: true, Hang: &Hang{Class: "gui_blocked", Threads: []int{1}}}).Text; got != "HANG_GUI_BLOCKED | app!wait" {
		t.Error(got)
	}
	if got := Of(inc, Options{Thread: &main}).Class; got != "BREAKPOINT" {
		t.Error(got)
	}
}

func TestTextIsBounded(t *testing.T) {
	long := strings.Repeat("é", 200)
	s := Of(newScene(1<<32).crash(av, "app!"+long+"\napp!main", 0, 0), Options{})
	if len(s.Text) > MaxText || !strings.HasSuffix(s.Text, "...") || strings.ToValidUTF8(s.Text, "?") != s.Text {
		t.Errorf("%d bytes: %s", len(s.Text), s.Text)
	}
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, "ntdll!function_with_a_long_name_%d\n", i)
	}
	s = Of(newScene(1<<32).crash(av, many.String(), 0, 0), Options{})
	if len(s.Text) > MaxText || strings.HasSuffix(s.Text, "|") || len(s.Frames) > maxParts+1 {
		t.Errorf("%d bytes, %d frames: %s", len(s.Text), len(s.Frames), s.Text)
	}
}

func TestNothing(t *testing.T) {
	if s := Of(&triage.Incident{Crashing: -1}, Options{}); s != nil {
		t.Errorf("an incident of nothing has the signature %s", s.Text)
	}
	if s := Of(&triage.Incident{Crashing: 7, Crash: &triage.Crash{}}, Options{}); s == nil || s.Thread != -1 {
		t.Errorf("an exception without a thread: %+v", s)
	}
}

// Of a text that is too long the middle is left out: the program's frame, the last, tells
// faults behind one long way through a framework apart.
func TestLongTextsKeepTheirEnds(t *testing.T) {
	var parts []string
	for i := range 8 {
		parts = append(parts, "framework!"+strings.Repeat("x", 40)+string(rune('a'+i)))
	}
	a, b := join("HANG", append(parts, "app!First")), join("HANG", append(parts, "app!Second"))
	if want := "HANG | " + strings.Join(parts[:4], " | ") + " | ... | app!First"; a != want || len(a) > MaxText {
		t.Errorf("got  %s\nwant %s", a, want)
	}
	if !strings.HasSuffix(b, " | ... | app!Second") {
		t.Error(b)
	}
	long := strings.Repeat("y", 300)
	if got := join("HANG", []string{"app!f", long}); got != "HANG | app!f" {
		t.Errorf("the last does not fit: %s", got)
	}
	if got := join("HANG", []string{long, "app!f"}); got != "HANG | ... | app!f" {
		t.Errorf("the first does not fit: %s", got)
	}
	exact := strings.Repeat("z", MaxText-len("HANG | a | "))
	if got := join("HANG", []string{"a", exact}); len(got) != MaxText || strings.Contains(got, cutMark) {
		t.Errorf("what just fits: %d bytes", len(got))
	}
}
