package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// The notes of steps through ARM64 code, for Explain.

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
