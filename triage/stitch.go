package triage

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// stitch joins a thread's walked kernel half to its user half, which has
// frames. The join is made only when the kernel's trap frame and the user
// dump's registers name the same instruction and stack pointer; two captures of
// a thread that moved between them stay two halves.
func stitch(t *Thread, seam *Seam) {
	t.Seam = seam
	first := &t.User.Frames[0]
	if t.Wow64 != nil && len(t.Wow64.Frames) > 0 {
		first = &t.Wow64.Frames[0] // a 32-bit thread enters the kernel from 64-bit code
	} else if t.Handler != nil && len(t.Handler.Frames) > 0 {
		// The kernel saw the thread as its own context shows it, not as the
		// exception record does.
		first = &t.Handler.Frames[0]
	}
	if first.IP == seam.UserIP && first.SP == seam.UserSP {
		t.Stitched = true
		if first.Method == unwind.MethodContext {
			first.Method = unwind.MethodStitch
		}
		return
	}
	seam.Note = fmt.Sprintf("not simultaneous: the kernel dump saw the thread at user ip %#x, sp %#x", seam.UserIP, seam.UserSP)
}

// walkUserFromSeam walks the user half from the registers at the seam: for a
// kernel dump alone, whose halves are of one moment and so joined by
// construction, or for a user thread without registers of its own. The latter's
// stack is of another moment than the registers, and nothing proves that the
// thread had not moved: it is not called stitched.
func (w *walker) walkUserFromSeam(t *Thread, regs dump.Registers, seam *Seam) {
	opt := unwind.Options{First: unwind.MethodTrapFrame}
	if !t.fromUserDump() { // the thread's own bounds are those of its kernel stack
		if limit, base := w.tebStack(t.TEB); seam.UserSP >= limit && seam.UserSP < base {
			opt.StackLimit, opt.StackBase = limit, base
		}
	}
	if seam.UserSP >= t.StackLimit && seam.UserSP < t.StackBase {
		opt.StackLimit, opt.StackBase = t.StackLimit, t.StackBase
	}
	t.User, t.Wow64 = w.halves(t, regs, opt)
	t.Seam = seam
	if t.fromUserDump() {
		seam.Note = "the user dump has no registers of this thread: those at the seam were used on its memory"
		return
	}
	t.Stitched = true
}
