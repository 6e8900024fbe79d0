package unwind

import (
	"fmt"

	"dumptriage/dump"
)

const (
	arm64Detail = ".xdata unwinding for ARM64 is not supported yet"
	arm64VABits = 47      // user addresses; kernel ones have all bits above set
	arm64Half   = 1 << 55 // tells the halves apart whatever pointer authentication adds
)

// stepARM64 follows the frame records (x29: saved x29, return address). A leaf
// function in frame 0 has none, so its caller is then missing from the stack.
func (w *Walker) stepARM64(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	if stop, end := w.bounds(f, opt); end {
		return stop, false
	}
	bad := func(format string, args ...any) (Stop, bool) {
		return Stop{StopNoUnwindData, fmt.Sprintf(format, args...) + "; " + arm64Detail}, false
	}
	switch {
	case !f.HasFP:
		return bad("x29 is not known")
	case f.FP == 0 && !f.exact():
		return Stop{StopEndOfStack, "the chain of frame records ends"}, false
	case f.FP&7 != 0 || f.FP < f.SP || !opt.holds(f.FP, 16):
		return bad("x29 %#x is not on the stack above sp %#x", f.FP, f.SP)
	}
	next, ok1 := w.word(f.FP)
	lr, ok2 := w.word(f.FP + 8)
	if !ok1 || !ok2 {
		return missing(f.FP), false
	}
	ip := stripPAC(lr)
	switch {
	case ip == 0:
		return Stop{StopEndOfStack, ""}, false
	case next != 0 && (next <= f.FP || next&7 != 0 || !opt.holds(next, 16)):
		return bad("the saved x29 %#x at %#x is not further up the stack", next, f.FP)
	case !w.plausible(ip, opt) || ip&3 != 0 || w.site(ip-4).notCode():
		return bad("%#x at %#x is no return address", ip, f.FP+8)
	}
	w.guessed(regs, f, guess{ip: ip, sp: f.FP + 16, fp: next, hasFP: true, trust: TrustFramePointer, method: MethodRBP, detail: arm64Detail})
	return Stop{}, true
}

// stripPAC removes a pointer authentication code, which fills the bits that
// address translation ignores.
func stripPAC(v uint64) uint64 {
	const mask = uint64(1)<<arm64VABits - 1
	if v&arm64Half != 0 {
		return v | ^mask
	}
	return v & mask
}
