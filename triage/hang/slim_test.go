package hang

import (
	"testing"

	"dumptriage/dump"
)

// Words of slim locks, by the fields of the public _RTL_SRWLOCK.
func TestSlimLock(t *testing.T) {
	a := &analysis{inc: incident(thread(8, "ntdll!f"), thread(12, "ntdll!f"))}
	for i := range a.inc.Threads {
		th := &a.inc.Threads[i]
		th.StackLimit, th.StackBase = 0x10000*uint64(i+1), 0x10000*uint64(i+1)+0x8000
		th.User.Registers.Arch = dump.AMD64
	}
	for _, c := range []struct {
		what string
		word uint64
		want *SlimLock
	}{
		{"free", 0, &SlimLock{LastWaiter: -1}},
		{"a writer", 1, &SlimLock{Locked: true, LastWaiter: -1}},
		{"three readers", 3<<4 | 1, &SlimLock{Locked: true, Readers: 3, LastWaiter: -1}},
		{"a queue, the last on the second stack", 0x24f20 | 3, &SlimLock{Locked: true, Contended: true, LastWaiter: 1}},
		{"a queue of several behind readers, being woken", 0x14f20 | 15, &SlimLock{Locked: true, Contended: true, LastWaiter: 0}},
		{"given back, a waiter not run yet", 0x14f20 | 2, &SlimLock{Contended: true, LastWaiter: 0}},
		{"a queue on no stack", 0x99990 | 3, nil},
		{"readers without the lock", 3 << 4, nil},
		{"waking without waiters", 5, nil},
		{"Wine's, held by a writer", 0xffff0001, nil},
		{"Wine's, held by a reader", 0x10000, nil},
	} {
		got := a.slimLock(c.word, dump.AMD64)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
	// A stack that is not known may hold the block.
	a.inc.Threads[1].StackBase = 0
	if got := a.slimLock(0x24f20|3, dump.AMD64); got == nil || got.LastWaiter != -1 || !got.Contended {
		t.Errorf("a queue on a stack that is not known: %+v", got)
	}
}

// A 32-bit thread that waits for a slim lock, whose word leads to its own stack: then
// it is that lock for certain, and nobody is said to hold it.
func TestSlimLockOfWait(t *testing.T) {
	for word, want := range map[uint32]struct {
		confidence Confidence
		slim       *SlimLock
	}{
		0x0018f720 | 3: {High, &SlimLock{Locked: true, Contended: true, LastWaiter: 0}},
		2<<4 | 1:       {Medium, &SlimLock{Locked: true, Readers: 2, LastWaiter: -1}},
		0x7fff0001:     {Medium, nil},
	} {
		m := memory32{}
		inc := incident32(m)
		m.put(lock32, word)
		f := inc.Threads[0].User.Frames
		f[1].Name.Function, f[2].Name.Function = "RtlpAcquireSRWLockExclusiveContended", "RtlAcquireSRWLockExclusive"
		inc.Threads[0].StackLimit, inc.Threads[0].StackBase = 0x180000, 0x190000
		w := Of(inc, builtinRules(t)).Waits[0]
		if w.Class != ClassSRW || w.Object.Value != lock32 || w.Object.Confidence != want.confidence || w.Owner != nil {
			t.Errorf("%#x: %s %+v, owner %+v", word, w.Class, w.Object, w.Owner)
			continue
		}
		if got := w.Object.Slim; (got == nil) != (want.slim == nil) || got != nil && *got != *want.slim {
			t.Errorf("%#x: %+v, want %+v", word, got, want.slim)
		}
	}
}
