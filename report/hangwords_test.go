package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/crash"
	"dumptriage/triage/hang"
	"dumptriage/triage/verdict"
	"dumptriage/unwind"
)

// Every next step for a hang has words.
func TestEveryHangStepHasWords(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "triage", "hang", "next.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t\w+ +NextKind += "(\w+)"`).FindAllStringSubmatch(string(src), -1)
	if len(names) != len(hangSteps) {
		t.Errorf("%d steps, words for %d", len(names), len(hangSteps))
	}
	for _, m := range names {
		if hangSteps[hang.NextKind(m[1])] == "" {
			t.Errorf("no words for %q", m[1])
		}
	}
}

// What is said when nothing hangs, and how sure it is.
func TestNothingHangs(t *testing.T) {
	idle, unknown := hang.Wait{Class: hang.ClassIdleWorker}, hang.Wait{}
	io := hang.Wait{Class: hang.ClassIO}
	for _, c := range []struct {
		v    hang.Verdict
		want string
	}{
		{hang.Verdict{State: hang.Idle, Subject: -1, Waits: []hang.Wait{idle, idle}}, "nothing seems to hang: every thread waits for work"},
		{hang.Verdict{State: hang.Idle, Subject: -1, Waits: []hang.Wait{idle, unknown}}, "nothing seems to hang: every thread whose stack tells waits for work; 1 of 2 do not tell"},
		{hang.Verdict{State: hang.Waiting, Subject: 0, Waits: []hang.Wait{io, idle}}, "no thread is seen to hold up others; thread 64 waits for input or output"},
		{hang.Verdict{State: hang.NoThreads, Subject: -1, Waits: []hang.Wait{unknown, unknown}}, "the stacks do not tell what the threads do"},
	} {
		inc := &triage.Incident{Threads: []triage.Thread{{Thread: dump.Thread{ID: 0x64}}, {Thread: dump.Thread{ID: 0x65}}}}
		if got := hangReason(inc, &c.v); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A recursion that a scan alone shows is not told as a fact.
func TestRecursionByScan(t *testing.T) {
	r := &crash.Recursion{Frames: 2, Rounds: 16}
	proved := []triage.Frame{frame(0x1000, 0x7ffe215bc742, coreclr, "f", 1, unwind.MethodPdata), frame(0x1000, 0x7ffe215bc742, coreclr, "g", 1, unwind.MethodPdata)}
	if got := recursionWords(proved, r); got != "2 frames repeated 16 times" {
		t.Error(got)
	}
	if got := recursionWords([]triage.Frame{proved[0], scanned(proved[1])}, r); got != "2 frames repeated 16 times as a scan of the stack has it" {
		t.Error(got)
	}
}

// A blame needs a place: code of which nothing is known is nobody's.
func TestHangBlame(t *testing.T) {
	for name, c := range map[string]struct {
		caller triage.Frame
		want   string
	}{
		"a function":                     {frame(0x1000, 0x7ffe215bc742, coreclr, "Wait", 0x12, unwind.MethodPdata), "Blame:   coreclr!Wait+0x12, confidence high"},
		"an address in a module":         {frame(0x1000, 0x7ffe215bc742, coreclr, "", 0, unwind.MethodPdata), "Blame:   coreclr+0x3bc742, confidence high"},
		"a frame by scan":                {scanned(frame(0x1000, 0x7ffe215bc742, coreclr, "Wait", 0x12, unwind.MethodScan)), "Blame:   coreclr!Wait+0x12, confidence low"},
		"code of which nothing is known": {frame(0x1000, 0x7ffd50724782, nil, "", 0, unwind.MethodPdata), ""},
	} {
		inc := &triage.Incident{Crashing: -1, System: dump.System{Arch: dump.AMD64}, Threads: []triage.Thread{{Thread: dump.Thread{ID: 0x64},
			User: &triage.Half{Frames: []triage.Frame{frame(0xff8, 0x7ffe6390d184, ntdll, "NtWaitForSingleObject", 0x14, unwind.MethodContext), c.caller}}}}}
		v := &verdict.Verdict{Kind: verdict.KindHang, Hang: &hang.Verdict{State: hang.Contention, Confidence: hang.High, Contended: []hang.Contended{{Waiters: []int{0}}},
			Waits: []hang.Wait{{Class: hang.ClassSRW, Frame: 0, Caller: 1}}}}
		var b strings.Builder
		if err := TriageText(&b, inc, Options{Verdict: v, Brief: true}); err != nil {
			t.Fatal(err)
		}
		got := regexp.MustCompile(`(?m)^Blame:.*$`).FindString(b.String())
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func scanned(f triage.Frame) triage.Frame { f.Trust = unwind.TrustScan; return f }
