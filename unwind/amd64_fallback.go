package unwind

import "dumptriage/dump"

const (
	// Frame pointers need not point at the saved rbp: Windows compilers set
	// them up to 240 bytes into the frame.
	maxRBPOffset  = 240
	rbpOffsetStep = 16
)

// fallback finds a caller without unwind data; why is what kept it from being
// used, and the reason to stop when nothing is found.
func (w *Walker) fallback(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	if w.tracing() {
		w.reject(w.resolved(f.Lookup).ruleFor(), why.Detail)
	}
	if g, ok := w.fixedFrame(f, opt); ok {
		w.unproven = 0
		w.guessed(regs, f, g)
		return Stop{}, true
	}
	seam := opt.atSeam()
	if seam && f.SP >= opt.bodySP() {
		return w.stopAtTrapFrame(regs, opt, why)
	}
	if why.Reason == StopStackMissing && !seam {
		return why, false
	}
	if seam && f.SP+exceptionFrame == opt.bodySP() {
		if stop, ok := w.stepTrapSlot(regs, f, opt, why); ok {
			return stop, ok
		}
	}
	if t, ok := w.returning(regs, f, opt); ok {
		t.detail = why.Detail + "; the code here is the function's end"
		t.guessed = f.Trust == TrustScan
		return w.land(regs, f, opt, t, Stop{})
	}
	if w.rbpAllowed(f) {
		g, ok := w.followRBP(f, opt, why)
		switch {
		case !ok:
			w.reject(MethodRBP, "rbp does not lead to a saved frame pointer and a return address")
		case g.sp > f.FP+16 && w.provenBelow(f, opt, g.sp-8):
			w.reject(MethodRBP, "rbp leads past a return address that proves itself")
		default:
			if w.tracing() {
				w.note(Note{Kind: NoteUndo, Op: "pop", Reg: dump.RBP, Addr: g.sp - 16, Value: g.fp, Known: true, SP: g.sp - 8})
				w.noteFound(MethodRBP, g.sp-8, g.ip)
			}
			w.guessed(regs, f, g)
			return Stop{}, true
		}
	} else {
		w.reject(MethodRBP, w.whyNotRBP(f))
	}
	stop, ok := w.stepScan(regs, f, opt, why)
	if !ok && seam {
		return w.stepTrapSlot(regs, f, opt, why)
	}
	return stop, ok
}

// returning runs the code at the frame when that is nothing but the end of its
// function (add rsp, pops, ret): that needs no unwind data. A system call stub
// stands at its ret, and so does much code that is called last thing.
func (w *Walker) returning(regs *dump.Registers, f *Frame, opt *Options) (target, bool) {
	s := w.resolved(f.IP)
	if s.kind == sitePdata || s.kind == siteLeaf || s.kind == siteBad {
		return target{}, false
	}
	n := w.readCode(w.code[:], s, f.IP)
	e := matchReturn(w.code[:n])
	if e.kind == epilogNone {
		return target{}, false
	}
	saved := *regs
	t, stop := w.runEpilog(regs, f, e, opt)
	if stop.Reason == "" && t.ip != 0 && w.arrive(t, f, opt) == proofYes {
		return t, true
	}
	*regs = saved
	return target{}, false
}

// rbpAllowed reports whether rbp may be taken for a frame pointer: not in
// images whose unwind data says how they use it.
func (w *Walker) rbpAllowed(f *Frame) bool {
	s := w.resolved(f.Lookup)
	switch s.kind {
	case siteOutside, siteNoImage, siteNoTable:
		return f.HasFP
	case siteBad:
		return f.HasFP && s.dynamic
	}
	return false
}

// followRBP tries rbp as a frame pointer at the customary distances from the
// saved rbp.
func (w *Walker) followRBP(f *Frame, opt *Options, why Stop) (guess, bool) {
	if f.FP < f.SP || f.FP-f.SP > maxFrameGap || f.FP&7 != 0 || !opt.holds(f.FP, 8) {
		return guess{}, false
	}
	for off := uint64(0); off <= maxRBPOffset; off += rbpOffsetStep {
		at := f.FP + off
		if at < f.FP || !opt.holds(at, 16) || !opt.belowTrapSlot(at+8) {
			break
		}
		next, ok1 := w.stack.Uint64(at)
		ip, ok2 := w.stack.Uint64(at + 8)
		if !ok1 || !ok2 {
			break
		}
		if next <= f.FP || next <= at || next-f.FP > maxFrameGap || next&7 != 0 || !opt.holds(next, 8) || !w.onStack(next, opt) {
			continue
		}
		p := w.candidate(ip, opt)
		if p == proofNo {
			continue
		}
		g := guess{ip: ip, sp: at + 16, fp: next, hasFP: true, trust: TrustFramePointer, method: MethodRBP, detail: why.Detail}
		if p == proofUnknown {
			g.detail += "; no code bytes to check the call"
		}
		return g, true
	}
	return guess{}, false
}

// provenBelow reports whether a return address lies between the frame and the
// slot that rbp led to which a CALL precedes and whose own unwind data leads to
// another such: then rbp, which does not point right at a saved rbp, more
// likely belongs to a frame further out.
func (w *Walker) provenBelow(f *Frame, opt *Options, slot uint64) bool {
	for at, words := f.SP, untrustedScan; at < slot && words > 0; at, words = at+8, words-1 {
		ip, ok := w.stack.Uint64(at)
		if !ok {
			return false
		}
		if w.candidate(ip, opt) == proofYes && w.onward(ip, at+8, opt) == proofYes {
			return true
		}
	}
	return false
}

// onward asks the unwind data of a supposed caller whether it leads on from
// there: to another return address (yes), to what cannot be one (no), or where
// that cannot be told without the registers that are not known. It tells stale
// return addresses, whose frames have been overwritten.
func (w *Walker) onward(ip, sp uint64, opt *Options) proof {
	if w.arch != dump.AMD64 || w.resolved(ip-1).kind != sitePdata {
		return proofUnknown
	}
	regs := dump.Registers{Arch: w.arch}
	f := Frame{IP: ip, Lookup: ip - 1, SP: sp}
	t, stop := w.suppose(&regs, &f, w.site(ip-1), opt)
	if stop.Reason != "" || t.machine {
		return proofUnknown
	}
	if t.ip == 0 {
		if w.resolved(ip - 1).dynamic {
			return proofNo // no thread begins in such code
		}
		return proofUnknown
	}
	return w.arrive(t, &f, opt)
}

// onStack reports whether va is stack: within the known bounds or, without
// them, at least readable.
func (w *Walker) onStack(va uint64, opt *Options) bool {
	if opt.bounded() {
		return opt.holds(va, 8)
	}
	_, ok := w.word(va)
	return ok
}

// stepScan looks for the next word on the stack that is a return address.
func (w *Walker) stepScan(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	if w.unproven >= maxUnproven {
		if g, ok := w.anchor(f, opt, why); ok {
			w.guessed(regs, f, g)
			return Stop{}, true
		}
		return unprovenLimit(why), false
	}
	const size = 8
	for at, words := f.SP, scanWords(f); words > 0 && at+size > at && opt.holds(at, size) && opt.belowTrapSlot(at); at, words = at+size, words-1 {
		ip, ok := w.word(at)
		if !ok {
			if at == f.SP {
				return w.missing(at), false
			}
			break
		}
		if storedContext(f, ip) {
			continue
		}
		p := w.candidate(ip, opt)
		if p == proofNo || w.onward(ip, at+size, opt) == proofNo {
			if w.tracing() && w.plausible(ip, opt) {
				w.noteCandidate(at, ip, p)
			}
			continue
		}
		if p == proofUnknown || w.dynamic != nil {
			if slot, ok := w.leadsOn(ip, at, opt); ok {
				ip, at, p = slot.ip, slot.at, proofYes
			}
		}
		g := guess{ip: ip, sp: at + size, trust: TrustScan, method: MethodScan, detail: why.Detail}
		if p == proofUnknown {
			w.unproven++
			g.detail += "; unproven: no code bytes to check the call"
		} else {
			w.unproven = 0
		}
		if w.tracing() {
			w.noteFound(MethodScan, at, ip)
		}
		w.guessed(regs, f, g)
		return Stop{}, true
	}
	if g, ok := w.anchor(f, opt, why); ok {
		w.guessed(regs, f, g)
		return Stop{}, true
	}
	return why, false
}

// candidate reports whether v can be a return address: in code, and preceded by
// a CALL as far as code bytes tell. Outside modules only proof will do.
func (w *Walker) candidate(v uint64, opt *Options) proof {
	if !w.plausible(v, opt) || opt.inStack(v) {
		return proofNo
	}
	s := w.site(v - 1)
	if s.notCode() || s.inHeaders() {
		return proofNo
	}
	if !s.inModule() && !s.exec {
		return proofNo
	}
	if s.beginsFunction(v) {
		return proofNo
	}
	if s.dynamic && w.framelessCall(s) {
		return proofNo
	}
	p := w.callBefore(w.site(v-1), v)
	if p == proofUnknown && !w.site(v-1).inModule() {
		return proofNo
	}
	return p
}
