package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// Offsets in the machine frame that the processor pushes on an interrupt or
// exception: rip, cs, eflags, rsp, ss.
const (
	machCS     = 8
	machEFlags = 16
	machRSP    = 24
	machSS     = 32

	trapFrameRip = 0x168 // of the machine frame within a KTRAP_FRAME
	ring3        = 3     // privilege bits of a code selector
)

// stepAMD64 applies the best rule for the frame, and falls back to heuristics
// when it has none or its answer cannot be right.
func (w *Walker) stepAMD64(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	if stop, end := w.bounds(f, opt); end {
		return stop, false
	}
	if opt.EntryProved != "" && f.exact() {
		return w.stepEntry(regs, f, opt)
	}
	s := w.site(f.Lookup)
	if s.kind == siteUnresolved {
		w.resolve(s)
	}
	if w.tracing() {
		w.noteSite(s)
		s = w.resolved(f.Lookup)
	}
	if d := s.entry; d != NoDispatcher && !f.exact() && !opt.Kernel {
		if w.stepDispatcher(regs, f, d, opt) {
			return Stop{}, true
		}
		s = w.resolved(f.Lookup)
	}
	switch {
	case s.kind == siteOther:
		return w.stepOther(regs, f, opt)
	case f.exact() && w.nullCall(s, opt):
		return w.stepNullCall(regs, f, opt)
	case s.kind == sitePdata:
		return w.stepPdata(regs, f, s, opt)
	case s.kind == siteLeaf:
		return w.stepLeaf(regs, f, opt)
	}
	stop := w.lack(s)
	if kind := s.kind; kind == siteNoImage || kind == siteNoTable {
		if t, ok := w.byCFI(regs, f, opt); ok {
			return w.land(regs, f, opt, t, Stop{})
		}
	}
	return w.fallback(regs, f, opt, stop)
}

// stepPdata follows the entry of a function table.
func (w *Walker) stepPdata(regs *dump.Registers, f *Frame, s *site, opt *Options) (Stop, bool) {
	switch {
	case s.coarse && f.exact() && w.beforeFrame(s):
		return w.stepBeforeFrame(regs, f, s, opt)
	case s.dynamic && w.lacksFrame(regs, s):
		return w.stepReentry(regs, f, s, opt)
	case f.exact():
		return w.stepStopped(regs, f, s, opt)
	case w.restarts(s, f.IP, 0):
		t, stop := w.ret(f.SP, MethodEpilog)
		t.detail = restartDetail
		return w.landChecked(regs, f, opt, t, stop)
	}
	t, stop := w.undo(regs, f, s, opt)
	return w.landChecked(regs, f, opt, t, stop)
}

// stepLeaf takes the return address of a function without a frame.
func (w *Walker) stepLeaf(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	t, stop := w.leaf(f)
	if stop.Reason == "" && !w.leafLeads(t, f, opt) {
		stop = Stop{StopNoUnwindData, fmt.Sprintf("%s: no function table entry covers %#x, and %#x is no return address", w.name(w.site(f.Lookup)), f.Lookup, t.ip)}
	}
	return w.land(regs, f, opt, t, stop)
}

// bounds ends the walk of a stack that has no room for a caller.
func (w *Walker) bounds(f *Frame, opt *Options) (Stop, bool) {
	if opt.bounded() && f.SP >= opt.StackBase {
		return Stop{StopEndOfStack, "the stack's base is reached"}, true
	}
	return Stop{}, false
}

// target is where a rule leads.
type target struct {
	ip, sp  uint64
	method  Method
	machine bool   // by a machine frame
	user    bool   // a machine frame of ring 3 that ends the kernel half
	presume bool   // by unwind data that is not in the dump
	guessed bool   // by code that was run on from a place that is itself a guess
	detail  string // remark for the frame
}

// undo undoes the prolog. regs are changed as it goes.
func (w *Walker) undo(regs *dump.Registers, f *Frame, s *site, opt *Options) (target, Stop) {
	sp := f.SP
	base, haveBase := regs.Get(s.rule.baseReg)
	base -= uint64(s.rule.baseOff)
	for _, u := range s.rule.ops {
		at := sp
		if s.rule.v3 {
			base, haveBase = sp, true
		}
		switch u.op {
		case undoAlloc:
			sp += uint64(u.val)
		case undoPop:
			w.restore(regs, u.reg, sp)
			sp += 8
		case undoFrame:
			v, known := regs.Get(u.reg)
			if !known {
				return target{}, Stop{StopNoUnwindData, fmt.Sprintf("%s: the function's frame register %s is not known here", w.name(s), w.arch.RegName(u.reg))}
			}
			sp = v - uint64(u.val)
		case undoSave:
			at = base + uint64(u.val)
			if haveBase {
				w.restore(regs, u.reg, at)
			} else {
				regs.Forget(u.reg)
			}
		case undoSaveXMM:
			at = base + uint64(u.val)
			w.restoreXMM(regs, int(u.reg), base+uint64(u.val), haveBase)
		case undoMachine:
			if w.tracing() {
				w.noteUndo(regs, u, sp+uint64(u.val), sp)
			}
			t, stop := w.machineFrame(regs, sp+uint64(u.val), opt)
			t.detail = s.rule.detail()
			return t, stop
		}
		if w.tracing() {
			w.noteUndo(regs, u, at, sp)
		}
	}
	if s.coarse {
		onlyFrame(regs)
	}
	t, stop := w.ret(sp, s.method)
	t.presume, t.detail = s.method == MethodRBP, s.rule.detail()
	return t, stop
}

// ret pops the return address.
func (w *Walker) ret(sp uint64, method Method) (target, Stop) {
	ip, ok := w.stack.Uint64(sp)
	if w.tracing() {
		w.note(Note{Kind: NoteReturn, Rule: method, Addr: sp, Value: ip, Known: ok, SP: sp + 8})
	}
	if !ok {
		return target{}, w.missing(sp)
	}
	return target{ip: ip, sp: sp + 8, method: method}, Stop{}
}

// restore reloads a register from where it was saved; where that is not in the
// dump the register becomes unknown.
func (w *Walker) restore(regs *dump.Registers, reg dump.Reg, va uint64) {
	if v, ok := w.stack.Uint64(va); ok {
		regs.Set(reg, v)
	} else {
		regs.Forget(reg)
	}
}

func (w *Walker) restoreXMM(regs *dump.Registers, n int, va uint64, haveBase bool) {
	if haveBase {
		lo, ok1 := w.stack.Uint64(va)
		hi, ok2 := w.stack.Uint64(va + 8)
		if ok1 && ok2 {
			regs.SetXMM(n, dump.XMM{lo, hi})
			return
		}
	}
	regs.ForgetXMM(n)
}

// machineFrame takes the interrupted context from a machine frame at va. It
// replaces rip and rsp; in a kernel walk a ring 3 selector ends the half, with
// regs then holding the user-mode registers.
func (w *Walker) machineFrame(regs *dump.Registers, va uint64, opt *Options) (target, Stop) {
	t := target{method: MethodMachineFrame, machine: true}
	var ok1, ok2, ok3, ok4 bool
	var cs, eflags, ss uint64
	t.ip, ok1 = w.stack.Uint64(va)
	cs, ok2 = w.stack.Uint64(va + machCS)
	eflags, ok3 = w.stack.Uint64(va + machEFlags)
	t.sp, ok4 = w.stack.Uint64(va + machRSP)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return t, w.missing(va)
	}
	cs &= 0xffff
	if cs == 0 {
		return t, Stop{StopBadUnwindInfo, fmt.Sprintf("the machine frame at %#x has no code selector", va)}
	}
	t.user = opt.Kernel && cs&ring3 == ring3
	if t.user && (t.ip < lowestUser || t.ip > highestUser || t.sp < lowestUser || t.sp > highestUser) {
		return t, Stop{StopBadUnwindInfo, fmt.Sprintf("the machine frame at %#x says user mode with rip %#x, rsp %#x", va, t.ip, t.sp)}
	}
	regs.ForgetVolatile()
	regs.Set(dump.RegCS, cs)
	regs.Set(dump.RegEFlags, eflags&0xffffffff)
	if ss, ok1 = w.stack.Uint64(va + machSS); ok1 {
		regs.Set(dump.RegSS, ss&0xffff)
	} else {
		regs.Forget(dump.RegSS)
	}
	if t.user {
		regs.SetPC(t.ip)
		regs.SetSP(t.sp)
		w.seam = seam{va - trapFrameRip, MethodMachineFrame}
	}
	return t, Stop{}
}

// leaf is the rule for functions without an entry: they change no preserved
// register, the stack pointer included.
func (w *Walker) leaf(f *Frame) (target, Stop) {
	return w.ret(f.SP, MethodLeaf)
}

// leafLeads reports whether the leaf rule's answer may stand. A function that has
// called another is no leaf; one that lacks unwind data all the same (hand-written
// code) is believed only when a CALL precedes the return address.
func (w *Walker) leafLeads(t target, f *Frame, opt *Options) bool {
	p := w.arrive(t, f, opt)
	return p == proofYes || p == proofUnknown && f.exact()
}

// check tells a target that cannot be right.
func (w *Walker) check(t target, f *Frame, opt *Options) Stop {
	switch {
	case t.user:
		return Stop{}
	case t.machine:
		return w.checkMachine(t)
	case !opt.leaves(f.SP, t.sp) && (t.sp < f.SP+8 || f.SP+8 < f.SP):
		return Stop{StopNoProgress, fmt.Sprintf("the caller's rsp %#x would not lie above %#x", t.sp, f.SP)}
	case opt.bounded() && t.sp > opt.StackBase:
		return Stop{StopNoProgress, fmt.Sprintf("the caller's rsp %#x would lie beyond the stack's base %#x", t.sp, opt.StackBase)}
	case opt.atSeam() && f.SP < opt.TrapFrame && t.sp > opt.bodySP():
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address at %#x would lie past the system service's frame", t.sp-8)}
	case t.ip == 0:
		return Stop{}
	case !w.plausible(t.ip, opt):
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address %#x at %#x is no code address", t.ip, t.sp-8)}
	}
	switch s := w.site(t.ip - 1); {
	case s.notCode():
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address %#x at %#x is not executable", t.ip, t.sp-8)}
	case opt.inStack(t.ip) && !s.exec:
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address %#x at %#x lies on the stack", t.ip, t.sp-8)}
	}
	return Stop{}
}

// leaves reports whether a step goes from another stack onto the outer one.
func (o *Options) leaves(from, to uint64) bool {
	outer := func(sp uint64) bool { return sp >= o.OuterLimit && sp < o.OuterBase }
	return outer(to) && !outer(from)
}

// checkMachine is check after a machine frame. Its rip may be anything, as a
// wild jump is what exceptions are made of, but its stack must be there.
func (w *Walker) checkMachine(t target) Stop {
	if t.ip == 0 && t.sp == 0 {
		return Stop{}
	}
	if _, ok := w.stack.Uint64(t.sp); !ok {
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the machine frame's rsp %#x is not in the dump", t.sp)}
	}
	return Stop{}
}

// arrive is check followed by the question whether a CALL precedes the target.
func (w *Walker) arrive(t target, f *Frame, opt *Options) proof {
	if w.check(t, f, opt).Reason != "" {
		return proofNo
	}
	if t.ip == 0 {
		return proofYes
	}
	return w.callBefore(w.site(t.ip-1), t.ip)
}

// landChecked is land for a target that check has not seen.
func (w *Walker) landChecked(regs *dump.Registers, f *Frame, opt *Options, t target, stop Stop) (Stop, bool) {
	if stop.Reason == "" {
		stop = w.check(t, f, opt)
	}
	return w.land(regs, f, opt, t, stop)
}

// land makes the target the new frame, or goes on to the heuristics when the
// rule failed.
func (w *Walker) land(regs *dump.Registers, f *Frame, opt *Options, t target, stop Stop) (Stop, bool) {
	switch {
	case stop.Reason != "":
		return w.fallback(regs, f, opt, stop)
	case t.user:
		return Stop{StopTrapFrame, ""}, false
	case t.machine && t.ip == 0 && t.sp == 0:
		return Stop{StopEndOfStack, "the machine frame is empty"}, false
	case t.machine:
		w.unproven = 0
		regs.SetPC(t.ip)
		regs.SetSP(t.sp)
		*f = Frame{IP: t.ip, Lookup: t.ip, SP: t.sp, Trust: TrustCFI, Method: t.method, Detail: t.detail}
		f.FP, f.HasFP = regs.Get(dump.RBP)
		return Stop{}, true
	case t.ip == 0:
		return Stop{StopEndOfStack, ""}, false
	}
	w.unproven = 0
	trust := w.trustOf(&t)
	w.caller(regs, f, t.ip, t.sp, trust, t.method, t.detail)
	if opt.atSeam() && t.sp == opt.bodySP() {
		regs.Set(dump.RBP, opt.stubRBP()) // known from the frame's place, whatever was recovered
		f.FP, f.HasFP = opt.stubRBP(), true
	}
	return Stop{}, true
}
