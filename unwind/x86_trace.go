package unwind

import "fmt"

// The notes of steps through x86 code, for Explain.

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
