package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/pdata"
)

const (
	arm64VABits = 47      // user addresses; kernel ones have all bits above set
	arm64Half   = 1 << 55 // tells the halves apart whatever pointer authentication adds
	arm64Align  = 15      // of sp where a function begins and ends
	arm64Word   = 4       // of an instruction
)

// arm64Table is a Table of ARM64 code. *pdata.Image is one.
type arm64Table interface {
	Table
	HasARM64Table() bool
	LookupARM64(rva uint32) (pdata.ARM64Function, bool, error)
	ARM64Info(fn pdata.ARM64Function) (*pdata.ARM64Info, error)
}

// arm64Target is a target that may stand elsewhere than behind a call.
type arm64Target struct {
	target
	exact bool
}

// stepARM64 unwinds by .pdata, takes lr where a leaf function stands, and falls
// back to the chain of frame records and to a scan.
//
// A frame that Lookup calls exact stands at any instruction and has its lr; any
// other is behind a call, which has overwritten lr. That is what Windows' flag
// CONTEXT_UNWOUND_TO_CALL says.
func (w *Walker) stepARM64(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	if stop, end := w.bounds(f, opt); end {
		return stop, false
	}
	s := w.site(f.Lookup)
	w.resolveARM64(s)
	w.noteSiteARM64(s)
	s = w.site(f.Lookup)
	var stop Stop
	switch {
	case f.exact() && s.notCode() && !s.inModule():
		return w.stepWildARM64(regs, f, opt)
	case s.kind == siteOther:
		return w.stepOther(regs, f, opt)
	case s.kind == sitePdata:
		var t arm64Target
		saved := *regs
		if t, stop = w.undoARM64(regs, f, s, opt); stop.Reason == "" {
			if stop = w.checkARM64(t, f, opt); stop.Reason == "" {
				return w.landARM64(regs, f, t)
			}
		}
		*regs = saved
	case s.kind == siteLeaf:
		if t, ok := w.leafARM64(regs, f, opt); ok {
			return w.landARM64(regs, f, t)
		}
		stop = Stop{StopNoUnwindData, fmt.Sprintf("%s: no function table entry covers %#x, and it is no leaf function's", w.name(w.site(f.Lookup)), f.Lookup)}
	default:
		stop = w.lack(s)
		if kind := s.kind; kind == siteNoImage || kind == siteNoTable {
			if t, ok := w.byCFIARM64(regs, f, opt); ok {
				return w.landARM64(regs, f, t)
			}
		}
	}
	return w.fallbackARM64(regs, f, opt, stop)
}

// resolveARM64 finds out which rule serves the site.
func (w *Walker) resolveARM64(s *site) {
	if s.kind != siteUnresolved {
		return
	}
	if s.image != nil && s.exec && w.otherCode(s) {
		s.kind = siteOther
		return
	}
	t, ok := s.image.(arm64Table)
	if s.image == nil || !s.exec || !ok || !t.HasARM64Table() {
		w.resolve(s)
		if s.kind == siteLeaf || s.kind == sitePdata || s.kind == siteBad { // another machine's table
			s.kind = siteNoTable
		}
		return
	}
	rva := uint32(s.addr - s.base)
	fn, covered, err := t.LookupARM64(rva)
	switch {
	case err != nil:
		s.kind, s.err = siteNoTable, err
		return
	case !covered:
		s.kind = siteLeaf
		return
	}
	s.kind, s.rf = sitePdata, pdata.RuntimeFunction{Begin: fn.Begin, End: fn.End(), UnwindInfo: fn.Word}
	u, err := t.ARM64Info(fn)
	if err == nil {
		s.arm64, err = u.At(s.arm64[:0], rva-fn.Begin)
	}
	if err != nil {
		s.kind, s.err = siteBad, err
	}
}

// leafARM64 is the rule for functions without an entry: they change no preserved
// register, and lr holds the return address. They make no calls, so no caller
// is one.
func (w *Walker) leafARM64(regs *dump.Registers, f *Frame, opt *Options) (arm64Target, bool) {
	lr, known := regs.Get(dump.ARM64LR)
	t := arm64Target{target: target{ip: stripPAC(lr), sp: f.SP, method: MethodLeaf}}
	if !f.exact() || !known || w.checkARM64(t, f, opt).Reason != "" {
		return t, false
	}
	w.noteLR(MethodLeaf, t.ip, t.sp)
	return t, true
}

// stepWildARM64 unwinds a jump to what is not code.
func (w *Walker) stepWildARM64(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	why := Stop{StopNoUnwindData, fmt.Sprintf("%#x is not code", f.IP)}
	if t, ok := w.leafARM64(regs, f, opt); ok && t.ip != 0 && w.candidateARM64(t.ip, opt) == proofYes {
		t.detail = fmt.Sprintf("called %#x, which is not code", f.IP)
		return w.landARM64(regs, f, t)
	}
	return w.fallbackARM64(regs, f, opt, why)
}

// checkARM64 tells a target that cannot be right.
func (w *Walker) checkARM64(t arm64Target, f *Frame, opt *Options) Stop {
	switch {
	case t.user:
		return Stop{}
	case t.machine:
		return w.checkMachine(t.target)
	case t.sp < f.SP, t.sp == f.SP && (!f.exact() || t.ip == f.IP):
		return Stop{StopNoProgress, fmt.Sprintf("the caller's sp %#x and pc %#x would be no progress from sp %#x", t.sp, t.ip, f.SP)}
	case t.sp&arm64Align != 0:
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the caller's sp %#x would not be aligned", t.sp)}
	case opt.bounded() && t.sp > opt.StackBase:
		return Stop{StopNoProgress, fmt.Sprintf("the caller's sp %#x would lie beyond the stack's base %#x", t.sp, opt.StackBase)}
	case t.ip == 0:
		return Stop{}
	case !w.plausible(t.ip, opt) || t.ip%arm64Word != 0 && w.callLength(t.ip) == arm64Word:
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address %#x is no code address", t.ip)}
	}
	if w.site(t.ip - arm64Word).notCode() {
		return Stop{StopBadUnwindInfo, fmt.Sprintf("the return address %#x is not executable", t.ip)}
	}
	return Stop{}
}

// landARM64 makes the target the new frame.
func (w *Walker) landARM64(regs *dump.Registers, f *Frame, t arm64Target) (Stop, bool) {
	switch {
	case t.user:
		return Stop{StopTrapFrame, ""}, false
	case t.ip == 0:
		return Stop{StopEndOfStack, ""}, false
	}
	w.unproven = 0
	if t.machine {
		regs.SetPC(t.ip)
		regs.SetSP(t.sp)
		*f = Frame{IP: t.ip, Lookup: t.ip, SP: t.sp, Trust: TrustCFI, Method: t.method, Detail: t.detail}
		f.FP, f.HasFP = regs.Get(dump.ARM64FP)
		return Stop{}, true
	}
	w.caller(regs, f, t.ip, t.sp, TrustCFI, t.method, t.detail)
	if t.exact {
		f.Lookup = f.IP
	}
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
