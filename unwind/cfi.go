package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// compileRules compiles the rules of STACK CFI, the frame's address first, as
// the others count from it.
func compileRules(rules []RegisterRule, stream string, arch dump.Arch) ([]compiledRule, error) {
	var out []compiledRule
	cfa, ra := false, false
	for _, u := range rules {
		reg, ok := namedVariable(u.Register, arch)
		if !ok {
			continue // a register that is not followed: of the floating point unit, say
		}
		c := compiledRule{reg: reg}
		if u.Expression != undefined {
			var err error
			if c.expr, err = compileExpression(u.Expression, stream, arch); err != nil {
				return nil, err
			}
		}
		cfa, ra = cfa || reg == varCFA, ra || reg == varRA
		if out = append(out, c); reg == varCFA {
			copy(out[1:], out[:len(out)-1])
			out[0] = c
		}
	}
	if !cfa || !ra {
		return nil, dump.Errorf(dump.BadRecord, stream, "has no rule for the frame's address or the return address")
	}
	return out, nil
}

// cfiCaller is what STACK CFI says of the caller.
type cfiCaller struct {
	ip, sp uint64
	regs   dump.Registers
}

// runCFI computes the caller's registers. Registers without a rule keep their
// values; which of them a call preserves is for the architecture to say.
func (w *Walker) runCFI(r *compiledRecord, regs *dump.Registers) (to cfiCaller, why string) {
	m := &w.machine
	m.reset(regs)
	to.regs = *regs
	var results [maxVariables]operand
	given := uint64(0)
	for _, u := range r.rules {
		var o operand
		if u.expr != nil {
			if err := w.runProgram(u.expr); err != nil {
				return to, err.Error()
			}
			o = m.pop()
		}
		results[u.reg] = o
		given |= 1 << u.reg
		if w.tracing() {
			name := (&program{}).nameOf(u.reg, w.arch)
			w.note(Note{Kind: NoteAssign, Name: name, Addr: o.at, Value: o.val, Known: o.known})
		}
		switch {
		case u.reg == varCFA && o.known:
			m.set(varCFA, o.val)
		case u.reg < dump.NumRegs && o.known:
			to.regs.Set(dump.Reg(u.reg), o.val)
		case u.reg < dump.NumRegs:
			to.regs.Forget(dump.Reg(u.reg))
		}
	}
	cfa, ra := results[varCFA], results[varRA]
	switch {
	case (!cfa.known || !ra.known) && m.lacks:
		return to, w.missing(m.missing).Detail
	case !cfa.known || !ra.known:
		return to, "its rules need a register that is not known here"
	}
	to.ip, to.sp = ra.val, cfa.val
	sp := variable(w.arch.SPReg())
	if given&(1<<sp) != 0 {
		if !results[sp].known {
			return to, "its rule for the stack pointer needs a value that is not known"
		}
		to.sp = results[sp].val
	}
	return to, ""
}

// runCFI86 is runCFI for x86.
func (w *Walker) runCFI86(r *compiledRecord, regs *dump.Registers, to *landing86) (why string) {
	c, why := w.runCFI(r, regs)
	to.ip, to.sp, to.regs = c.ip, c.sp, c.regs
	return why
}

// cfiRecord returns the first STACK CFI record for a frame.
func (w *Walker) cfiRecord(f *Frame) *compiledRecord {
	records := w.records(f.Lookup)
	for i := range records {
		if records[i].Kind == FrameCFI {
			return &records[i]
		}
	}
	return nil
}

// callerByCFI finds the caller by STACK CFI where no image with a function table
// is at hand. Rows tell of prologues and bodies, not of epilogs.
func (w *Walker) callerByCFI(regs *dump.Registers, f *Frame) (to cfiCaller, t target, why string) {
	r := w.cfiRecord(f)
	if r == nil {
		return to, t, "no record"
	}
	if w.tracing() {
		w.note(Note{Kind: NoteRecord, Rule: MethodSymCFI, Detail: r.name() + ": " + r.text()})
	}
	if r.err != nil {
		return to, t, r.err.Error()
	}
	if to, why = w.runCFI(r, regs); why != "" {
		return to, t, why
	}
	return to, target{ip: to.ip, sp: to.sp, method: MethodSymCFI, detail: r.by}, ""
}

// byCFI is callerByCFI for x64, with the checks that unwind data gets. Behind a
// return address there must be a call, if its code is at hand.
func (w *Walker) byCFI(regs *dump.Registers, f *Frame, opt *Options) (t target, ok bool) {
	if w.frames == nil || w.cfiRecord(f) == nil {
		return target{}, false
	}
	to, t, why := w.callerByCFI(regs, f)
	if why == "" {
		if why = w.check(t, f, opt).Detail; why == "" && w.arrive(t, f, opt) == proofNo {
			why = fmt.Sprintf("no CALL before %#x", t.ip)
		}
	}
	if why != "" {
		w.reject(MethodSymCFI, why)
		return target{}, false
	}
	*regs = to.regs
	return t, true
}

// byCFIARM64 is byCFI for ARM64.
func (w *Walker) byCFIARM64(regs *dump.Registers, f *Frame, opt *Options) (t arm64Target, ok bool) {
	if w.frames == nil || w.cfiRecord(f) == nil {
		return arm64Target{}, false
	}
	to, base, why := w.callerByCFI(regs, f)
	base.ip = stripPAC(base.ip)
	t = arm64Target{target: base}
	if why == "" {
		if why = w.checkARM64(t, f, opt).Detail; why == "" && t.ip != 0 && w.callBefore(w.site(t.ip-arm64Word), t.ip) == proofNo {
			why = fmt.Sprintf("no call before %#x", t.ip)
		}
	}
	if why != "" {
		w.reject(MethodSymCFI, why)
		return arm64Target{}, false
	}
	*regs = to.regs
	return t, true
}
