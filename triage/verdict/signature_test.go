package verdict

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
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

// Who is blamed for what is not on the thread's stack is in the signature; a frame of that
// stack is there anyway, and what is little sure is not.
func TestBlamed(t *testing.T) {
	driver := &triage.Module{Module: &dump.Module{Path: `\SystemRoot\System32\drivers\AcmeFilt.sys`}}
	frame := &triage.Frame{Module: driver, Name: symbols.Name{Function: "AcmeTimerDpc"}}
	for _, c := range []struct {
		blame bugcheck.Blame
		want  string
	}{
		{bugcheck.Blame{Culprit: bugcheck.CulpritDriver, Index: -1, Name: "AcmeFilt.sys", Confidence: "high"}, "acmefilt"},
		{bugcheck.Blame{Culprit: bugcheck.CulpritDriver, Index: -1, Name: "AcmeFilt", Frame: frame, Confidence: "medium"}, "acmefilt!AcmeTimerDpc"},
		{bugcheck.Blame{Culprit: bugcheck.CulpritDriver, Index: -1, Name: "AcmeFilt", Confidence: "low"}, ""},
		{bugcheck.Blame{Culprit: bugcheck.CulpritDriver, Index: 3, Name: "AcmeFilt", Frame: frame, Confidence: "high"}, ""},
		{bugcheck.Blame{Culprit: bugcheck.CulpritProcess, Index: -1, Name: "app.exe", Confidence: "high"}, ""},
	} {
		v := &Verdict{BugCheck: &bugcheck.Verdict{Blame: c.blame}}
		if got := v.blamed(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.blame, got, c.want)
		}
	}
	if got := (&Verdict{}).blamed(); got != "" {
		t.Errorf("without a bugcheck: %q", got)
	}
}
