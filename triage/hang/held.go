package hang

import (
	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

// heldByCode infers owners where memory does not hold the locks: a thread that
// waits for one lock and, earlier in the same function, called the same function
// for another lock whose address the code itself gives, and called nothing else
// with that address since, has probably taken it. That is an inference about a
// path through code: a jump may have passed the call by. It counts only for a
// lock that another thread waits for, and its confidence is low.
func (a *analysis) heldByCode() {
	wanted := map[uint64]bool{}
	for i := range a.waits {
		if w := &a.waits[i]; w.inferable() {
			wanted[w.Object.Value] = true
		}
	}
	if len(wanted) == 0 {
		return
	}
	holders := map[uint64][]int{}
	for i := range a.waits {
		for lock := range a.takenBefore(i) {
			if wanted[lock] {
				holders[lock] = append(holders[lock], i)
			}
		}
	}
	for i := range a.waits {
		w := &a.waits[i]
		h := holders[w.Object.Value]
		// A critical section lets its owner in again, a slim lock does not.
		if !w.inferable() || len(h) != 1 || h[0] == i && w.Class == ClassCritical {
			continue
		}
		w.Owner = &Owner{ThreadID: a.inc.Threads[h[0]].ID, Index: h[0], Confidence: Low, Evidence: []Evidence{{Source: FromCode, Frame: -1}}}
	}
}

// inferable reports whether a thread waits for a lock that is known but whose
// owner memory does not tell.
func (w *Wait) inferable() bool {
	return (w.Class == ClassCritical || w.Class == ClassSRW) && w.Owner == nil && w.Object.Value != 0 && w.Object.Lock == nil
}

// takenBefore lists the constant addresses that a thread's code passed to the
// function that it waits in, before that call, and to no other function since.
func (a *analysis) takenBefore(i int) map[uint64]bool {
	t, w := &a.inc.Threads[i], &a.waits[i]
	if w.Class != ClassCritical && w.Class != ClassSRW || t.User == nil || t.User.Registers.Arch != dump.AMD64 || w.Kernel || w.Frame+1 >= len(t.User.Frames) {
		return nil
	}
	site := a.siteOf(t.User, w.Frame+1)
	if site == nil {
		return nil
	}
	target, ok := callTarget(&site.call)
	if !ok {
		return nil
	}
	held := map[uint64]bool{}
	constant, known := uint64(0), false // what rcx holds, where the code itself says
	for k := range site.before {
		in := &site.before[k]
		switch {
		case in.Op == x86asm.CALL:
			if known {
				to, ok := callTarget(in)
				delete(held, constant)
				if ok && to == target {
					held[constant] = true
				}
			}
			known = false
		case in.Op == x86asm.LEA && in.Args[0] == x86asm.RCX:
			m, _ := in.Args[1].(x86asm.Mem)
			known = m.Base == x86asm.RIP && m.Index == 0
			constant = in.next() + uint64(m.Disp)
		case writes(in, dump.RCX):
			known = false
		}
	}
	return held
}

// callTarget is what tells one callee from another: the address that is called,
// or the address of the pointer to it.
func callTarget(in *instruction) (uint64, bool) {
	switch to := in.Args[0].(type) {
	case x86asm.Rel:
		return in.next() + uint64(int64(to)), true
	case x86asm.Mem:
		if to.Base == x86asm.RIP && to.Index == 0 {
			return in.next() + uint64(to.Disp), true
		}
	}
	return 0, false
}
