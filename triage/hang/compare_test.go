package hang

import (
	"errors"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
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
