package unwind

import (
	"fmt"

	"dumptriage/dump"
)

const (
	searchWords    = 16 // beyond the expected place of a return address that a call proves,
	searchUnproven = 3  // and of one that nothing proves
	searchArgs     = 64 // words of arguments that are searched below it
	outermostBytes = 64 // from the stack's base within which a zero ends the stack
)

// calleeArgs is what the step to a frame knows of the arguments that lie on its
// stack: frame records do not count them to the caller.
type calleeArgs struct{ sp, bytes uint64 }

// landing86 is where a record leads.
type landing86 struct {
	ip, sp uint64
	regs   dump.Registers // what the caller has
	trust  Trust
	detail string
	end    bool // the record leads to the end of the stack
}

// stepRecords86 unwinds by the first frame record whose answer can be right. Why
// none served is what it returns otherwise.
func (w *Walker) stepRecords86(regs *dump.Registers, f *Frame, opt *Options) (stop Stop, ok, done bool, why string) {
	records := w.records(f.Lookup)
	for i := range records {
		r := &records[i]
		if w.tracing() {
			w.note(Note{Kind: NoteRecord, Rule: MethodFPO, Detail: r.name() + ": " + r.text()})
		}
		to, reason := w.land86(r, regs, f, opt)
		if reason != "" {
			why = r.name() + ": " + reason
			w.reject(MethodFPO, why)
			continue
		}
		if to.end {
			return Stop{StopEndOfStack, ""}, false, true, ""
		}
		w.unproven, w.settling = 0, 0
		w.left86(to.sp, false)
		*regs = to.regs
		w.caller(regs, f, to.ip, to.sp, to.trust, MethodFPO, to.detail)
		return Stop{}, true, true, ""
	}
	return Stop{}, false, false, why
}

// land86 computes where a record leads and checks it.
func (w *Walker) land86(r *compiledRecord, regs *dump.Registers, f *Frame, opt *Options) (to landing86, why string) {
	if r.err != nil {
		return to, r.err.Error()
	}
	to = landing86{trust: TrustCFI, detail: r.by}
	m := &w.machine
	m.reset(regs)
	switch {
	case r.Kind == FrameCFI:
		why = w.runCFI86(r, regs, &to)
	case f.exact() && f.IP == r.Function:
		to.regs, to.detail = *regs, to.detail+", at the function's first instruction"
		ok := false
		if to.ip, ok = w.word(f.SP); !ok {
			return to, w.missing(f.SP).Detail
		}
		to.sp = f.SP + 4
	case w.lastByte86(r, f):
		to.regs, to.detail = *regs, to.detail+", at the function's last byte, its return"
		to.ip, _ = w.word(f.SP)
		to.sp = f.SP + 4
	case !r.holds(f):
		why = "the code here is the function's prologue, for which it does not hold"
	default:
		why = w.runRecord86(r, regs, f, opt, &to)
	}
	if why == "" {
		why = w.check86(&to, f, opt)
	}
	return to, why
}

// holds reports whether a record describes the place where a frame stands: not
// before its prologue is done, unless it is for one instruction of the prologue.
func (r *compiledRecord) holds(f *Frame) bool {
	off := f.IP - r.Begin
	if !f.exact() || off >= uint64(r.Prolog) {
		return true
	}
	return off == 0 && r.Begin != r.Function
}

// lastByte86 reports whether a frame whose code is not at hand stands at the last
// byte of its function. A return is the only instruction that can be there.
func (w *Walker) lastByte86(r *compiledRecord, f *Frame) bool {
	if !f.exact() || f.IP+1 != r.End || w.readCode(w.code[:1], w.site(f.IP), f.IP) != 0 {
		return false
	}
	ip, ok := w.word(f.SP)
	return ok && w.recorded86(ip)
}

// runRecord86 runs a record's program, or what stands for one.
func (w *Walker) runRecord86(r *compiledRecord, regs *dump.Registers, f *Frame, opt *Options, to *landing86) (why string) {
	m := &w.machine
	args := w.calleeArgs86(f)
	m.set(varParams, uint64(r.Params))
	m.set(varLocals, uint64(r.Locals))
	m.set(varSavedRegs, uint64(r.SavedRegs))
	m.set(varCalleeParams, args)
	at := uint64(0)
	if r.Kind == FrameFPO || r.program.searches {
		found, how, ok := w.searchReturn86(r, f, args, opt)
		if !ok {
			return fmt.Sprintf("no return address at esp %#x plus %d bytes of frame, nor near above", f.SP, uint64(r.Locals)+uint64(r.SavedRegs)+args)
		}
		at = found
		if how != "" {
			to.detail += "; " + how
		}
		if how != "" && w.called86(w.callTarget86(w.at(found)), r.Function) != calledThis {
			to.trust = TrustCFIScan
		}
		m.set(varSearch, at)
	}
	if r.Kind == FrameFPO {
		to.ip, to.sp = w.at(at), at+4
		to.regs = r.preserved(regs, 0)
		w.fpoEBP(r, regs, f, at, args, to)
		w.noteFPO(at, to)
		return ""
	}
	if err := w.runProgram(r.program); err != nil {
		return err.Error()
	}
	return w.results86(r, regs, to)
}

// at reads a word that is known to be there.
func (w *Walker) at(va uint64) uint64 {
	v, _ := w.word(va)
	return v
}

// results86 takes the caller's registers from what a program assigned.
func (w *Walker) results86(r *compiledRecord, regs *dump.Registers, to *landing86) (why string) {
	m := &w.machine
	ip, okIP, gave := m.result(variable(dump.RIP))
	sp, okSP, gaveSP := m.result(variable(dump.RSP))
	switch {
	case !gave || !gaveSP:
		return "its program gives no eip or no esp"
	case (!okIP || !okSP) && m.lacks:
		return w.missing(m.missing).Detail
	case !okIP || !okSP:
		return "its program needs a register that is not known here"
	}
	to.ip, to.sp = ip, sp
	to.regs = r.preserved(regs, m.assigned)
	for _, reg := range preserved86 {
		if v, known, gave := m.result(variable(reg)); gave && known {
			to.regs.Set(reg, v)
		}
	}
	return ""
}

var preserved86 = [...]dump.Reg{dump.RBX, dump.RSI, dump.RDI, dump.RBP}

// preserved returns the registers that the caller shares with a function whose
// record assigns others. Old compilers name only ebx and ebp of the registers
// that a function saves, so esi and edi stay known only when all are named.
func (r *compiledRecord) preserved(regs *dump.Registers, assigned uint64) dump.Registers {
	out := dump.Registers{Arch: dump.X86}
	named := uint32(0)
	for _, reg := range preserved86 {
		if assigned&(1<<reg) != 0 && !(reg == dump.RBP && (r.program == nil || r.program.ebpFrame)) {
			named += 4
		}
	}
	for _, reg := range preserved86 {
		v, known := regs.Get(reg)
		all := r.SavedRegs <= named
		byProgram := r.Kind == FrameProgram && (reg == dump.RBX || reg == dump.RBP)
		if known && assigned&(1<<reg) == 0 && (all || byProgram) {
			out.Set(reg, v)
		}
	}
	return out
}

// fpoEBP gives the caller's ebp. An FPO record says whether the function uses it,
// and not where it is saved: its code does, else the customary order of pushes
// (ebx, ebp, esi, edi, below the locals), when what is there can be a frame's.
func (w *Walker) fpoEBP(r *compiledRecord, regs *dump.Registers, f *Frame, at, args uint64, to *landing86) {
	to.regs.Forget(dump.RBP)
	if v, ok := regs.Get(dump.RBP); ok && !r.UsesEBP {
		to.regs.Set(dump.RBP, v)
		return
	}
	if !r.UsesEBP {
		return
	}
	if v, ok := w.simulatedEBP(r, f, at); ok {
		to.regs.Set(dump.RBP, v)
		return
	}
	v, ok := regs.Get(dump.RBP)
	switch {
	case r.SavedRegs >= 8:
		v, ok = w.word(f.SP + args + uint64(r.SavedRegs) - 8)
	case r.SavedRegs == 4:
		v, ok = w.word(f.SP + args)
	}
	if ok && v > at && v-at <= maxFrameGap && v&3 == 0 {
		to.regs.Set(dump.RBP, v)
		to.detail += "; ebp from the customary place, which the record does not give"
	}
}

// simulatedEBP reads the caller's ebp from where the function's code saves it.
func (w *Walker) simulatedEBP(r *compiledRecord, f *Frame, at uint64) (uint64, bool) {
	for _, run := range w.runs86(f.IP) {
		st := run.at
		if !f.exact() && run.hasCall {
			st = run.call
		}
		if run.start == r.Function && st.saved != 0 {
			return w.word(at - uint64(st.saved))
		}
	}
	return 0, false
}

// calleeArgs86 is how many bytes of arguments lie on a frame's stack.
func (w *Walker) calleeArgs86(f *Frame) uint64 {
	if !f.exact() && w.x86.callee.sp == f.SP {
		return w.x86.callee.bytes
	}
	return 0
}

// left86 remembers the arguments of the function that a step left; popped says
// that they are off the stack.
func (w *Walker) left86(sp uint64, popped bool) {
	w.x86.callee = calleeArgs{sp: sp, bytes: w.x86.params}
	if popped {
		w.x86.callee.bytes = 0
	}
}

// params86 is how many bytes of arguments the function of a frame has.
func (w *Walker) params86(f *Frame) uint64 {
	for _, r := range w.records(f.Lookup) {
		if r.Kind != FrameCFI {
			return uint64(r.Params)
		}
	}
	return 0
}

// searchReturn86 finds the return address of a function that keeps no frame: it
// should lie above the arguments of what it called, its locals and its saved
// registers; above the latter two alone where the arguments are part of the
// locals; or, where more has been pushed, near above. A call to this very
// function is the best proof; where no code is at hand, one in code that debug
// information knows is better than any, and elsewhere than expected a must. how says what was searched, "" when nothing was.
func (w *Walker) searchReturn86(r *compiledRecord, f *Frame, args uint64, opt *Options) (at uint64, how string, ok bool) {
	low := f.SP + uint64(r.Locals) + uint64(r.SavedRegs)
	expected := low + args
	if v, known := w.machine.get(variable(dump.RBP)); known && r.program != nil && r.program.aligns {
		low, expected = v+4, v+4 // locals of an aligned frame have no fixed size
	}
	first := w.returnAt86(expected, f, opt)
	if first == proofYes && w.callsThis86(expected, r) {
		return expected, "", true
	}
	nearest, unproven := uint64(0), uint64(0)
	for va := max(low, expected-min(expected, 4*searchArgs)); va <= expected+4*searchWords; va += 4 {
		switch p := w.returnAt86(va, f, opt); {
		case p == proofYes && w.callsThis86(va, r):
			return va, searchText(va, expected, low), true
		case p == proofYes && nearest == 0 && (va >= expected || va == low):
			nearest = va
		case p == proofUnknown && unproven == 0 && (va == low || va >= expected && va <= expected+4*searchUnproven) && w.recorded86(w.at(va)):
			unproven = va
		}
	}
	switch {
	case first == proofYes:
		return expected, "", true
	case nearest != 0:
		return nearest, searchText(nearest, expected, low), true
	case first == proofUnknown && w.recorded86(w.at(expected)):
		return expected, "", true
	case unproven != 0:
		return unproven, searchText(unproven, expected, low), true
	case first == proofUnknown:
		return expected, "nothing tells the return address from data", true
	}
	return 0, "", false
}

func searchText(at, expected, low uint64) string {
	switch {
	case at == expected || at == low:
		return ""
	case at > expected:
		return fmt.Sprintf("the return address lies %d bytes above where the record puts it", at-expected)
	}
	return fmt.Sprintf("the return address lies %d bytes below where the record puts it", expected-at)
}

// returnAt86 is returnAddress86 for a word of the stack. The frame's own address
// may lie on top of a system call stub's stack and is no return address.
func (w *Walker) returnAt86(va uint64, f *Frame, opt *Options) proof {
	ip, ok := w.word(va)
	if !ok || va > highestUser32 || !opt.holds(va, 4) || storedContext(f, ip) {
		return proofNo
	}
	return w.returnAddress86(ip, opt)
}

// recorded86 reports whether debug information has a record for the code before
// an address or knows its function, as it does for no data.
func (w *Walker) recorded86(ip uint64) bool {
	return len(w.records(ip-1)) > 0 || w.functionStart86(ip) != 0
}

// callsThis86 reports whether the call before the return address at va is to the
// record's function.
func (w *Walker) callsThis86(va uint64, r *compiledRecord) bool {
	return r.Function != 0 && w.called86(w.callTarget86(w.at(va)), r.Function) == calledThis
}

// check86 tells an answer that cannot be right.
func (w *Walker) check86(to *landing86, f *Frame, opt *Options) (why string) {
	switch {
	case to.sp <= f.SP:
		return fmt.Sprintf("the caller's esp %#x would not lie above %#x", to.sp, f.SP)
	case to.sp > highestUser32, opt.bounded() && to.sp > opt.StackBase:
		return fmt.Sprintf("the caller's esp %#x would lie beyond the stack's base", to.sp)
	}
	if to.ip == 0 {
		ebp, known := to.regs.Get(dump.RBP)
		if known && ebp == 0 || opt.bounded() && opt.StackBase-to.sp < outermostBytes {
			to.end = true
			return ""
		}
	}
	switch w.returnAddress86(to.ip, opt) {
	case proofNo:
		return fmt.Sprintf("%#x is no return address", to.ip)
	case proofUnknown:
		to.detail += "; no code at hand to check the call"
	}
	return ""
}

// noteFPO notes what an FPO record, which has no program, leads to.
func (w *Walker) noteFPO(at uint64, to *landing86) {
	if !w.tracing() {
		return
	}
	w.noteFound(MethodFPO, at, to.ip)
	if v, ok := to.regs.Get(dump.RBP); ok {
		w.note(Note{Kind: NoteAssign, Name: "ebp", Value: v, Known: true})
	}
}
