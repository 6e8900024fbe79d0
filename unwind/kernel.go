package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// exceptionFrame is the size that KiBugCheckDispatch and KiExceptionDispatch
// allocate and the return address above it (KEXCEPTION_FRAME, measured).
const exceptionFrame = 0x138 + 8

// The system service stub's frame lies at a fixed place below the trap frame.
func (o *Options) bodySP() uint64     { return o.TrapFrame - threadcontext.TrapFrameBodySP }
func (o *Options) returnSlot() uint64 { return o.TrapFrame - threadcontext.TrapFrameReturnSlot }
func (o *Options) stubRBP() uint64    { return o.TrapFrame + threadcontext.TrapFrameRBP }

// belowTrapSlot reports whether a return address at va can belong to a kernel
// frame inside the system service: from the stub's return slot up there are
// only the stub's own words and what other calls left behind.
func (o *Options) belowTrapSlot(va uint64) bool {
	return !o.atSeam() || va < o.returnSlot()
}

// stepTrapSlot goes to the system service stub's frame, whose place the trap
// frame proves.
func (w *Walker) stepTrapSlot(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	ip, ok := w.stack.Uint64(opt.returnSlot())
	if !ok || f.SP > opt.returnSlot() || !w.plausible(ip, opt) {
		return w.stopAtTrapFrame(regs, opt, why)
	}
	s := w.site(ip - 1)
	if s.notCode() || !s.inModule() || s.inHeaders() || w.callBefore(s, ip) == proofNo {
		return w.stopAtTrapFrame(regs, opt, why)
	}
	w.unproven = 0
	w.guessed(regs, f, guess{ip: ip, sp: opt.bodySP(), fp: opt.stubRBP(), hasFP: true, trust: TrustCFI, method: MethodTrapSlot, detail: why.Detail})
	return Stop{}, true
}

// stopAtTrapFrame ends the kernel half with the registers in the trap frame.
func (w *Walker) stopAtTrapFrame(regs *dump.Registers, opt *Options, why Stop) (Stop, bool) {
	n, _ := w.space.ReadAt(w.trap[:], opt.TrapFrame)
	t, err := threadcontext.ParseTrapFrame(w.trap[:n])
	if err != nil {
		return w.missing(opt.TrapFrame + uint64(n)), false
	}
	if !t.FromUser() {
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the trap frame at %#x is not of an entry from user mode", opt.TrapFrame)}, false
	}
	*regs = t.Registers()
	w.seam = seam{opt.TrapFrame, MethodTrapFrame}
	return Stop{StopTrapFrame, why.Detail}, false
}
