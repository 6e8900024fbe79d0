package symbols

import (
	"dumptriage/symbols/pdb"
	"dumptriage/symbols/sym"
)

// FrameKind is what a FrameRecord describes a frame by.
type FrameKind uint8

// Kinds of frame records.
const (
	FrameProgram  FrameKind = iota // a program in postfix notation
	FrameFPO                       // sizes alone
	FrameEBP                       // an ordinary frame on ebp
	FrameTrap                      // a trap frame
	FrameTaskGate                  // a task gate
	FrameCFI                       // rules for registers
)

// FrameRecord is what debug information says about unwinding from an address.
// RVAs are those of the image as loaded, sizes are in bytes.
type FrameRecord struct {
	Kind      FrameKind
	Source    string // "FrameData", "FPO_DATA", "STACK WIN", "STACK CFI"
	RVA       uint32 // of the code that the record is for
	Size      uint32 // of the code
	Function  uint32 // where the function begins, 0 when not known
	Locals    uint32
	Params    uint32 // arguments on the stack
	SavedRegs uint32
	Prolog    uint32 // code from RVA on before which the record does not hold
	UsesEBP   bool   // FrameFPO: ebp is saved and holds something else
	Program   string
	Rules     []sym.Rule // FrameCFI
}

// Framer is Debug that knows how frames are laid out.
type Framer interface {
	// Frames returns the records for an RVA, the best first.
	Frames(rva uint32) []FrameRecord
	// FunctionStart returns where the function begins that is known to reach to
	// an RVA.
	FunctionStart(rva uint32) (uint32, bool)
}

// Frames implements Framer: a program says more than an FPO record.
func (p PDB) Frames(rva uint32) []FrameRecord {
	var out []FrameRecord
	for _, find := range []func(uint32) (pdb.FrameData, bool){p.FrameProgram, p.FPO} {
		d, ok := find(rva)
		if !ok {
			continue
		}
		r := FrameRecord{Source: "FrameData", RVA: d.RVA, Size: d.Size, Locals: d.LocalSize, Params: d.ParamSize, SavedRegs: d.SavedRegsSize,
			Prolog: d.PrologSize, UsesEBP: d.UsesEBP, Program: d.Program, Function: p.functionStart(rva, d)}
		if d.FPO != pdb.FPONone {
			r.Source = "FPO_DATA"
		}
		r.Kind = [...]FrameKind{pdb.FPONone: FrameProgram, pdb.FPOFrame: FrameFPO, pdb.FPOTrap: FrameTrap, pdb.FPOTSS: FrameTaskGate, pdb.FPONonFrame: FrameEBP}[d.FPO]
		out = append(out, r)
	}
	return out
}

// FunctionStart implements Framer.
func (p PDB) FunctionStart(rva uint32) (uint32, bool) {
	loc, ok := p.Lookup(rva)
	if !ok || loc.Source != pdb.SourceProc || rva < loc.FunctionRVA || rva-loc.FunctionRVA >= loc.Size {
		return 0, false
	}
	return loc.FunctionRVA, true
}

// functionStart is where the function begins that a record is for. Records for
// parts of a function do not say.
func (p PDB) functionStart(rva uint32, d pdb.FrameData) uint32 {
	if d.FunctionStart {
		return d.RVA
	}
	start, _ := p.FunctionStart(rva)
	return start
}

// FunctionStart implements Framer.
func (s Sym) FunctionStart(rva uint32) (uint32, bool) {
	loc, ok := s.Lookup(rva)
	if !ok || loc.Public {
		return 0, false
	}
	return loc.RVA, true
}

// Frames implements Framer.
func (s Sym) Frames(rva uint32) []FrameRecord {
	var out []FrameRecord
	add := func(r FrameRecord) {
		r.Function, _ = s.FunctionStart(rva)
		out = append(out, r)
	}
	for _, w := range s.WinFrames(rva) {
		r := FrameRecord{Kind: FrameProgram, Source: "STACK WIN", RVA: w.RVA, Size: w.Size, Locals: w.Locals, Params: w.Parameters, SavedRegs: w.Saved,
			Prolog: w.Prolog, UsesEBP: w.AllocatesEBP, Program: w.Program}
		switch {
		case w.Trap:
			r.Kind = FrameTrap
		case w.TaskGate:
			r.Kind = FrameTaskGate
		case w.Program == "":
			r.Kind = FrameFPO
		}
		add(r)
	}
	if rules, ok := s.CFI(rva); ok {
		start, _ := s.CFIStart(rva)
		add(FrameRecord{Kind: FrameCFI, Source: "STACK CFI", RVA: start, Rules: rules})
	}
	return out
}
