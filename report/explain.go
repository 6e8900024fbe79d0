package report

import (
	"fmt"
	"io"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// ExplanationJSON is how one frame was found, or with no frame why there is
// none. notes are in the order in which things were tried and done.
type ExplanationJSON struct {
	ThreadID uint32     `json:"thread_id"`
	Half     string     `json:"half" jsonschema:"enum=kernel,enum=wow64,enum=user,enum=handler"`
	Number   int        `json:"number" jsonschema_description:"of the frame in the whole stack, kernel half first"`
	From     *FrameJSON `json:"from,omitempty"`
	Frame    *FrameJSON `json:"frame,omitempty"`
	Stop     *StopJSON  `json:"stop,omitempty"`
	Notes    []NoteJSON `json:"notes"`
}

// NoteJSON is one thing that a step did or found out.
type NoteJSON struct {
	Kind       string `json:"kind" jsonschema:"enum=site,enum=epilog,enum=undo,enum=return,enum=rejected,enum=record,enum=assign,enum=candidate"`
	Rule       string `json:"rule,omitempty"`
	Detail     string `json:"detail,omitempty"`
	Module     string `json:"module,omitempty"`
	Base       string `json:"base,omitempty"`
	Begin      string `json:"begin,omitempty" jsonschema_description:"RVA of the function table entry, as end and unwind_info"`
	End        string `json:"end,omitempty"`
	UnwindInfo string `json:"unwind_info,omitempty"`
	Op         string `json:"op,omitempty" jsonschema:"enum=pop,enum=alloc,enum=set_frame,enum=save,enum=save_xmm,enum=machine_frame,enum=context"`
	Register   string `json:"register,omitempty"`
	Name       string `json:"name,omitempty" jsonschema_description:"the register or variable that a frame record gave a value"`
	Address    string `json:"address,omitempty" jsonschema_description:"where the value was read"`
	Value      string `json:"value,omitempty"`
	SP         string `json:"sp,omitempty" jsonschema_description:"the stack pointer afterwards"`
}

func explanationJSON(inc *triage.Incident, h hexer) *ExplanationJSON {
	e := inc.Explanation
	if e == nil {
		return nil
	}
	j := &ExplanationJSON{ThreadID: inc.Threads[e.Thread].ID, Half: e.Half, Number: e.Number, Notes: []NoteJSON{}}
	if e.From != nil {
		j.From = new(FrameJSON)
		fillFrame(j.From, e.From, e.Index-1, h)
	}
	if e.Frame != nil {
		j.Frame = new(FrameJSON)
		fillFrame(j.Frame, e.Frame, e.Index, h)
	} else {
		j.Stop = &StopJSON{string(e.Stop.Reason), e.Stop.Detail}
	}
	for i := range e.Notes {
		j.Notes = append(j.Notes, noteJSON(&e.Notes[i], e.Arch, h))
	}
	return j
}

func noteJSON(n *unwind.Note, arch dump.Arch, h hexer) NoteJSON {
	j := NoteJSON{Kind: string(n.Kind), Rule: n.Rule.String(), Detail: n.Detail, Module: n.Module, Op: n.Op}
	switch n.Kind {
	case unwind.NoteSite:
		j.Address, j.Base = h.addr(n.Addr), h.known(n.Base)
		if n.HasEntry {
			j.Begin, j.End, j.UnwindInfo = hex32(n.Entry.Begin), hex32(n.Entry.End), hex32(n.Entry.UnwindInfo)
		}
	case unwind.NoteUndo:
		j.Register, j.SP = noteRegister(n, arch), h.addr(n.SP)
		if n.Op != "alloc" && n.Op != "set_frame" {
			j.Address = h.addr(n.Addr)
		}
		if n.Known {
			j.Value = h.addr(n.Value)
		}
	case unwind.NoteAssign:
		j.Name, j.Address = n.Name, h.known(n.Addr)
		if n.Known {
			j.Value = h.addr(n.Value)
		}
	case unwind.NoteReturn, unwind.NoteCandidate:
		if j.Register = n.Name; n.Name == "" {
			j.Address = h.addr(n.Addr)
		}
		if n.Known {
			j.Value = h.addr(n.Value)
		}
		j.SP = h.known(n.SP)
	}
	return j
}

func noteRegister(n *unwind.Note, arch dump.Arch) string {
	switch n.Op {
	case "alloc", "machine_frame", "context":
		return ""
	case "save_xmm":
		return fmt.Sprintf("xmm%d", n.Reg)
	}
	return arch.RegName(n.Reg)
}

// ExplainText writes how a frame was found for people. The error is that of w.
func ExplainText(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	if e := inc.Explanation; e != nil {
		t.explanation(inc, e)
	}
	t.missing(inc.Missing)
	t.errors(inc.Errors)
	return t.flush()
}

func (t *text) explanation(inc *triage.Incident, e *triage.Explanation) {
	th := &inc.Threads[e.Thread]
	if e.Arch != dump.ArchUnknown {
		t.arch = e.Arch
	}
	if e.Frame == nil {
		t.line(sgrBold, "Thread %s: the %s half ends before frame %02x", t.idOf(th), e.Half, e.Number)
		t.line("", "Stop:    %s", clean(joinWith(": ", string(e.Stop.Reason), e.Stop.Detail)))
	} else {
		t.line(sgrBold, "Thread %s, frame %02x (%s half): %s", t.idOf(th), e.Number, e.Half, callSite(e.Frame, t.arch))
		t.line("", "Place:   pc %s, sp %s", t.addr(e.Frame.IP), t.addr(e.Frame.SP))
		t.line("", "Rule:    %s (trust: %s%s)", e.Frame.Method, e.Frame.Trust, proofWords(e.Frame))
		if e.Frame.Detail != "" {
			t.line("", "         %s", clean(e.Frame.Detail))
		}
	}
	if e.From == nil {
		t.line("", "From:    the thread's registers")
		return
	}
	t.line("", "From:    frame %02x, %s, sp %s", e.Number-1, callSite(e.From, t.arch), t.addr(e.From.SP))
	for i := range e.Notes {
		t.note(&e.Notes[i], e.From.Module)
	}
}

// imageSource says where the bytes of a module's image come from.
func imageSource(m *triage.Module) string {
	switch {
	case m == nil:
		return ""
	case m.ImagePath != "":
		return ", read from " + clean(m.ImagePath)
	case m.Image == symbols.ImageFromMemory:
		return ", read from the dump's memory"
	}
	return ""
}

// note writes one note. What happened before a rule was given up stays: that is
// how it failed.
func (t *text) note(n *unwind.Note, m *triage.Module) {
	switch n.Kind {
	case unwind.NoteSite:
		t.line("", "Code:    %s, %s", t.addr(n.Addr), clean(n.Detail))
		if n.Module != "" {
			t.line("", "Image:   %s at %s%s", clean(n.Module), t.addr(n.Base), imageSource(m))
		}
		if n.HasEntry {
			t.line("", "Entry:   function %#x to %#x, unwind information at %#x", n.Entry.Begin, n.Entry.End, n.Entry.UnwindInfo)
		}
	case unwind.NoteEpilog:
		label := "Epilog:"
		if t.arch == dump.X86 { // entries and prologues too
			label = "Stands:"
		}
		t.line("", "%-8s %s", label, clean(n.Detail))
	case unwind.NoteUndo:
		t.line("", "  undo   %s", t.undone(n))
	case unwind.NoteReturn:
		t.line("", "  return %s, sp %s", t.read(n), t.addr(n.SP))
	case unwind.NoteRecord:
		t.line("", "Record:  %s", clean(n.Detail))
	case unwind.NoteAssign:
		t.line("", "  assign %s", t.assigned(n))
	case unwind.NoteRejected:
		t.line(sgrYellow, "Not by   %s: %s", n.Rule, clean(n.Detail))
	case unwind.NoteCandidate:
		t.line(sgrDim, "  passed %s: %s", t.read(n), clean(n.Detail))
	}
}

// assigned shows what a frame record gave a variable.
func (t *text) assigned(n *unwind.Note) string {
	switch {
	case n.Addr != 0:
		return fmt.Sprintf("%s = [%s] = %s", n.Name, t.addr(n.Addr), t.addr(n.Value))
	case !n.Known:
		return n.Name + " is not known"
	}
	return n.Name + " = " + t.addr(n.Value)
}

// read shows a word that was read, and where.
func (t *text) read(n *unwind.Note) string {
	if n.Name != "" {
		return fmt.Sprintf("%s = %s", n.Name, t.addr(n.Value))
	}
	if !n.Known {
		return fmt.Sprintf("[%s] is not in the dump", t.addr(n.Addr))
	}
	return fmt.Sprintf("[%s] = %s", t.addr(n.Addr), t.addr(n.Value))
}

func (t *text) undone(n *unwind.Note) string {
	reg := noteRegister(n, t.arch)
	switch n.Op {
	case "alloc":
		return fmt.Sprintf("alloc %#x: sp %s", n.Value, t.addr(n.SP))
	case "set_frame":
		return fmt.Sprintf("set_frame %s = %s: sp %s", reg, t.addr(n.Value), t.addr(n.SP))
	case "machine_frame", "context":
		return fmt.Sprintf("%s at [%s]", n.Op, t.addr(n.Addr))
	}
	return fmt.Sprintf("%s %s: %s", n.Op, reg, t.read(n))
}

// proofWords say whether anything proves a frame that has a scan on the way to it; a
// scan that nothing proves goes without saying.
func proofWords(f *triage.Frame) string {
	switch {
	case f.Proof == triage.ProofNotNeeded, f.Trust == unwind.TrustScan && f.Proof == triage.Unproven:
		return ""
	case f.Trust == unwind.TrustScan:
		return ", " + f.Proof.String()
	}
	return ", behind a scan: " + f.Proof.String()
}
