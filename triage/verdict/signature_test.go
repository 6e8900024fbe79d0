package verdict

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/crash"
	"dumptriage/triage/hang"
	"dumptriage/triage/signature"
)

// What the judges of crash and hang tell the signature.
func TestNamed(t *testing.T) {
	inc := &triage.Incident{Crash: &triage.Crash{}}
	v := &Verdict{Hang: &hang.Verdict{State: hang.Possible, Subject: 2, Cycles: [][]int{{2, 5}}}}
	opt := v.named(inc, builtIn())
	if h := opt.Hang; h == nil || h.Class != "deadlock" || !h.Cycle || !slices.Equal(h.Threads, []int{2, 5}) || *opt.Thread != 2 || opt.NoFault {
		t.Errorf("a possible deadlock: %+v", opt)
	}
	v = &Verdict{Hang: &hang.Verdict{State: hang.Blocked, Subject: 1, Chains: [][]int{{4, 3, 1}, {9, 1}}}}
	if h := v.named(inc, builtIn()).Hang; h == nil || h.Class != "blocked" || h.Cycle || !slices.Equal(h.Threads, []int{4, 3, 1}) {
		t.Errorf("a chain: %+v", h)
	}
	v = &Verdict{Hang: &hang.Verdict{State: hang.Waiting, Subject: 0}, Crash: &crash.Verdict{Class: crash.DebuggerBreak}}
	if opt := v.named(inc, builtIn()); opt.Hang != nil || *opt.Thread != 0 || !opt.NoFault {
		t.Errorf("the main thread waits, a debugger broke in: %+v", opt)
	}
	v = &Verdict{Hang: &hang.Verdict{State: hang.Idle, Subject: -1}}
	if opt := v.named(inc, builtIn()); opt.Hang != nil || opt.Thread != nil {
		t.Errorf("nothing hangs: %+v", opt)
	}
}

// A real deadlock is named by both its threads.
func TestSignatureOfDeadlock(t *testing.T) {
	d, err := triage.Open(corpus.Need(t, "wine/t64-clang-O1/hang_deadlock.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", triage.Options{Symbols: symbols.DirPath(corpus.Need(t, "wine"))})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	const want = "HANG_DEADLOCK | ntdll!RtlEnterCriticalSection | t64-clang-o1!thrA | waits for | ntdll!RtlEnterCriticalSection | t64-clang-o1!thrB"
	if got := Of(inc, Options{}).Signature.Text; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A live dump that its code alone tells is named by the kernel's stack, as what it is.
func TestSignatureOfLiveDump(t *testing.T) {
	d := fixtures.BugCheckScenes()["video_live"] // 0x141, in the layout of a bugcheck
	f, err := input.New(bytes.NewReader(d.Dump), int64(len(d.Dump)), "video_live.dmp", input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := triage.OpenInput(f)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	inc, err := triage.Analyze(nil, k, "", triage.Options{NotBeside: true})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	v := Of(inc, Options{})
	if v.Kind != KindLiveDump || !strings.HasPrefix(v.Signature.Text, "LIVE_0x141 | ") || v.Signature.Kind != signature.KindLiveDump {
		t.Errorf("%s, signature %+v", v.Kind, v.Signature)
	}
}
