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
	type lock struct{ process, address uint64 }
	wanted := map[lock]bool{}
	for i := range a.waits {
		if w := &a.waits[i]; w.inferable() {
			wanted[lock{a.process(i), w.Object.Value}] = true
		}
	}
	if len(wanted) == 0 {
		return
	}
	holders := map[lock][]int{}
	for i := range a.waits {
		for address := range a.takenBefore(i) {
			if l := (lock{a.process(i), address}); wanted[l] {
				holders[l] = append(holders[l], i)
			}
		}
	}
	for i := range a.waits {
		w := &a.waits[i]
		h := holders[lock{a.process(i), w.Object.Value}]
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
	a.enter(t)
	site := a.siteOf(t.User, w.Frame+1)
	if site == nil {
		return nil
	}
	calls := site.calls
	last := calls[len(calls)-1] // the one that waits
	held := map[uint64]bool{}
	for _, c := range calls[:len(calls)-1] {
		if !c.constant {
			continue
		}
		delete(held, c.argument)
		if c.target != 0 && c.target == last.target {
			held[c.argument] = true
		}
	}
	return held
}

// passed is a call and what the code itself says of it.
type passed struct {
	target   uint64 // tells one callee from another; 0 when not known
	argument uint64 // the first, when constant
	constant bool
}

// callsIn lists the calls in code, in its order.
func callsIn(code []instruction) []passed {
	var out []passed
	pointers := map[dump.Reg]uint64{} // what preserved registers were loaded from
	var now passed
	for k := range code {
		in := &code[k]
		switch {
		case in.Op == x86asm.CALL:
			now.target = callTarget(in, pointers)
			out = append(out, now)
			now = passed{}
		case in.Op == x86asm.LEA && in.Args[0] == x86asm.RCX:
			m, _ := in.Args[1].(x86asm.Mem)
			now.constant = m.Base == x86asm.RIP && m.Index == 0
			now.argument = in.next() + uint64(m.Disp)
		default:
			now.constant = now.constant && !writes(in, dump.RCX)
			loadPointer(in, pointers)
		}
	}
	return out
}

// loadPointer notes where a preserved register is loaded from: compilers keep a
// pointer to a function that is called more than once.
func loadPointer(in *instruction, pointers map[dump.Reg]uint64) {
	r, ok := operandReg(in.Args[0])
	if !ok || !writes(in, r) {
		return
	}
	delete(pointers, r)
	if m, isMem := in.Args[1].(x86asm.Mem); isMem && in.Op == x86asm.MOV && preserved(r) && m.Base == x86asm.RIP && m.Index == 0 {
		pointers[r] = in.next() + uint64(m.Disp)
	}
}

// callTarget is what tells one callee from another: the address that is called,
// or that of the pointer to it; 0 when it is not known.
func callTarget(in *instruction, pointers map[dump.Reg]uint64) uint64 {
	switch to := in.Args[0].(type) {
	case x86asm.Rel:
		return in.next() + uint64(int64(to))
	case x86asm.Mem:
		if to.Base == x86asm.RIP && to.Index == 0 {
			return in.next() + uint64(to.Disp)
		}
	case x86asm.Reg:
		r, _ := slot(to)
		return pointers[r]
	}
	return 0
}
