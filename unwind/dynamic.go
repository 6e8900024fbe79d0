package unwind

import (
	"errors"
	"fmt"

	"dumptriage/dump"
)

// Code made at run time (JIT) is entered and left through native code of which
// often no image is at hand. A walk then loses every register but rip and rsp,
// and with them the frame register that the functions of a JIT are unwound by.
// This file finds it again: the stack holds the frame, and a wrong guess does
// not lead on from function to function.

const (
	frameWords    = 512     // of one JIT frame that are searched for its frame base
	anchorWords   = 1 << 13 // of the stack that are searched for a way back in
	followed      = 3       // steps that a guess must lead on for, as long as it stays in such code
	reentryEffort = 1 << 16 // words looked at in one walk; a step tried counts tryEffort
	tryEffort     = 16
	// A call that is over may leave frames behind that lead on too: to the live
	// ones, where both return to. They were never more than two, so only what
	// comes after is certain again.
	settlingSteps = 2
)

// lacksFrame reports whether a site's unwind data needs a frame register that
// is not known.
func (w *Walker) lacksFrame(regs *dump.Registers, s *site) bool {
	for _, u := range s.rule.ops {
		if u.op == undoFrame {
			return !regs.Known(u.reg)
		}
	}
	return false
}

// framelessCall reports whether a function's unwind data says that it cannot
// have called anything: it makes no room for a callee's parameters.
func (w *Walker) framelessCall(s *site) bool {
	if s.kind == siteUnresolved {
		w.resolve(s)
	}
	return s.kind == sitePdata && len(s.rule.ops) == 0
}

// stepReentry unwinds a function by a frame register that is searched for.
func (w *Walker) stepReentry(regs *dump.Registers, f *Frame, s *site, opt *Options) (Stop, bool) {
	r, ok := w.findFrame(f.Lookup, f.SP, opt)
	if !ok {
		_, stop := w.undo(regs, f, w.resolved(f.Lookup), opt)
		return w.fallback(regs, f, opt, stop)
	}
	if w.tracing() {
		w.noteReentry(f, opt, r)
	}
	*regs = r.regs
	w.unproven, w.settling = 0, settlingSteps
	trust := TrustCFIScan
	if r.t.presume {
		trust = TrustScan
	}
	w.caller(regs, f, r.t.ip, r.t.sp, trust, r.t.method, "the frame register was not known; its value is the first on the stack that leads on")
	return Stop{}, true
}

// reentry is a way back into code made at run time: where the frame's pushed
// registers lie, and what is known of the caller.
type reentry struct {
	at   uint64
	regs dump.Registers
	t    target
}

// findFrame searches the stack from sp on for the frame of the function at
// lookup, whose frame register is not known: the first place from which the
// unwind data leads on.
func (w *Walker) findFrame(lookup, sp uint64, opt *Options) (reentry, bool) {
	s := w.resolved(lookup)
	if s.kind != sitePdata || !s.dynamic {
		return reentry{}, false
	}
	reg, off, saved := frameShape(s)
	for at, words := sp, frameWords; words > 0 && w.effort > 0 && opt.holds(at, 16); at, words = at+8, words-1 {
		w.effort--
		if saved && !w.framePointer(at, opt) {
			continue
		}
		w.effort -= tryEffort
		regs := dump.Registers{Arch: w.arch}
		regs.Set(reg, at+off)
		f := Frame{Lookup: lookup, SP: sp}
		t, stop := w.suppose(&regs, &f, w.resolved(lookup), opt)
		if stop.Reason != "" || t.machine || t.ip == 0 || w.check(t, &f, opt).Reason != "" {
			continue
		}
		if w.candidate(t.ip, opt) != proofNo && w.follows(regs, t, opt) {
			return reentry{at, regs, t}, true
		}
	}
	return reentry{}, false
}

// frameShape returns the frame register of a site's unwind data, its distance
// from where the pushed registers lie, and whether the first of those is its
// caller's value, as it is after push rbp; mov rbp, rsp.
func frameShape(s *site) (reg dump.Reg, off uint64, saved bool) {
	for i, u := range s.rule.ops {
		if u.op == undoFrame {
			next := i + 1
			saved = next < len(s.rule.ops) && s.rule.ops[next].op == undoPop && s.rule.ops[next].reg == u.reg
			return u.reg, uint64(u.val), saved
		}
	}
	return 0, 0, false
}

// framePointer reports whether the word at va can be a saved frame pointer.
func (w *Walker) framePointer(va uint64, opt *Options) bool {
	v, ok := w.stack.Uint64(va)
	return ok && v > va && v&7 == 0 && w.onStack(v, opt)
}

// follows reports whether, from where a guess has led, exact steps follow: at
// least one, and none that fails before the walk leaves code made at run time.
func (w *Walker) follows(regs dump.Registers, t target, opt *Options) bool {
	for n := range followed {
		s := w.resolved(t.ip - 1)
		if s.kind != sitePdata || !s.dynamic {
			return n > 0
		}
		if w.lacksFrame(&regs, s) {
			return false
		}
		f := Frame{IP: t.ip, Lookup: t.ip - 1, SP: t.sp}
		regs.ForgetVolatile()
		var stop Stop
		w.effort -= tryEffort
		t, stop = w.suppose(&regs, &f, s, opt)
		if stop.Reason != "" || t.machine {
			return false
		}
		if t.ip == 0 {
			return n > 0
		}
		if w.check(t, &f, opt).Reason != "" || w.candidate(t.ip, opt) == proofNo {
			return false
		}
	}
	return true
}

// slot is a return address and where on the stack it is.
type slot struct{ at, ip uint64 }

// leadsOn reports whether a supposed return address lies in code made at run
// time and a frame can be found on the stack from which exact steps follow. The
// frame may be that of a later return address, to which calls that are over have
// left pointers further in: the last before the frame is returned.
func (w *Walker) leadsOn(ip, at uint64, opt *Options) (slot, bool) {
	if w.dynamic == nil {
		return slot{}, false
	}
	s := w.resolved(ip - 1)
	if !s.dynamic || s.kind != sitePdata {
		return slot{}, false
	}
	var none dump.Registers
	if !w.lacksFrame(&none, s) {
		regs := dump.Registers{Arch: w.arch}
		return slot{at, ip}, w.follows(regs, target{ip: ip, sp: at + 8}, opt)
	}
	reg, off, saved := frameShape(s)
	r, ok := w.findFrame(ip-1, at+8, opt)
	if !ok {
		return slot{}, false
	}
	best := slot{at, ip}
	for at += 8; at < r.at; at += 8 {
		v, ok := w.stack.Uint64(at)
		if !ok || w.candidate(v, opt) == proofNo {
			continue
		}
		s := w.resolved(v - 1)
		if reg2, off2, saved2 := frameShape(s); s.dynamic && s.kind == sitePdata && reg2 == reg && off2 == off && saved2 == saved {
			best = slot{at, v}
		}
	}
	return best, true
}

// anchor searches the stack, further than a plain scan would, for a return
// address in code made at run time from which exact steps follow.
func (w *Walker) anchor(f *Frame, opt *Options, why Stop) (guess, bool) {
	if w.dynamic == nil || !w.dynamic.HasDynamicTables() {
		return guess{}, false
	}
	for at, words := f.SP, anchorWords; words > 0 && w.effort > 0 && opt.holds(at, 8); at, words = at+8, words-1 {
		w.effort--
		ip, ok := w.stack.Uint64(at)
		if !ok {
			break
		}
		if w.candidate(ip, opt) == proofNo {
			continue
		}
		slot, ok := w.leadsOn(ip, at, opt)
		if !ok {
			continue
		}
		w.unproven = 0
		if w.tracing() {
			w.noteFound(MethodScan, slot.at, slot.ip)
		}
		return guess{ip: slot.ip, sp: slot.at + 8, trust: TrustScan, method: MethodScan,
			detail: why.Detail + "; the next return address into code made at run time from which unwind data leads on"}, true
	}
	return guess{}, false
}

// presumed is the remark for frames found by a rule that presume made.
const presumed = "the unwind data of this code is not in the dump; by its extent it is that of frames that begin with push rbp; mov rbp, rsp"

// trustOf says how far the target of unwind data can be believed, and adds to
// its remark why not fully.
func (w *Walker) trustOf(t *target) Trust {
	trust := TrustCFI
	if t.guessed {
		trust = TrustCFIScan
	}
	if t.presume {
		trust, t.detail = TrustFramePointer, presumed
	}
	if w.settling > 0 {
		if w.settling--; w.settling > 0 {
			t.detail = "follows from a frame register that was searched for"
			if t.presume {
				return TrustScan
			}
			return TrustCFIScan
		}
	}
	return trust
}

// notInDump reports whether an error says that bytes are not in the dump.
func notInDump(err error) bool {
	e, ok := errors.AsType[*dump.Error](err)
	return ok && (e.Code == dump.OutOfRange || e.Code == dump.Truncated)
}

// presume makes the rule for an entry that stands for a whole range of
// functions where its unwind data is not in the dump: V8 is known to make such
// entries, and there is but one thing that can be true of all its functions.
func (s *site) presume() {
	s.kind, s.method = sitePdata, MethodRBP
	s.rule = rule{ops: append(s.rule.ops[:0], undo{undoFrame, dump.RBP, 0}, undo{undoPop, dump.RBP, 0}), baseReg: dump.RSP}
}

// onlyFrame forgets what an entry for a whole range of functions says nothing
// about: their prologs may have saved any register.
func onlyFrame(regs *dump.Registers) {
	rbp, known := regs.Get(dump.RBP)
	*regs = dump.Registers{Arch: regs.Arch}
	if known {
		regs.Set(dump.RBP, rbp)
	}
}

// beforeFrame reports whether a site stands where its function has not made
// its frame yet: at push rbp, or behind it at mov rbp, rsp.
func (w *Walker) beforeFrame(s *site) bool { return w.pushesDone(s) >= 0 }

// pushesDone tells from the code at a site how much of push rbp; mov rbp, rsp
// is done when not all is: the pushes, else -1.
func (w *Walker) pushesDone(s *site) int {
	n := w.readCode(w.code[:3], s, s.addr)
	switch code := string(w.code[:n]); {
	case n > 0 && code[0] == 0x55:
		return 0
	case code == "\x48\x89\xe5", code == "\x48\x8b\xec":
		return 1
	}
	return -1
}

// stepBeforeFrame unwinds such a site: the return address is on top of the
// stack, or behind the pushed rbp.
func (w *Walker) stepBeforeFrame(regs *dump.Registers, f *Frame, s *site, opt *Options) (Stop, bool) {
	sp, method := f.SP, s.method
	if w.pushesDone(s) > 0 {
		w.restore(regs, dump.RBP, sp)
		sp += 8
	}
	onlyFrame(regs)
	t, stop := w.ret(sp, method)
	if stop.Reason == "" {
		stop = w.check(t, f, opt)
	}
	if stop.Reason == "" && w.arrive(t, f, opt) == proofNo { // a push of something else, within the function
		stop = Stop{StopNoUnwindData, fmt.Sprintf("the code at %#x looks like its function's first, yet %#x is no return address", f.IP, t.ip)}
	}
	t.detail = "the function has not made its frame yet"
	return w.land(regs, f, opt, t, stop)
}
