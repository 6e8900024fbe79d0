package triage

import (
	"dumptriage/dump"
	"dumptriage/unwind"
)

// walkUser walks the user half of one thread of a user dump. The thread of the
// exception stream is walked from that stream's registers: its own are those of
// the handler that wrote the dump.
func (w *walker) walkUser(t *Thread, exc *dump.Exception) {
	bounds := unwind.Options{StackLimit: t.StackLimit, StackBase: t.StackBase, First: unwind.MethodContext}
	if exc == nil || exc.ThreadID != t.ID || exc.Context.Empty() {
		if !t.Context.Empty() {
			t.User, _ = w.walk(t.Context, bounds)
		}
		return
	}
	bounds.First = unwind.MethodException
	t.User, _ = w.walk(exc.Context, bounds)
	if !t.Context.Empty() && !samePlace(&t.Context, &exc.Context) {
		bounds.First = unwind.MethodContext
		t.Handler, _ = w.walk(t.Context, bounds)
	}
}

// samePlace reports whether two register sets stand at the same instruction and
// stack pointer.
func samePlace(a, b *dump.Registers) bool {
	apc, ok1 := a.PC()
	bpc, ok2 := b.PC()
	asp, ok3 := a.SP()
	bsp, ok4 := b.SP()
	return ok1 && ok2 && ok3 && ok4 && apc == bpc && asp == bsp
}
