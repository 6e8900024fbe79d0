package unwind

import (
	"bytes"
	"fmt"

	"dumptriage/dump"
)

// stepStopped unwinds a frame that stands at any instruction: it may be in an
// epilog, which the unwind data of version 1 does not describe.
func (w *Walker) stepStopped(regs *dump.Registers, f *Frame, s *site, opt *Options) (Stop, bool) {
	if s.rule.v3 {
		return w.stepStoppedV3(regs, f, s, opt)
	}
	saved := *regs
	e, detail := w.epilog(s, false)
	if w.tracing() {
		w.noteEpilog(e, detail)
		s = w.resolved(f.Lookup)
	}
	t, stop := w.runStopped(regs, f, s, e, opt)
	if stop.Reason == "" {
		stop = w.check(t, f, opt)
	}
	guessed := e.guessed
	if wantsRelaxed(stop) {
		if u, again, remark, ok := w.secondTry(saved, f, e, opt); ok {
			*regs, t, stop, detail = again, u, Stop{}, remark
			guessed = e.kind != epilogNone
		}
	}
	t.detail, t.guessed = detail, guessed
	return w.land(regs, f, opt, t, stop)
}

// secondTry is for a return address that cannot be right. Some compilers put
// instructions into epilogs that the documented forms lack. And a jump out of a
// function to code that never returns may leave the frame where it is, which
// makes it look like an epilog: then the body's rule is asked.
func (w *Walker) secondTry(regs dump.Registers, f *Frame, e epilog, opt *Options) (t target, after dump.Registers, remark string, ok bool) {
	remark = "the epilog is not of a documented form"
	var stop Stop
	switch s := w.resolved(f.Lookup); {
	case e.kind == epilogBytes && e.bareJump():
		remark = "the code here looks like an epilog but has not freed the frame"
		t, stop = w.undo(&regs, f, s, opt)
	case e.kind == epilogNone:
		if e, _ = w.epilog(s, true); e.kind == epilogNone {
			return t, regs, "", false
		}
		t, stop = w.runEpilog(&regs, f, e, opt)
	default:
		return t, regs, "", false
	}
	return t, regs, remark, stop.Reason == "" && w.check(t, f, opt).Reason == ""
}

// wantsRelaxed reports whether a step failed because its return address is not
// executable or is where no stack is.
func wantsRelaxed(stop Stop) bool {
	return stop.Reason == StopBadUnwindInfo || stop.Reason == StopStackMissing || stop.Reason == StopNoProgress
}

func (w *Walker) runStopped(regs *dump.Registers, f *Frame, s *site, e epilog, opt *Options) (target, Stop) {
	if e.kind == epilogNone {
		return w.undo(regs, f, s, opt)
	}
	return w.runEpilog(regs, f, e, opt)
}

// resolved is site with its rule.
func (w *Walker) resolved(addr uint64) *site {
	s := w.site(addr)
	w.resolve(s)
	return s
}

// epilog finds out whether a site stands in an epilog. The remark says what
// kept it from knowing.
func (w *Walker) epilog(s *site, relaxed bool) (e epilog, remark string) {
	info, err := s.image.UnwindInfo(s.rf.UnwindInfo)
	if err != nil {
		return epilog{}, ""
	}
	if info.Version == 2 {
		if len(info.Epilogs) == 0 && info.EpilogSize == 0 && !relaxed {
			return epilog{}, ""
		}
		if !relaxed {
			return epilogV2(s, info), ""
		}
	}
	code, remark := w.epilogCode(s)
	if e = matchEpilog(code, s, info, relaxed); e.kind != epilogNone || relaxed || !buildsGoFrame(&s.rule) {
		return e, remark
	}
	// The caller's frame pointer makes any answer look right in Go code, so
	// what cannot be but an epilog is not left to a second try.
	if w.restarts(s, s.addr, 1) {
		return epilog{kind: epilogBytes, fromReg: dump.RSP}, restartDetail
	}
	if w.jumpsOn(s, code) {
		return epilog{kind: epilogBytes, fromReg: dump.RSP, guessed: true}, "the code here looks like a tail jump"
	}
	return matchReturn(code), remark
}

// epilogCode returns the instructions at a site. Where the dump's differ from
// the image's (a breakpoint, a hook) the image's are what the unwind data
// describes.
func (w *Walker) epilogCode(s *site) (code []byte, remark string) {
	n, _ := w.space.ReadAt(w.code[:], s.addr)
	m := readImage(w.other[:], s, s.addr)
	switch {
	case n == 0 && m == 0:
		return nil, "no code bytes at hand to tell an epilog"
	case m == 0:
		return w.code[:n], ""
	case n == 0:
		return w.other[:m], ""
	}
	if both := min(n, m); !bytes.Equal(w.code[:both], w.other[:both]) {
		return w.other[:m], "the code is patched in memory; the image's was used"
	}
	if m > n {
		return w.other[:m], ""
	}
	return w.code[:n], ""
}

// runEpilog does the rest of an epilog.
func (w *Walker) runEpilog(regs *dump.Registers, f *Frame, e epilog, opt *Options) (target, Stop) {
	sp := f.SP
	if e.fromReg != dump.RSP {
		v, known := regs.Get(e.fromReg)
		if !known {
			return target{}, Stop{StopNoUnwindData, fmt.Sprintf("the frame register %s is not known in the epilog", w.arch.RegName(e.fromReg))}
		}
		sp = v
	}
	sp += e.add
	for _, reg := range e.pops[:e.popCount] {
		w.restore(regs, reg, sp)
		sp += 8
		if w.tracing() {
			w.noteUndo(regs, undo{op: undoPop, reg: reg}, sp-8, sp)
		}
	}
	sp += e.flags
	if e.machine {
		return w.machineFrame(regs, sp, opt)
	}
	t, stop := w.ret(sp, MethodEpilog)
	t.sp += e.args
	return t, stop
}

// nullCall reports that a frame stands where no code can be: a call through a
// null or wild pointer. Only its return address says where it came from.
func (w *Walker) nullCall(s *site, opt *Options) bool {
	if s.inModule() {
		return false
	}
	return !w.plausible(s.addr, opt) || s.notCode()
}

// stepNullCall unwinds a call to where no code is: nothing but the call has
// happened, so the return address is on top of the stack.
func (w *Walker) stepNullCall(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	where := f.IP
	why := Stop{StopNoUnwindData, fmt.Sprintf("%#x is not code", where)}
	t, stop := w.leaf(f)
	if stop.Reason != "" {
		return stop, false
	}
	if t.ip == 0 {
		return w.fallback(regs, f, opt, why)
	}
	switch p := w.arrive(t, f, opt); {
	case p == proofYes:
		t.detail = fmt.Sprintf("called %#x, which is not code", where)
		return w.land(regs, f, opt, t, Stop{})
	case p == proofUnknown && w.site(t.ip-1).inModule() && !w.site(t.ip-1).inHeaders():
		w.caller(regs, f, t.ip, t.sp, TrustScan, MethodLeaf, fmt.Sprintf("called %#x, which is not code; no code bytes to prove the call", where))
		return Stop{}, true
	}
	return w.fallback(regs, f, opt, why)
}

// stepEntry unwinds a frame that is known to stand at its function's first
// instruction.
func (w *Walker) stepEntry(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	t, stop := w.leaf(f)
	t.detail = opt.EntryProved
	return w.landChecked(regs, f, opt, t, stop)
}
