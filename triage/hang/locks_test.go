package hang

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/triage"
)

// analyzed opens a built dump with its images.
func analyzed(t *testing.T, l *fixtures.Locks, images bool) *triage.Incident {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "app.dmp")
	if err := os.WriteFile(path, l.Dump, 0o666); err != nil {
		t.Fatal(err)
	}
	opt := triage.Options{}
	if images {
		sub := filepath.Join(dir, "images")
		if err := os.Mkdir(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, b := range l.Images {
			if err := os.WriteFile(filepath.Join(sub, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		opt.Images = []string{sub}
	}
	d, err := triage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	inc, err := triage.Analyze(d, nil, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inc.Close(); d.Close() })
	return inc
}

func byThread(inc *triage.Incident, v *Verdict, id uint32) *Wait {
	for i := range inc.Threads {
		if inc.Threads[i].ID == id {
			return &v.Waits[i]
		}
	}
	return nil
}

func ids(inc *triage.Incident, list []int) string {
	var out []uint32
	for _, i := range list {
		out = append(out, inc.Threads[i].ID)
	}
	return fmt.Sprintf("%#x", out)
}

// A full dump proves owners by the locks' own fields.
func TestDeadlockOfLocksInMemory(t *testing.T) {
	for n := 2; n <= 4; n++ {
		l := fixtures.Deadlock(n, true)
		inc := analyzed(t, l, false)
		v := Of(inc, builtinRules(t))
		if v.State != Deadlock || v.Confidence != High || ids(inc, v.Chain()) != fmt.Sprintf("%#x", fixtures.LockIDs[:n]) {
			t.Fatalf("%d threads: %s (%s) %s", n, v.State, v.Confidence, ids(inc, v.Chain()))
		}
		for i, id := range fixtures.LockIDs[:n] {
			w := byThread(inc, v, id)
			next := (i + 1) % n
			if w.Class != ClassCritical || w.Object.Value != l.Addresses[next] || w.Owner == nil || w.Owner.ThreadID != fixtures.LockIDs[next] {
				t.Errorf("thread %#x: %s %#x owner %+v, want %#x", id, w.Class, w.Object.Value, w.Owner, l.Addresses[next])
			}
			if k := w.Object.Lock; k == nil || !k.Confirmed || k.RecursionCount != 1 || k.LockCount != -6 || w.Object.Confidence != High {
				t.Errorf("thread %#x: lock %+v", id, k)
			}
		}
		checkOthers(t, inc, v, l)
	}
}

// checkOthers looks at the threads that are in no deadlock.
func checkOthers(t *testing.T, inc *triage.Incident, v *Verdict, l *fixtures.Locks) {
	t.Helper()
	w := byThread(inc, v, l.Main)
	if w.Class != ClassObjects || !w.Object.WaitAll || len(w.Object.Handles) != len(l.Handles) {
		t.Fatalf("main: %s %+v", w.Class, w.Object)
	}
	for i, h := range w.Object.Handles {
		if h.Value != l.Handles[i] || h.Listed == nil || h.Listed.Type != "Thread" {
			t.Errorf("main waits for %+v, want %#x", h, l.Handles[i])
		}
	}
	if w := byThread(inc, v, l.Idle); w.Class != ClassIdleWorker {
		t.Errorf("the idle thread is %s", w.Class)
	}
	w = byThread(inc, v, l.Mutex)
	if w.Class != ClassMutex || w.Object.Value != l.MutexHandle || w.Owner == nil || w.Owner.ThreadID != fixtures.LockIDs[0] || w.Owner.Confidence != Medium {
		t.Errorf("mutex: %s %+v owner %+v", w.Class, w.Object, w.Owner)
	}
}

// A small dump has no locks in it: which they are is in code and registers, and
// who holds them is inferred from code, which the verdict says.
func TestDeadlockOfSmallDump(t *testing.T) {
	l := fixtures.Deadlock(3, false)
	inc := analyzed(t, l, true)
	v := Of(inc, nil)
	if v.State != Possible || v.Confidence != Low || ids(inc, v.Chain()) != fmt.Sprintf("%#x", fixtures.LockIDs[:3]) {
		t.Fatalf("%s (%s) %s", v.State, v.Confidence, ids(inc, v.Chain()))
	}
	for i, id := range fixtures.LockIDs[:3] {
		w := byThread(inc, v, id)
		if w.Object.Value != l.Addresses[(i+1)%3] || w.Object.Lock != nil || w.Object.Confidence != High || w.Owner.Evidence[0].Source != FromCode {
			t.Errorf("thread %#x: %+v owner %+v", id, w.Object, w.Owner)
		}
	}
	checkOthers(t, inc, v, l)
}

// Without images nothing names the functions, and nothing is claimed.
func TestSmallDumpWithoutImages(t *testing.T) {
	inc := analyzed(t, fixtures.Deadlock(2, false), false)
	v := Of(inc, nil)
	for i, w := range v.Waits {
		if w.Object.Known() || w.Owner != nil {
			t.Errorf("thread %#x: %+v owner %+v", inc.Threads[i].ID, w.Object, w.Owner)
		}
	}
	if v.State != NoThreads || v.Hangs() {
		t.Errorf("state %s", v.State)
	}
}

func TestLockStates(t *testing.T) {
	const a, b = 0x1200, 0x1208
	waits := []fixtures.LockThread{{ID: a, Takes: -1, Waits: 0}, {ID: b, Takes: -1, Waits: 0}}
	for _, c := range []struct {
		name   string
		owners []uint32
		state  State
		owner  uint32
	}{
		{"held by a thread that is gone", []uint32{0x6660}, Orphaned, 0x6660},
		{"free", []uint32{0}, Contention, 0},
		{"held by one that waits for it", []uint32{b}, Blocked, b}, // it was about to enter again
		{"held by one that does something else", []uint32{0x1120}, Blocked, 0x1120},
		{"no thread id", []uint32{0x6661}, Contention, 0},
	} {
		l := fixtures.BuildLocks(fixtures.LockScene{Threads: waits, Owners: c.owners, Full: true})
		inc := analyzed(t, l, false)
		v := Of(inc, nil)
		w := byThread(inc, v, a)
		owner := uint32(0)
		if w.Owner != nil {
			owner = w.Owner.ThreadID
		}
		if v.State != c.state || owner != c.owner || w.Object.Value != l.Addresses[0] {
			t.Errorf("%s: %s, owner %#x, lock %#x", c.name, v.State, owner, w.Object.Value)
		}
		if own := byThread(inc, v, b); own.Owner != nil && own.Owner.ThreadID == b {
			t.Errorf("%s: a critical section lets its owner in", c.name)
		}
	}
}

// A mutex whose owner is of another process says nothing of threads here.
func TestForeignMutexOwner(t *testing.T) {
	l := fixtures.BuildLocks(fixtures.LockScene{Threads: []fixtures.LockThread{{ID: 0x1200, Takes: -1, Waits: 0}}, Owners: []uint32{0}, Full: true, MutexOwner: 0x1200})
	inc := analyzed(t, l, false)
	inc.Process.PID++
	if w := byThread(inc, Of(inc, nil), l.Mutex); w.Class != ClassMutex || w.Owner != nil {
		t.Errorf("%s owner %+v", w.Class, w.Owner)
	}
}

// A lock's owner is a thread of the process that the lock is of. In a dump of many
// processes the id that it holds may have gone to a thread of another one, which
// then neither holds the lock nor closes a circle.
func TestOwnerOfAnotherProcess(t *testing.T) {
	inc := analyzed(t, fixtures.Deadlock(2, true), false)
	inc.UserSpace = nil // as in a full kernel dump: each thread is read in its own process
	for i := range inc.Threads {
		inc.Threads[i].KernelInfo = &dump.KernelThread{EPROCESS: 0xffffa00000001080}
	}
	if v := Of(inc, nil); v.State != Deadlock {
		t.Fatalf("of one process: %s", v.State)
	}
	gone := fixtures.LockIDs[1]
	for i := range inc.Threads {
		if inc.Threads[i].ID == gone {
			inc.Threads[i].KernelInfo = &dump.KernelThread{EPROCESS: 0xffffa00000002080}
		}
	}
	v := Of(inc, nil)
	w := byThread(inc, v, fixtures.LockIDs[0])
	if w.Owner == nil || w.Owner.ThreadID != gone || w.Owner.Index != -1 || !w.Owner.Foreign || v.State != Orphaned {
		t.Errorf("of two processes: %s, owner %+v", v.State, w.Owner)
	}
	// A thread whose process is not known is not told apart.
	inc = analyzed(t, fixtures.Deadlock(2, true), false)
	inc.Process.EPROCESS = 0xffffa00000001080
	for i := range inc.Threads {
		inc.Threads[i].KernelInfo = &dump.KernelThread{}
		inc.Threads[i].Thread.Kernel = inc.Threads[i].KernelInfo
	}
	if v := Of(inc, nil); v.State != Deadlock {
		t.Errorf("a pair without processes: %s", v.State)
	}
	for i := range inc.Threads {
		if inc.Threads[i].ID == gone {
			inc.Threads[i].KernelInfo.EPROCESS = 0xffffa00000002080
		}
	}
	if v := Of(inc, nil); v.State != Orphaned {
		t.Errorf("a pair with a thread of another process: %s", v.State)
	}
}
