package unwind

import (
	"bytes"
	"fmt"

	"dumptriage/dump"
)

const (
	lowestEIP   = 4096 // below it a walk has run past the thread's start
	x86Lookback = 4    // bytes before eip that tell a prologue
)

// stepX86 unwinds by frame records of debug information, but for the places in a
// function where they do not hold yet or any more; by running the function's
// code; along the EBP chain; and scans where the chain is broken.
func (w *Walker) stepX86(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	if stop, end := w.bounds(f, opt); end {
		return stop, false
	}
	if f.Trust == TrustContext {
		w.x86.effort = walkEffort
	}
	w.x86.params = w.params86(f)
	w.noteSite86(f)
	if f.exact() && w.nullCall(w.site(f.IP), opt) {
		return w.stepNullCall86(regs, f, opt)
	}
	if f.exact() {
		if stop, ok, done := w.stepStopped86(regs, f, opt); done {
			return stop, ok
		}
	}
	if w.stepTaskGate86(regs, f, opt) {
		return Stop{}, true
	}
	trap, trapped := w.trapOf86(f, opt)
	if trapped && trap.method == MethodFPO {
		return w.stepTrap86(regs, f, &trap)
	}
	stop, ok, done, why := w.stepRecords86(regs, f, opt)
	if done {
		return stop, ok
	}
	g, ok := w.frameless86(f, opt)
	if !f.exact() {
		w.noteFrameless86(f, g, ok)
	}
	if ok {
		return w.take86(regs, f, g.after(why))
	}
	if g, ok := w.stepSimulated(f, opt); ok && (!trapped || g.at < trap.va) { // a function without a frame, inside the trap's
		return w.take86(regs, f, g.after(why))
	}
	if trapped {
		return w.stepTrap86(regs, f, &trap)
	}
	w.rejectSimulated86(f)
	g, stop = w.followEBP(f, opt)
	switch stop.Reason {
	case "":
		return w.take86(regs, f, g.after(why))
	case StopEndOfStack:
		return stop, false
	}
	w.reject(MethodEBP, stop.Detail)
	return w.scan86(regs, f, opt, stop.after(why))
}

// stepStopped86 serves a frame that stands where its code alone says how the
// stack lies: at its function's entry, or in its end.
func (w *Walker) stepStopped86(regs *dump.Registers, f *Frame, opt *Options) (stop Stop, ok, done bool) {
	g, ok := w.frameless86(f, opt)
	w.noteFrameless86(f, g, ok)
	if ok {
		stop, ok = w.take86(regs, f, g)
		return stop, ok, true
	}
	g, out, ok := w.epilog86(regs, f, opt)
	if !ok {
		return Stop{}, false, false
	}
	w.noteGuess(g)
	w.unproven, w.settling = 0, 0
	w.left86(g.sp, g.popped)
	*regs = out
	w.caller(regs, f, g.ip, g.sp, g.trust, g.method, g.detail)
	return Stop{}, true, true
}

// after adds why a better rule was not used.
func (g guess) after(why string) guess {
	g.detail = joined(g.detail, why)
	return g
}

func (s Stop) after(why string) Stop {
	s.Detail = joined(s.Detail, why)
	return s
}

func joined(detail, why string) string {
	if detail == "" || why == "" {
		return detail + why
	}
	return detail + "; " + why
}

func (w *Walker) take86(regs *dump.Registers, f *Frame, g guess) (Stop, bool) {
	if g.ip < lowestEIP {
		return Stop{StopEndOfStack, ""}, false
	}
	w.unproven = 0
	w.noteGuess(g)
	w.left86(g.sp, g.popped)
	w.guessed(regs, f, g)
	return Stop{}, true
}

// followEBP takes one step along the EBP chain.
func (w *Walker) followEBP(f *Frame, opt *Options) (guess, Stop) {
	broken := func(format string, args ...any) (guess, Stop) {
		return guess{}, Stop{StopNoUnwindData, "EBP chain: " + fmt.Sprintf(format, args...)}
	}
	switch {
	case !f.HasFP:
		return broken("ebp is not known")
	case f.FP == 0 && !f.exact() && !opt.atSeam():
		return guess{}, Stop{StopEndOfStack, "the EBP chain ends"}
	case f.FP&3 != 0 || f.FP < f.SP || !opt.holds(f.FP, 8):
		return broken("ebp %#x is not on the stack above esp %#x", f.FP, f.SP)
	case opt.atSeam() && f.FP > opt.TrapFrame:
		return broken("ebp %#x lies beyond the trap frame", f.FP)
	}
	next, ok1 := w.word(f.FP)
	ip, ok2 := w.word(f.FP + 4)
	switch {
	case !ok1 || !ok2:
		return guess{}, w.missing(f.FP)
	case ip < lowestEIP && next == 0:
		return guess{}, Stop{StopEndOfStack, ""}
	case next != 0 && (next <= f.FP || next-f.FP > maxFrameGap || next&3 != 0 || !opt.holds(next, 8)):
		return broken("the saved ebp %#x at %#x is not further up the stack", next, f.FP)
	case w.returnAddress86(ip, opt) == proofNo:
		return broken("%#x at %#x is no return address", ip, f.FP+4)
	}
	return guess{ip: ip, sp: f.FP + 8, fp: next, hasFP: true, at: f.FP + 4, fpAt: f.FP, trust: TrustFramePointer, method: MethodEBP}, Stop{}
}

// returnAddress86 is candidate for a place that must hold a return address, so
// that code outside modules needs no proof.
func (w *Walker) returnAddress86(ip uint64, opt *Options) proof {
	if !w.plausible(ip, opt) || opt.inStack(ip) {
		return proofNo
	}
	s := w.site(ip - 1)
	if s.notCode() || s.inHeaders() || (!s.inModule() && !s.exec) {
		return proofNo
	}
	return w.callBefore(s, ip)
}

// frameless86 serves code that has no frame of its own where it stands: at a
// function's entry, in its prologue, or at its return. It needs code bytes and
// a return address that they prove.
func (w *Walker) frameless86(f *Frame, opt *Options) (guess, bool) {
	b, before := w.code86(f.IP)
	if len(b) == 0 {
		return guess{}, false
	}
	drop := uint64(0) // arguments that the return takes off the stack
	g := guess{fp: f.FP, hasFP: f.HasFP, trust: TrustFramePointer, method: MethodEBP}
	switch {
	case b[0] == 0xc3 || (b[0] == 0xc2 && len(b) >= 3):
		g.detail = "at the function's return"
		if len(b) >= 3 && b[0] == 0xc2 {
			drop = uint64(b[1]) | uint64(b[2])<<8
		}
	case !f.exact():
		return guess{}, false
	case begins86(b):
		g.detail = "at the function's entry"
	case bytes.HasSuffix(before, prologue86[:1]) && (bytes.HasPrefix(b, prologue86[1:]) || bytes.HasPrefix(b, prologueGNU86[1:])):
		g.detail = "in the function's prologue"
		g.fpAt = f.SP
		if g.fp, g.hasFP = w.word(f.SP); !g.hasFP {
			return guess{}, false
		}
		return w.popReturn86(g, f.SP+4, 0, opt)
	default:
		return guess{}, false
	}
	if ip, ok := w.word(f.SP); ok && ip == f.IP && f.exact() {
		// A system call stub's return: its own address may lie on top, left by
		// the call that entered it.
		return w.popReturn86(g, f.SP+4, drop, opt)
	}
	return w.popReturn86(g, f.SP, drop, opt)
}

var (
	prologue86    = []byte{0x55, 0x8b, 0xec}             // push ebp; mov ebp, esp
	prologueGNU86 = []byte{0x55, 0x89, 0xe5}             // the same, as other assemblers encode it
	hotpatch86    = []byte{0x8b, 0xff, 0x55, 0x8b, 0xec} // mov edi, edi before it
)

// begins86 reports whether code begins with the customary first instructions.
func begins86(code []byte) bool {
	return bytes.HasPrefix(code, prologue86) || bytes.HasPrefix(code, prologueGNU86) || bytes.HasPrefix(code, hotpatch86)
}

// popReturn86 takes the return address at va, and drop bytes besides.
func (w *Walker) popReturn86(g guess, va, drop uint64, opt *Options) (guess, bool) {
	ip, ok := w.word(va)
	if !ok || !opt.holds(va, 4) || w.returnAddress86(ip, opt) != proofYes {
		return guess{}, false
	}
	g.ip, g.at, g.sp, g.popped = ip, va, va+4+drop, drop > 0
	return g, true
}

// code86 returns a few instruction bytes from ip on and before it.
func (w *Walker) code86(ip uint64) (at, before []byte) {
	s := w.site(ip)
	n := w.readCode(w.code[:8], s, ip)
	m := w.readCode(w.other[:x86Lookback], s, ip-x86Lookback)
	if m < x86Lookback {
		m = 0
	}
	return w.code[:n], w.other[:m]
}

// savedEBP guesses the caller's ebp from the word below a return address that
// was found by scanning: where a function pushed it. An ebp that lies above the
// return address has not been changed since.
func (w *Walker) savedEBP(f *Frame, opt *Options, at uint64) (uint64, bool) {
	if at >= 4 {
		if v, ok := w.word(at - 4); ok && v > at && v-at <= maxFrameGap && v&3 == 0 && opt.holds(v, 8) {
			return v, true
		}
	}
	if f.HasFP && f.FP > at && f.FP-at <= maxFrameGap && f.FP&3 == 0 && opt.holds(f.FP, 8) {
		return f.FP, true
	}
	return 0, false
}

// stepNullCall86 unwinds a call through a null or wild pointer.
func (w *Walker) stepNullCall86(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	why := Stop{StopNoUnwindData, fmt.Sprintf("%#x is not code", f.IP)}
	ip, ok := w.word(f.SP)
	if !ok {
		return w.missing(f.SP), false
	}
	g := guess{ip: ip, at: f.SP, sp: f.SP + 4, fp: f.FP, hasFP: f.HasFP, trust: TrustFramePointer, method: MethodLeaf, detail: fmt.Sprintf("called %#x, which is not code", f.IP)}
	switch w.candidate(ip, opt) {
	case proofYes:
		return w.take86(regs, f, g)
	case proofUnknown:
		g.trust, g.detail = TrustScan, g.detail+"; no code bytes to prove the call"
		return w.take86(regs, f, g)
	}
	return w.scan86(regs, f, opt, why)
}
