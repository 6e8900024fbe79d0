package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// NoteKind says what a Note is about. Its text is part of the JSON contract.
type NoteKind string

// Kinds of notes.
const (
	NoteSite      NoteKind = "site"      // what is known of the code address
	NoteEpilog    NoteKind = "epilog"    // whether the frame stands in an epilog
	NoteUndo      NoteKind = "undo"      // an unwind operation or an epilog's instruction was undone
	NoteReturn    NoteKind = "return"    // the return address was read
	NoteRejected  NoteKind = "rejected"  // a rule did not apply, or its answer cannot be right
	NoteRecord    NoteKind = "record"    // what a frame record of debug information says
	NoteAssign    NoteKind = "assign"    // a frame record gave a variable its value
	NoteCandidate NoteKind = "candidate" // a word of the stack that a scan passed over
)

// Note is one thing that a step did or found out.
type Note struct {
	Kind   NoteKind
	Rule   Method // the rule concerned
	Detail string

	// NoteSite: the name of the module or table, what its RVAs count from, and
	// the function table's entry.
	Module   string
	Base     uint64
	HasEntry bool
	Entry    pdata.RuntimeFunction

	// NoteAssign: the variable or register; Addr is where the value was read, 0
	// when it was computed. NoteReturn: the register that the return address is in,
	// "" when it was read at Addr.
	Name string

	// NoteUndo, NoteReturn and NoteCandidate: the register that was restored,
	// from where, to what. SP is the stack pointer afterwards.
	Op    string // pop, alloc, set_frame, save, save_xmm, machine_frame, context
	Reg   dump.Reg
	Addr  uint64
	Value uint64
	Known bool // Value was in the dump
	SP    uint64
}

// maxNotes caps a step's notes: a scan may pass over many words.
const maxNotes = 512

// trace collects the notes of the step that finds one frame.
type trace struct {
	frame int
	on    bool
	notes []Note
}

// Explain walks like Walk and returns what happened in the step that found
// frame n, from 1 on, or that ended the walk when there are n frames.
func (w *Walker) Explain(regs dump.Registers, opt Options, n int) (Stack, []Note) {
	t := &trace{frame: n}
	w.trace = t
	defer func() { w.trace = nil }()
	st := w.Walk(regs, opt)
	return st, t.notes
}

// tracing reports whether the step under way is to be explained.
func (w *Walker) tracing() bool { return w.trace != nil && w.trace.on }

func (w *Walker) note(n Note) {
	if len(w.trace.notes) < maxNotes {
		w.trace.notes = append(w.trace.notes, n)
	}
}

// reject notes why a rule was not used.
func (w *Walker) reject(rule Method, detail string) {
	if w.tracing() && detail != "" {
		w.note(Note{Kind: NoteRejected, Rule: rule, Detail: detail})
	}
}

// suppose is undo for a frame that may not be one: it leaves no notes.
func (w *Walker) suppose(regs *dump.Registers, f *Frame, s *site, opt *Options) (target, Stop) {
	t := w.trace
	w.trace = nil
	to, stop := w.undo(regs, f, s, opt)
	w.trace = t
	return to, stop
}

var siteText = [...]string{
	siteOutside: "in no loaded module",
	siteNoImage: "in a module of which no image is at hand",
	siteNoTable: "in an image whose function table cannot be read",
	siteNotCode: "in an image, but not in an executable section",
	siteLeaf:    "in code that no entry of the function table covers: a leaf",
	sitePdata:   "covered by an entry of the function table",
	siteBad:     "covered by an entry whose unwind data cannot be used",
	siteOther:   "code of the other machine that an ARM64 process runs",
}

// noteSite notes what is known of the code address.
func (w *Walker) noteSite(s *site) {
	n := Note{Kind: NoteSite, Rule: s.method, Addr: s.addr, Base: s.base}
	if int(s.kind) < len(siteText) {
		n.Detail = siteText[s.kind]
	}
	switch {
	case s.module != nil:
		n.Module, n.Base = s.module.Name(), s.module.Base
	case s.dynamic:
		n.Module = "function table"
	case s.image != nil:
		n.Module = w.name(s)
	case s.remark != "":
		n.Detail += ", in " + s.remark
	}
	if s.kind == sitePdata || s.kind == siteBad {
		n.HasEntry, n.Entry = true, s.rf
		if s.rule.v3 {
			n.Detail += ", with version 3 unwind information (a preview specification)"
		}
	} else {
		n.Rule = MethodNone
	}
	w.note(n)
}

const opContext = "context" // every register, from a CONTEXT at Addr

var undoNames = [...]string{undoAlloc: "alloc", undoPop: "pop", undoFrame: "set_frame", undoSave: "save", undoSaveXMM: "save_xmm", undoMachine: "machine_frame"}

// noteUndo notes one operation that was undone.
func (w *Walker) noteUndo(regs *dump.Registers, u undo, addr, sp uint64) {
	n := Note{Kind: NoteUndo, Op: undoNames[u.op], Reg: u.reg, Addr: addr, SP: sp}
	switch u.op {
	case undoAlloc:
		n.Value, n.Known = uint64(u.val), true
	case undoSaveXMM:
		x, ok := regs.GetXMM(int(u.reg))
		n.Value, n.Known = x[0], ok
	case undoMachine:
	default:
		n.Value, n.Known = regs.Get(u.reg)
	}
	w.note(n)
}

// noteEpilog notes whether an epilog was recognised.
func (w *Walker) noteEpilog(e epilog, remark string) {
	n := Note{Kind: NoteEpilog, Rule: MethodEpilog, Detail: remark, Known: e.kind != epilogNone}
	switch {
	case n.Detail != "":
	case n.Known:
		n.Detail = "the code here is an epilog"
	default:
		n.Detail = "the code here is no epilog"
	}
	w.note(n)
}

// noteCandidate notes a word that might be a return address and why it is none.
func (w *Walker) noteCandidate(at, ip uint64, p proof) {
	why := "unwinding on from it leads to no return address"
	if s := w.site(ip - 1); p == proofNo {
		switch {
		case !s.inModule() && !s.exec:
			return // data, as most words are
		case s.notCode() || s.inHeaders():
			why = "not code"
		case s.beginsFunction(ip):
			why = "a function's first instruction"
		default:
			why = "no CALL before it"
		}
	}
	w.note(Note{Kind: NoteCandidate, Rule: MethodScan, Addr: at, Value: ip, Known: true, Detail: why})
}

// noteFound notes what a guess stands on.
func (w *Walker) noteFound(rule Method, at uint64, ip uint64) {
	w.note(Note{Kind: NoteReturn, Rule: rule, Addr: at, Value: ip, Known: true, SP: at + uint64(w.arch.PointerSize())})
}

// noteReentry notes why a frame register was searched for and what undoing with
// the value found does.
func (w *Walker) noteReentry(f *Frame, opt *Options, r reentry) {
	s := w.resolved(f.Lookup)
	reg, off, _ := frameShape(s)
	w.reject(s.method, fmt.Sprintf("the function's frame register %s is not known here; %#x is the first value that leads on", w.arch.RegName(reg), r.at+off))
	regs := dump.Registers{Arch: w.arch}
	regs.Set(reg, r.at+off)
	w.undo(&regs, f, s, opt)
}

// ruleFor is the rule that a site calls for.
func (s *site) ruleFor() Method {
	switch s.kind {
	case sitePdata, siteBad, siteNoImage, siteNoTable, siteNotCode:
		return s.method
	case siteLeaf:
		return MethodLeaf
	}
	return MethodDynamicTable
}

// whyNotRBP says why the frame pointer is not followed.
func (w *Walker) whyNotRBP(f *Frame) string {
	if !f.HasFP {
		return "rbp is not known"
	}
	return "the image's unwind data says how rbp is used here"
}

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
