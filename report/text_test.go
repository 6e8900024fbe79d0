package report

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

func renderText(t *testing.T, inc *triage.Incident, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, inc, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextGoldens(t *testing.T) {
	for name, inc := range incidents() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", []byte(renderText(t, inc, judged(inc))))
		})
	}
	unique := testOptions
	unique.Unique = true
	golden(t, "seed-unique.txt", []byte(renderText(t, seedIncident(), unique)))
	color := testOptions
	color.Color = true
	golden(t, "seed-color.txt", []byte(renderText(t, seedIncident(), color)))
}

// The lines of the published session, as people paste them.
func TestTextShowsTheSession(t *testing.T) {
	inc := seedIncident()
	got := renderText(t, inc, testOptions)
	want := []string{
		" # Child-SP          RetAddr               Call Site",
		"00 ffffe10d`62386fb0 fffff804`5e688a7b     nt!DbgkpLkmdSnapThreadInContext+0x95",
		"01 ffffe10d`623874f0 fffff804`5e01dcd0     nt!DbgkpLkmdSnapThreadApc+0x3b",
		"02 ffffe10d`62387520 fffff804`5e01bb67     nt!KiDeliverApc+0x1b0",
		"03 ffffe10d`623875d0 fffff804`5e01ad6f     nt!KiSwapThread+0x827",
		"04 ffffe10d`62387680 fffff804`5e01a613     nt!KiCommitThreadWait+0x14f",
		"05 ffffe10d`62387720 fffff804`5e439c68     nt!KeWaitForSingleObject+0x233",
		"06 ffffe10d`62387810 fffff804`5e411fe9     nt!IopSynchronousServiceTail+0x238",
		"07 ffffe10d`623878b0 fffff804`5e20d9f5     nt!NtReadFile+0x599",
		"08 ffffe10d`62387990 00007ffe`6390d184     nt!KiSystemServiceCopyEnd+0x25 (TrapFrame @ ffffe10d`62387a00)",
		"-- user mode -- trap frame reached by unwinding ----------------",
		"09 000000d6`7c9fe328 00007ffe`61405593     ntdll!NtReadFile+0x14",
		"0a 000000d6`7c9fe330 00007ffd`50724782     KERNELBASE!ReadFile+0x73",
		"0b 000000d6`7c9fe3b0 00007ffe`215bc742     0x00007ffd`50724782",
	}
	if block := strings.Join(want, "\n") + "\n"; !strings.Contains(got, block) {
		t.Errorf("want the lines\n%s\nin\n%s", block, got)
	}

	inc.Threads = inc.Threads[:1]
	inc.Threads[0].Kernel, inc.Threads[0].KernelInfo, inc.Threads[0].Seam = nil, nil, nil
	got = renderText(t, inc, testOptions)
	want = []string{
		"   0  Id: 3adc.5920 Suspend: 0 Teb: 000000d6`7cb98000",
		" # Child-SP          RetAddr               Call Site",
		"00 000000d6`7c9fe328 00007ffe`61405593     ntdll!NtReadFile+0x14",
		"01 000000d6`7c9fe330 00007ffd`50724782     KERNELBASE!ReadFile+0x73",
		"02 000000d6`7c9fe3b0 00007ffe`215bc742     0x00007ffd`50724782",
	}
	if block := strings.Join(want, "\n") + "\n"; !strings.Contains(got, block) {
		t.Errorf("user dump alone: want the lines\n%s\nin\n%s", block, got)
	}
}

func TestText32(t *testing.T) {
	got := renderText(t, crash32Incident(), testOptions)
	for _, want := range []string{
		"\n # ChildEBP RetAddr  \n",
		"\n00 0012fe88 00404200 test_app!CrashFunction+0xe\n",
		"\n01 0012ff70 7c816fd7 test_app!main+0x50 [ebp]\n",
		"\n02 0012ff78 ???????? kernel32+0x16fd7 [scan]\n",
		"\n   stack ends: stack_missing\n",
		"Crash:   EXCEPTION_ACCESS_VIOLATION_WRITE (c0000005) at 0040429e (test_app+0x429e)\n         accessed address 00000045\n",
		"\n#  0  Id: bf4 Suspend: 0 Teb: 7ffdf000\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

// The argument lines are those of !analyze; a processor's stack that is a
// printed thread's is not printed again.
func TestTextBugCheck(t *testing.T) {
	inc := bugCheckIncident()
	got := renderText(t, inc, judged(inc))
	for _, want := range []string{
		"Bugcheck: SYSTEM_THREAD_EXCEPTION_NOT_HANDLED (7e, raw 1000007e)\nArg1: ffffffffc0000005, exception code, EXCEPTION_ACCESS_VIOLATION\n",
		"\nBlame:   amdppm+0x334c\nBecause: module of the instruction at fault, frame 1, confidence high\n",
		"\n#  0  Id: 1c Ethread: ffffdb05`bf3c7080 Running on processor 3\n",
		"\nProcessor 3  thread 1c, as above\n\nProcessor 4  idle\n # Child-SP          RetAddr               Call Site\n" +
			"00 ffff8504`29800000 ????????`????????     nt!HalProcessorIdle+0xf\n   stack ends: no_unwind_data\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

func TestTextNotSimultaneous(t *testing.T) {
	inc := seedIncident()
	th := &inc.Threads[0]
	th.Stitched = false
	th.User.Frames[0].IP = 0x7ffe6390f7b4
	th.Seam.Note = "not simultaneous: the user dump has rip 00007ffe6390f7b4"
	got := renderText(t, inc, testOptions)
	if !strings.Contains(got, "-- user mode -- trap frame reached by unwinding; not simultaneous: the user dump has rip 00007ffe6390f7b4 --\n") {
		t.Errorf("the seam does not say it:\n%s", got)
	}
	if !strings.Contains(got, "08 ffffe10d`62387990 00007ffe`6390d184     nt!KiSystemServiceCopyEnd+0x25") {
		t.Errorf("the kernel half does not return where its trap frame says:\n%s", got)
	}
}

// A kernel half that breaks off before the entry from user mode does not
// pretend that its last frame returns there.
func TestTextFramesMissing(t *testing.T) {
	inc := seedIncident()
	k := inc.Threads[0].Kernel
	k.Frames = k.Frames[:2]
	k.Stop.Detail = "ntoskrnl.exe: no image at hand"
	want := "01 ffffe10d`623874f0 ????????`????????     nt!DbgkpLkmdSnapThreadApc+0x3b\n" +
		"   ... frames missing (ntoskrnl.exe: no image at hand); trap frame ffffe10d`62387a00 found by its place\n-- user mode --"
	if got := renderText(t, inc, testOptions); !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
	// The frame next to the trap frame, proved by its slot, is the entry.
	k.Frames[1].Method = unwind.MethodTrapSlot
	want = "01 ffffe10d`623874f0 00007ffe`6390d184     nt!DbgkpLkmdSnapThreadApc+0x3b (TrapFrame @ ffffe10d`62387a00)\n-- user mode --"
	if got := renderText(t, inc, testOptions); !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}

func TestTextFrameLimit(t *testing.T) {
	opt := testOptions
	opt.Frames = 2
	got := renderText(t, seedIncident(), opt)
	for _, want := range []string{"\n   ... 7 more frames\n", "\n   ... 2 more frames\n", "\n01 ffffe10d`623874f0 fffff804`5e01dcd0     nt!DbgkpLkmdSnapThreadApc+0x3b\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "KiDeliverApc") {
		t.Errorf("a third frame was printed:\n%s", got)
	}
}

func repeatIPs(ips ...uint64) []triage.Frame {
	var out []triage.Frame
	for i, ip := range ips {
		out = append(out, frame(0x1000+uint64(i)*0x20, ip, nil, "", 0, unwind.MethodPdata))
	}
	return out
}

// A full kernel dump whose memory is not read gives a context and no thread
// object: no id and no state are known, and none are printed.
func TestTextThreadWithoutObject(t *testing.T) {
	k := &dump.KernelThread{CPU: -1}
	inc := &triage.Incident{Crashing: -1, Threads: []triage.Thread{{Thread: dump.Thread{Kernel: k}, KernelInfo: k}}}
	inc.System.Arch = dump.AMD64
	if got, want := renderText(t, inc, testOptions), "\n   0  Id: unknown\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want it to end in %q", got, want)
	}
	k.ETHREAD = 0xffffcf8d5ae14080
	if got, want := renderText(t, inc, testOptions), "Id: 0 Ethread: ffffcf8d`5ae14080 Initialized\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want it to end in %q", got, want)
	}
}

func TestTextFoldsRecursion(t *testing.T) {
	ips := []uint64{0xa0}
	for range 200 {
		ips = append(ips, 0xb0, 0xc0, 0xd0)
	}
	ips = append(ips, 0xe0)
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Crashing: -1, Threads: []triage.Thread{{
		User: &triage.Half{Frames: repeatIPs(ips...), Stop: unwind.Stop{Reason: unwind.StopLimit}, Truncated: true}}}}
	got := renderText(t, inc, testOptions)
	want := strings.Join([]string{
		"00 00000000`00001000 00000000`000000b0     0x00000000`000000a0",
		"01 00000000`00001020 00000000`000000c0     0x00000000`000000b0",
		"02 00000000`00001040 00000000`000000d0     0x00000000`000000c0",
		"03 00000000`00001060 00000000`000000b0     0x00000000`000000d0",
		"   ... frames 04..258 repeat the 3 above 199 times",
		"259 00000000`00005b20 ????????`????????     0x00000000`000000e0",
		"   ... truncated: the stack goes on",
	}, "\n") + "\n"
	if !strings.Contains(got, want) {
		t.Errorf("want\n%s\nin\n%s", want, got)
	}
}

// Whatever is folded, the runs cover every frame once and repeat what they say.
func TestFoldCovers(t *testing.T) {
	for _, ips := range [][]uint64{
		{}, {1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9},
		{5, 1, 1, 1, 1, 1, 6, 1, 2, 1, 2, 1, 2, 1, 2}, {1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2},
	} {
		checkFold(t, ips)
	}
}

func checkFold(t *testing.T, ips []uint64) {
	t.Helper()
	frames := repeatIPs(ips...)
	next := 0
	for _, r := range fold(frames) {
		if r.from != next || r.count < 1 || r.repeats < 0 {
			t.Fatalf("%v: run %+v does not begin at frame %d", ips, r, next)
		}
		next = r.from + r.count*(r.repeats+1)
		for i := r.from + r.count; i < next; i++ {
			if frames[i].IP != frames[i-r.count].IP {
				t.Fatalf("%v: frame %d is not what run %+v repeats", ips, i, r)
			}
		}
	}
	if next != len(ips) {
		t.Fatalf("%v: runs end at %d", ips, next)
	}
}

func FuzzFold(f *testing.F) {
	f.Add([]byte("abababababc"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		ips := make([]uint64, len(b))
		for i, c := range b {
			ips[i] = uint64(c % 4)
		}
		checkFold(t, ips)
	})
}

const hostile = "evil\x1b]0;owned\a\x1b[2J\r\n00 fake\tx\u202egpj\u009b31m\xff\x00ü漢"

// hostileIncident puts the string everywhere that a dump's strings go.
func hostileIncident() *triage.Incident {
	inc := bugCheckIncident()
	m := module(hostile+".sys", 0xfffff8048b580000, 0x3c000, true)
	f := frame(1, 0xfffff8048b58334c, m, hostile, 1, unwind.MethodScan)
	lost := frame(2, 0x500, nil, "", 0, unwind.MethodScan)
	lost.Unloaded = []triage.UnloadedHit{{Module: &dump.Module{Path: hostile}, Offset: 1}}
	half := &triage.Half{Frames: []triage.Frame{f, lost}, Stop: unwind.Stop{Reason: unwind.StopBadUnwindInfo, Detail: hostile}}
	inc.Threads = []triage.Thread{{Thread: dump.Thread{ID: 1, Name: hostile}, User: half, Kernel: half, KernelNote: hostile,
		Seam: &triage.Seam{Rule: hostile, Note: hostile}}, {KernelNote: hostile}}
	inc.Inputs = []triage.Input{{Path: hostile, Kind: hostile, Flags: []string{hostile}, Format: "mdmp"}}
	inc.Process = dump.Process{Name: hostile, CommandLine: hostile}
	inc.System.NTVersion, inc.System.CPUVendor, inc.System.CPUFamily = hostile, hostile, 6
	inc.BugCheck.BrokenDriver = hostile
	inc.BugCheck.Fault.At = &f
	inc.Crash = &triage.Crash{Module: m, Assertion: hostile, Instruction: &triage.Instruction{Text: hostile},
		Adjusted: &triage.AdjustedAddress{Kind: hostile}}
	inc.Pairing = &triage.Pairing{User: hostile, Kernel: hostile, How: hostile, Warnings: []string{hostile}}
	inc.Missing = []symbols.Missing{{Module: m.Module, Key: hostile, Tried: []string{hostile}, Reason: hostile}}
	inc.Errors = []*dump.Error{{Code: dump.IO, File: hostile, Stream: hostile, Msg: hostile}}
	inc.Modules = []*triage.Module{m}
	inc.Unloaded = []dump.Module{{Path: hostile}}
	inc.Handles = []dump.Handle{{Type: hostile, Name: hostile}}
	return inc
}

// No byte that a terminal acts on, and no line that a dump made up.
func TestHostileStrings(t *testing.T) {
	bad := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069\ufffd]|\n00 fake")
	inc := hostileIncident()
	outputs := []string{renderText(t, inc, judged(inc)), renderText(t, inc, Options{Unique: true})}
	var verdict bytes.Buffer
	if err := TriageText(&verdict, inc, judged(inc)); err != nil {
		t.Fatal(err)
	}
	outputs = append(outputs, verdict.String())
	for _, l := range lists(inc) {
		var b bytes.Buffer
		if err := ListText(&b, l, testOptions); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, b.String())
		b.Reset()
		if err := ListJSON(&b, l, testOptions); err != nil {
			t.Fatal(err)
		}
		validate(t, b.Bytes())
	}
	for _, out := range outputs {
		if !strings.Contains(out, "evil") {
			t.Errorf("the test's strings are not in the output:\n%s", out)
		}
		if strings.ToValidUTF8(out, "") != out {
			t.Error("text is not UTF-8")
		}
		if m := bad.FindStringIndex(out); m != nil {
			t.Errorf("%q got through: %q", out[m[0]:m[1]], out[max(0, m[0]-40):min(len(out), m[1]+40)])
		}
	}
	doc := renderJSON(t, inc, testOptions)
	if m := regexp.MustCompile("[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e]").FindIndex(doc); m != nil {
		t.Errorf("JSON holds %q", doc[m[0]:m[1]])
	}
	got := at(validate(t, doc), "threads", 0, "thread_name")
	if want := strings.ToValidUTF8(hostile, "\ufffd"); got != want {
		t.Errorf("thread_name is %q, want %q", got, want)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		"C:\\Program Files\\ü": "C:\\Program Files\\ü",
		"a\x1b[31mb":           `a\x1b[31mb`,
		"a\tb\nc":              `a\x09b\x0ac`,
		"bad\xff\xfeutf":       `bad\xff\xfeutf`,
		"right\u202eleft":      `right\u202eleft`,
		"\u009b2J":             `\u009b2J`,
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzJSONStrings(f *testing.F) {
	f.Add(hostile)
	f.Add("\U000e0001 tag, \U0001f600")
	f.Fuzz(func(t *testing.T, s string) {
		inc := &triage.Incident{Crashing: -1, Threads: []triage.Thread{{Thread: dump.Thread{Name: s}}}}
		var doc struct{ Threads []ThreadJSON }
		if err := json.Unmarshal(renderJSON(t, inc, testOptions), &doc); err != nil {
			t.Fatal(err)
		}
		var want string // what encoding/json makes of it
		b, _ := json.Marshal(s)
		if err := json.Unmarshal(b, &want); err != nil || doc.Threads[0].ThreadName != want {
			t.Fatalf("%q came back as %q", s, doc.Threads[0].ThreadName)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range clean(s) {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\u2028' {
				t.Fatalf("clean(%q) lets %q through", s, r)
			}
		}
	})
}
