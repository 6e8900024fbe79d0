package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// The notes of steps through x86 and ARM64 code, for Explain.

// noteGuess notes what a guess stands on: where the frame pointer was read, if it
// was, and the return address.
func (w *Walker) noteGuess(g guess) {
	if !w.tracing() {
		return
	}
	size := uint64(w.arch.PointerSize())
	if g.fpAt != 0 {
		w.note(Note{Kind: NoteUndo, Op: undoNames[undoPop], Reg: w.arch.FPReg(), Addr: g.fpAt, Value: g.fp, Known: g.hasFP, SP: g.fpAt + size})
	}
	w.note(Note{Kind: NoteReturn, Rule: g.method, Addr: g.at, Value: g.ip, Known: true, SP: g.sp})
}

// noteSite86 notes where an x86 frame stands: there are no function tables.
func (w *Walker) noteSite86(f *Frame) {
	if !w.tracing() {
		return
	}
	s := w.site(f.Lookup)
	n := Note{Kind: NoteSite, Addr: f.Lookup, Base: s.base, Detail: siteText[siteOutside]}
	switch {
	case s.image != nil && !s.exec:
		n.Module, n.Detail = w.name(s), siteText[siteNotCode]
	case s.image != nil:
		n.Module, n.Detail = w.name(s), "in an image's code"
	case s.module != nil:
		n.Module, n.Base, n.Detail = s.module.Name(), s.module.Base, siteText[siteNoImage]
	}
	w.note(n)
}

// noteFrameless86 notes whether the code at an x86 frame alone says how the stack
// lies.
func (w *Walker) noteFrameless86(f *Frame, g guess, ok bool) {
	if !w.tracing() {
		return
	}
	n := Note{Kind: NoteEpilog, Rule: MethodEBP, Known: ok, Detail: g.detail}
	if b, _ := w.code86(f.IP); ok {
		n.Detail = "the frame stands " + g.detail
	} else if len(b) == 0 {
		n.Detail = "no code at hand that would tell a function's entry, prologue or return"
	} else if b[0] == 0xc3 || b[0] == 0xc2 {
		n.Detail = "the code here is a return, but no return address that a call proves is on top of the stack"
	} else {
		n.Detail = "the code here is no function's entry, prologue or return that the stack confirms"
	}
	w.note(n)
}

// rejectSimulated86 notes why running a function's code gave no caller.
func (w *Walker) rejectSimulated86(f *Frame) {
	if !w.tracing() {
		return
	}
	runs := w.runs86(f.IP)
	if len(runs) == 0 {
		w.reject(MethodFPO, "no place before the address proves to be its function's start")
		return
	}
	how := "leads to no return address behind a call to it"
	if st := runs[0].at; st.ebp == ebpFrame && st.frame == 4 && st.saved == 4 {
		how = "keeps its frame in ebp"
	}
	w.reject(MethodFPO, fmt.Sprintf("run from %#x, the nearest of %d possible starts, the function %s", runs[0].start, len(runs), how))
}

// noteScanned86 notes a word that a scan looked at and how it ranks.
func (w *Walker) noteScanned86(at, ip uint64, score int, opt *Options) {
	switch {
	case !w.tracing() || !w.plausible(ip, opt):
	case score == 0:
		w.noteCandidate(at, ip, proofNo)
	default:
		w.note(Note{Kind: NoteCandidate, Rule: MethodScan, Addr: at, Value: ip, Known: true, Detail: fmt.Sprintf("score %d of %d: %s", score, bestScore, scoreText[score])})
	}
}

// noteSiteARM64 notes what is known of the code address of an ARM64 frame.
func (w *Walker) noteSiteARM64(s *site) {
	if !w.tracing() {
		return
	}
	w.noteSite(s)
	if s.kind == sitePdata && s.rf.UnwindInfo&3 != 0 {
		n := &w.trace.notes[len(w.trace.notes)-1]
		n.Detail += fmt.Sprintf(", with packed unwind data %#08x", s.rf.UnwindInfo)
	}
}

// notePassedARM64 notes a word that a scan passed over.
func (w *Walker) notePassedARM64(at, ip uint64, p proof, opt *Options) {
	switch {
	case !w.tracing() || !w.plausible(ip, opt):
	case p == proofUnknown:
		w.note(Note{Kind: NoteCandidate, Rule: MethodScan, Addr: at, Value: ip, Known: true, Detail: "no code at hand that would prove a call"})
	default:
		w.noteCandidate(at, ip, p)
	}
}

// noteLR notes the return address, which is in lr.
func (w *Walker) noteLR(rule Method, ip, sp uint64) {
	if w.tracing() {
		w.note(Note{Kind: NoteReturn, Rule: rule, Name: w.arch.RegName(dump.ARM64LR), Value: ip, Known: true, SP: sp})
	}
}

// noteSaves notes registers, one upwards from the other, that a code restored
// from va up. sp is what it is after the code.
func (u *arm64Undo) noteSaves(reg dump.Reg, n int, va, sp uint64) {
	if !u.w.tracing() {
		return
	}
	for i := range n {
		r := reg + dump.Reg(i)
		v, known := u.regs.Get(r)
		u.w.note(Note{Kind: NoteUndo, Op: undoNames[undoSave], Reg: r, Addr: va + 8*uint64(i), Value: v, Known: known, SP: sp})
	}
}

// noteOp notes a code that restores no register.
func (u *arm64Undo) noteOp(op string, value uint64) {
	if u.w.tracing() {
		u.w.note(Note{Kind: NoteUndo, Op: op, Reg: dump.ARM64FP, Value: value, Known: true, Addr: u.sp, SP: u.sp})
	}
}
