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
		t.User, t.Wow64 = w.halves(t, t.Context, bounds)
		return
	}
	bounds.First = unwind.MethodException
	t.User, t.Wow64 = w.halves(t, exc.Context, bounds)
	if t.Context.Empty() || samePlace(&t.Context, &exc.Context) {
		return
	}
	bounds.First = unwind.MethodContext
	handler, wow64 := w.halves(t, t.Context, bounds)
	if t.Wow64 == nil {
		t.Wow64 = wow64
	}
	if handler != nil && !samePlace(&handler.Registers, &t.User.Registers) {
		t.Handler = handler
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
