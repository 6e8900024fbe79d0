package hang

import (
	"errors"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/unwind"
)

var born = time.Date(2024, 1, 2, 3, 0, 0, 0, time.UTC)

// snapshot is a dump of one process, so many seconds after its start.
func snapshot(after int, threads ...triage.Thread) *triage.Incident {
	inc := incident(threads...)
	inc.Process.Created = born
	inc.Captured = born.Add(time.Duration(after) * time.Second)
	return inc
}

// used gives a thread the processor time it has used.
func used(t triage.Thread, cpu time.Duration) triage.Thread {
	t.Times = &dump.ThreadTimes{Created: born, User: cpu}
	return t
}

var (
	waitStack = []string{"ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx", "app!f", "app!main"}
	idleStack = []string{"ntdll!NtWaitForWorkViaWorkerFactory", "ntdll!TppWorkerThread"}
)

// elsewhere moves a thread's innermost frames.
func elsewhere(t triage.Thread, n int) triage.Thread {
	for i := range n {
		t.User.Frames[i].IP += 0x100
	}
	return t
}

// deeper moves the innermost frame's stack pointer alone.
func deeper(t triage.Thread) triage.Thread {
	t.User.Frames[0].SP -= 0x40
	return t
}

func TestMotions(t *testing.T) {
	const sec = time.Second
	for _, c := range []struct {
		name        string
		first, last triage.Thread
		motion      Motion
		common      int
		progress    Progress
	}{
		{"the same", used(thread(4, waitStack...), sec), used(thread(4, waitStack...), sec), Stuck, 4, StaysHung},
		{"the same, times not known", thread(4, waitStack...), thread(4, waitStack...), Stuck, 4, StaysHung},
		{"ran and came back", used(thread(4, waitStack...), sec), used(thread(4, waitStack...), 2*sec), Returned, 4, Progresses},
		{"moved", used(thread(4, waitStack...), sec), elsewhere(used(thread(4, waitStack...), 2*sec), 2), Moved, 2, Progresses},
		{"deeper in the same recursion", used(thread(4, "app!f", "app!main"), sec), deeper(used(thread(4, "app!f", "app!main"), 2*sec)), Moved, 1, Progresses},
		{"busy", used(thread(4, "app!loop", "app!main"), sec), elsewhere(used(thread(4, "app!loop", "app!main"), 9*sec), 1), Busy, 1, StaysBusy},
		{"idle", used(thread(4, idleStack...), sec), used(thread(4, idleStack...), sec), Waits, 2, StaysIdle},
		{"no stack", triage.Thread{Thread: dump.Thread{ID: 4}}, triage.Thread{Thread: dump.Thread{ID: 4}}, Unseen, 0, NoProgressKnown},
	} {
		s, err := NewSeries([]*triage.Incident{snapshot(10, c.first), snapshot(20, c.last)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		st := s.Threads[0]
		if len(s.Threads) != 1 || st.Motion != c.motion || st.Common != c.common || s.Progress != c.progress || len(s.Warnings) != 0 || s.Elapsed != 10*sec {
			t.Errorf("%s: %s with %d frames in common, %s, %v; want %s %d %s", c.name, st.Motion, st.Common, s.Progress, s.Warnings, c.motion, c.common, c.progress)
		}
	}
}

func TestThreadsComeAndGo(t *testing.T) {
	again := used(thread(8, waitStack...), 0)
	again.Times.Created = born.Add(15 * time.Second) // the id is used again
	s, err := NewSeries([]*triage.Incident{
		snapshot(10, used(thread(4, waitStack...), 0), used(thread(8, waitStack...), 0)),
		snapshot(20, used(thread(4, waitStack...), 0), again),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[Motion]uint32{}
	for _, st := range s.Threads {
		got[st.Motion] = st.ID
	}
	if len(s.Threads) != 3 || got[Stuck] != 4 || got[Started] != 8 || got[Ended] != 8 {
		t.Errorf("%+v", s.Threads)
	}
}

func TestSeriesIsPutInOrder(t *testing.T) {
	a, b, c := snapshot(30, thread(4, waitStack...)), snapshot(10, thread(4, waitStack...)), snapshot(20, thread(4, waitStack...))
	s, err := NewSeries([]*triage.Incident{a, b, c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Incidents[0] != b || s.Incidents[2] != a || len(s.Warnings) != 1 {
		t.Errorf("order %v, %v", s.Incidents, s.Warnings)
	}
}

func TestSameMomentIsSaid(t *testing.T) {
	at := func(after int) *triage.Incident { return snapshot(after, thread(4, waitStack...)) }
	for want, after := range map[int][]int{0: {10, 20}, 1: {10, 20, 20}} {
		var all []*triage.Incident
		for _, n := range after {
			all = append(all, at(n))
		}
		s, err := NewSeries(all, nil)
		if err != nil || len(s.Warnings) != want {
			t.Errorf("dumps at %v s: %v %v", after, s.Warnings, err)
		}
	}
}

func TestOtherProcessesAreRefused(t *testing.T) {
	base := func() *triage.Incident { return snapshot(10, thread(4, waitStack...)) }
	pid, created, arch := base(), base(), base()
	pid.Process.PID++
	created.Process.Created = born.Add(time.Second)
	arch.System.Arch = dump.X86
	for name, other := range map[string]*triage.Incident{"pid": pid, "created": created, "arch": arch} {
		_, err := NewSeries([]*triage.Incident{base(), other}, nil)
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != dump.Mismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewSeries([]*triage.Incident{base()}, nil); err == nil {
		t.Error("one dump is no series")
	}
	unsure := snapshot(20, thread(4, waitStack...))
	unsure.Process.Created = time.Time{}
	if s, err := NewSeries([]*triage.Incident{base(), unsure}, nil); err != nil || len(s.Warnings) != 1 {
		t.Errorf("without a time of creation: %v %v", s, err)
	}
}

// crashed makes a dump one of a crash of its first thread.
func crashed(inc *triage.Incident, code uint32) *triage.Incident {
	inc.Crash, inc.Crashing = &triage.Crash{Exception: dump.Exception{Code: code}}, 0
	return inc
}

func TestDumpsOfACrashAreNoHang(t *testing.T) {
	at := func(after int) *triage.Incident { return snapshot(after, thread(4, waitStack...)) }
	stopped := func(inc *triage.Incident, code uint32, live bool) *triage.Incident {
		inc.BugCheck = &triage.BugCheck{BugCheck: dump.BugCheck{Code: code}, Live: live}
		return inc
	}
	for _, c := range []struct {
		name     string
		dumps    []*triage.Incident
		progress Progress
		crashes  int
	}{
		{"twice the same crash", []*triage.Incident{crashed(at(10), 0xc0000005), crashed(at(10), 0xc0000005)}, AfterCrash, 2},
		{"two first chances", []*triage.Incident{crashed(at(10), 0xe0434352), crashed(at(20), 0xe0434352)}, AfterCrash, 2},
		{"hung, then crashed", []*triage.Incident{at(10), crashed(at(20), 0xc0000005)}, AfterCrash, 1},
		{"a debugger broke in", []*triage.Incident{crashed(at(10), 0x80000003), crashed(at(20), 0x80000003)}, StaysHung, 0},
		{"the system took it of a window", []*triage.Incident{at(10), crashed(at(20), 0xcfffffff)}, StaysHung, 0},
		{"Crashpad was asked for it", []*triage.Incident{at(10), crashed(at(20), 0x0517a7ed)}, StaysHung, 0},
		{"Breakpad was asked for it", []*triage.Incident{at(10), crashed(at(20), 0xffffffff)}, StaysHung, 0},
		{"of a code that nobody has named", []*triage.Incident{at(10), crashed(at(20), 0)}, AfterCrash, 1},
		{"a bugcheck", []*triage.Incident{stopped(at(10), 0xa, false), stopped(at(10), 0xa, false)}, AfterCrash, 2},
		{"live kernel dumps", []*triage.Incident{stopped(at(10), 0x161, true), stopped(at(20), 0x161, true)}, StaysHung, 0},
		{"somebody stopped a system that hung", []*triage.Incident{at(10), stopped(at(20), 0xe2, false)}, StaysHung, 0},
	} {
		s, err := NewSeries(c.dumps, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Progress != c.progress || len(s.Crashes) != c.crashes {
			t.Errorf("%s: %s with crashes %v, want %s with %d", c.name, s.Progress, s.Crashes, c.progress, c.crashes)
		}
	}
}

func TestOneMomentTellsNothing(t *testing.T) {
	at := func(after int, hash string, th triage.Thread) *triage.Incident {
		inc := snapshot(after, th)
		inc.Inputs = []triage.Input{{Path: hash + ".dmp", SHA256: hash}}
		return inc
	}
	still := func() triage.Thread { return used(thread(4, waitStack...), 0) }
	for _, c := range []struct {
		name     string
		a, b     *triage.Incident
		progress Progress
		motion   Motion
		warnings int
	}{
		{"one file", at(10, "aa", still()), at(10, "aa", still()), NoProgressKnown, Unseen, 1},
		{"one file without a time", at(10, "aa", still()), at(10, "aa", still()), NoProgressKnown, Unseen, 2},
		{"one second", at(10, "aa", still()), at(10, "bb", still()), NoProgressKnown, Unseen, 1},
		{"moved in that second", at(10, "aa", still()), at(10, "bb", elsewhere(still(), 2)), Progresses, Moved, 1},
		{"later", at(10, "aa", still()), at(11, "bb", still()), StaysHung, Stuck, 0},
	} {
		if c.warnings == 2 {
			c.a.Captured, c.b.Captured = time.Time{}, time.Time{}
		}
		s, err := NewSeries([]*triage.Incident{c.a, c.b}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Progress != c.progress || s.Threads[0].Motion != c.motion || len(s.Warnings) != c.warnings || s.SameMoment != (c.motion == Unseen) {
			t.Errorf("%s: %s, %s, %q; want %s, %s, %d notes", c.name, s.Progress, s.Threads[0].Motion, s.Warnings, c.progress, c.motion, c.warnings)
		}
	}
}

// The main thread of a service waits to be told to stop for as long as others work:
// that it stands still is no hang, other than a window's that it does not look after.
func TestThatOthersWorkIsProgress(t *testing.T) {
	gui := []string{"ntdll!NtWaitForSingleObject", "app!click", "user32!DispatchMessageW", "app!main"}
	for want, main := range map[Progress][]string{Progresses: waitStack, StaysHung: gui} {
		work := func(cpu time.Duration) triage.Thread { return used(thread(8, waitStack...), cpu) }
		s, err := NewSeries([]*triage.Incident{
			snapshot(10, used(thread(4, main...), 0), work(0)),
			snapshot(20, used(thread(4, main...), 0), work(time.Second)),
		}, nil)
		if err != nil || s.Progress != want {
			t.Errorf("main thread in %v: %s %v, want %s", main, s.Progress, err, want)
		}
	}
}

// A dump without images or memory has less of a stack than the next.
func TestWhatIsCertainOfAStackIsCompared(t *testing.T) {
	whole := func() triage.Thread {
		th := thread(4, waitStack...)
		th.User.Stop.Reason = unwind.StopEndOfStack
		return th
	}
	cut := whole()
	cut.User.Frames, cut.User.Stop.Reason = cut.User.Frames[:2], unwind.StopStackMissing
	guessed := whole()
	for i := range 2 {
		f := &guessed.User.Frames[2+i]
		f.Trust, f.Proof, f.IP = unwind.TrustScan, triage.Unproven, f.IP+0x40
	}
	ends := whole() // a whole stack that is another
	ends.User.Frames = ends.User.Frames[:3]
	for want, list := range map[Motion][]triage.Thread{Stuck: {whole(), cut, guessed}, Moved: {ends, elsewhere(cutAt(whole(), 2), 1)}} {
		for i, th := range list {
			s, err := NewSeries([]*triage.Incident{snapshot(10, th), snapshot(20, whole())}, nil)
			if err != nil || s.Threads[0].Motion != want {
				t.Errorf("%s %d: %s %v", want, i, s.Threads[0].Motion, err)
			}
		}
	}
}

func cutAt(t triage.Thread, n int) triage.Thread {
	t.User.Frames, t.User.Stop.Reason = t.User.Frames[:n], unwind.StopStackMissing
	return t
}

func TestNamesOfProcesses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"app.exe", "App.EXE", true}, {"", "app.exe", true}, {"app.exe", "other.exe", false}, {"app", "app.exe", false},
		{"ConsoleApp1.ex", "ConsoleApp1.exe", true}, {"ConsoleApp1.exe", "ConsoleApp2.exe", false},
	} {
		a, b := snapshot(10, thread(4, waitStack...)), snapshot(20, thread(4, waitStack...))
		a.Process.Name, b.Process.Name = c.a, c.b
		if _, err := NewSeries([]*triage.Incident{a, b}, nil); (err == nil) != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, err)
		}
	}
}

// A wait that looks again from time to time is one wait, if it is for one lock of one
// owner and was called from the same place.
func TestAWaitThatLooksAgain(t *testing.T) {
	lockStack := []string{"ntdll!NtWaitForAlertByThreadId", "ntdll!RtlpWaitForCriticalSection", "ntdll!RtlEnterCriticalSection", "app!f", "app!main"}
	wait := func(lock uint64, owner uint32) *Verdict {
		return &Verdict{Waits: []Wait{{Class: ClassCritical, Frame: 2, Caller: 3, Object: Object{Kind: KindCritical, Value: lock}, Owner: &Owner{ThreadID: owner}}}}
	}
	for _, c := range []struct {
		name string
		last *Verdict
		n    int // innermost frames that differ
		want Motion
	}{
		{"the same", wait(0x1000, 8), 2, Stuck},
		{"of another owner", wait(0x1000, 12), 2, Moved},
		{"for another lock", wait(0x2000, 8), 2, Moved},
		{"from elsewhere", wait(0x1000, 8), 4, Moved},
		{"not for a lock", &Verdict{Waits: []Wait{{Class: ClassSleep, Caller: 3}}}, 2, Moved},
	} {
		s := &Series{Incidents: []*triage.Incident{snapshot(10, thread(4, lockStack...)), snapshot(20, elsewhere(thread(4, lockStack...), c.n))},
			Verdicts: []*Verdict{wait(0x1000, 8), c.last}}
		st := SeriesThread{ID: 4, At: []int{0, 0}}
		if s.move(&st); st.Motion != c.want {
			t.Errorf("%s: %s, want %s", c.name, st.Motion, c.want)
		}
	}
}
