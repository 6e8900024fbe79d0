package hang

import (
	"dumptriage/dump"
	"dumptriage/triage"
)

// SlimLock is what the word of an SRWLOCK tells. It never says whose the lock is.
//
// Sources: _RTL_SRWLOCK in public symbols, whose fields are those of _EX_PUSH_LOCK
// (Locked, Waiting, Waking and MultipleShared in the low four bits, Shared above).
// With waiters the rest is a pointer to a block on the last one's stack, as push locks
// are described; here it is believed only if it lies on a stack. The block's layout is
// not public, so the others of the queue are not read.
type SlimLock struct {
	Locked     bool
	Contended  bool   // threads are queued; then who holds it, writer or readers, is not known
	Readers    uint64 // that hold it, 0 a writer; of a lock that is not contended
	LastWaiter int    // index in Incident.Threads of the thread that queued last, -1 not known
}

const (
	slimLocked, slimWaiting = 1, 2
	slimFlags               = 15
	maxReaders              = 1 << 16
)

// slimLock reads the word of a slim lock of the process that is looked at; nil when
// it is none that Windows makes.
func (a *analysis) slimLock(word uint64, arch dump.Arch) *SlimLock {
	s := &SlimLock{Locked: word&slimLocked != 0, Contended: word&slimWaiting != 0, LastWaiter: -1}
	rest := word &^ slimFlags
	switch {
	case s.Contended:
		i, bounded := a.stackOwner(rest, arch)
		if i < 0 && bounded {
			return nil
		}
		s.LastWaiter = i
	case word == 0:
	case !s.Locked, word&slimFlags != slimLocked, rest>>4 > maxReaders:
		return nil
	default:
		s.Readers = rest >> 4
	}
	return s
}

// stackOwner finds the thread on whose stack an address lies, -1 when none has it.
// bounded is false when some stack's bounds are not known.
func (a *analysis) stackOwner(va uint64, arch dump.Arch) (owner int, bounded bool) {
	bounded = true
	for i := range a.inc.Threads {
		t := &a.inc.Threads[i]
		if !a.together(i, a.at) {
			continue
		}
		if t.StackBase == 0 || t.Thread.Kernel != nil || t.User == nil || t.User.Registers.Arch != arch || t.Wow64 != nil {
			bounded = false // of another stack, or of none that is known
			continue
		}
		if va >= t.StackLimit && va < t.StackBase {
			return i, true
		}
	}
	return -1, bounded
}

// slim adds what memory says of a slim lock that a thread waits for.
func (a *analysis) slim(w *Wait, h *triage.Half) {
	o := &w.Object
	if o.Kind != KindSRW || o.Word == nil {
		return
	}
	o.Slim = a.slimLock(*o.Word, h.Registers.Arch)
	if o.Slim != nil && o.Slim.LastWaiter >= 0 {
		o.Evidence, o.Confidence = append(o.Evidence, Evidence{Source: FromMemory, Frame: -1}), High
	}
}
