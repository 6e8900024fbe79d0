package triage

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// Every frame of a real stack takes bytes of the dump that belong to no other
// frame. In a hostile one thousands of threads can share the bytes of one
// stack, and a small file would unfold into gigabytes of answer.
const (
	leastFrames   = 1 << 14 // for any dump: small files may hold fabricated stacks
	bytesPerFrame = 16      // a return address, and the alignment of a call
)

// frameBudget is how many more frames the walks of an analysis may return.
type frameBudget struct {
	total, left int
	cut         int // walks that ended for want of it
}

// newFrameBudget makes the budget for dumps of that many bytes in sum.
func newFrameBudget(size int64) *frameBudget {
	total := leastFrames + int(size/bytesPerFrame)
	return &frameBudget{total: total, left: total}
}

// walk walks a stack of at most opt.MaxFrames frames, or of what is left. One
// frame is always granted: it is the thread's own registers.
func (b *frameBudget) walk(w *unwind.Walker, regs dump.Registers, opt unwind.Options) unwind.Stack {
	most := opt.MaxFrames
	if most <= 0 {
		most = unwind.DefaultMaxFrames
	}
	opt.MaxFrames = max(1, min(most, b.left))
	st := w.Walk(regs, opt)
	if st.Truncated && opt.MaxFrames < most {
		b.cut++
		st.Stop.Detail = fmt.Sprintf("the stacks of this dump have more than %d frames in sum", b.total)
	}
	b.left = max(0, b.left-len(st.Frames))
	return st
}

// damage says what the budget kept out of the answer, nil when nothing.
func (b *frameBudget) damage() *dump.Error {
	if b.cut == 0 {
		return nil
	}
	return dump.Errorf(dump.Limit, "stacks", "more than %d frames in sum, more than a dump of this size can hold without overlap; %d stacks are cut short", b.total, b.cut)
}
