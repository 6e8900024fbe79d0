package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// FrameKind is what a FrameRecord describes a frame by.
type FrameKind uint8

// Kinds of frame records.
const (
	FrameProgram  FrameKind = iota // a program in postfix notation (FrameData, STACK WIN 4)
	FrameFPO                       // sizes alone: no frame pointer
	FrameEBP                       // FRAME_NONFPO: an ordinary frame on ebp
	FrameTrap                      // a trap frame, which has no return address
	FrameTaskGate                  // a task gate, the same
	FrameCFI                       // a rule for each register (STACK CFI)
)

// FrameRecord is what debug information says about unwinding from an address.
// Addresses are those of the process, sizes are in bytes.
type FrameRecord struct {
	Kind      FrameKind
	Source    string // what people know the record by: "FrameData", "STACK CFI"
	Module    string // base name of the module
	Begin     uint64 // of the code that the record is for
	End       uint64 // behind it, 0 when not known
	RVA       uint32 // the same in its image
	Function  uint64 // where the function begins, 0 when not known
	Locals    uint32 // of local variables
	Params    uint32 // of arguments on the stack
	SavedRegs uint32 // of saved registers
	Prolog    uint32 // of code from Begin on before which the record does not hold
	UsesEBP   bool   // FrameFPO: ebp is saved and holds something else
	Program   string // FrameProgram
	Rules     []RegisterRule
}

// RegisterRule is the rule of FrameCFI for one register: a postfix expression.
// The registers ".cfa" and ".ra" are the frame's address and the return address.
type RegisterRule struct{ Register, Expression string }

// FrameSpace is a Space that knows frame records of verified debug information.
type FrameSpace interface {
	Space
	// FrameRecords returns the records for an address, the best first. They are
	// asked for once per address.
	FrameRecords(va uint64) []FrameRecord
	// FunctionStart returns where the function begins that holds va, when debug
	// information tells its extent.
	FunctionStart(va uint64) (uint64, bool)
}

// maxFrameRecords caps the records that are tried at one address.
const maxFrameRecords = 8

// compiledRecord is a record with its program ready to run.
type compiledRecord struct {
	FrameRecord
	program *program
	rules   []compiledRule
	by      string // the remark for frames found by it
	err     error  // why the record cannot be used
}

// compiledRule is a RegisterRule ready to run.
type compiledRule struct {
	reg  variable
	expr *program
}

// records returns the compiled records for an address.
func (w *Walker) records(va uint64) []compiledRecord {
	if w.frames == nil {
		return nil
	}
	if r, ok := w.compiled[va]; ok {
		return r
	}
	if w.compiled == nil || len(w.compiled) >= maxRemembered {
		w.compiled = map[uint64][]compiledRecord{}
	}
	var out []compiledRecord
	for _, r := range w.frames.FrameRecords(va) {
		if len(out) == maxFrameRecords {
			break
		}
		out = append(out, w.compileRecord(r))
	}
	w.compiled[va] = out
	return out
}

// ebpProgram is what an ordinary frame on ebp means.
const ebpProgram = "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + ="

func (w *Walker) compileRecord(r FrameRecord) compiledRecord {
	c := compiledRecord{FrameRecord: r, by: "by " + r.name()}
	switch r.Kind {
	case FrameProgram:
		c.program, c.err = compileProgram(r.Program, r.Source, w.arch)
	case FrameEBP:
		c.program, c.err = compileProgram(ebpProgram, r.Source, w.arch)
	case FrameCFI:
		c.rules, c.err = compileRules(r.Rules, r.Source, w.arch)
	case FrameTrap:
		c.err = dump.Errorf(dump.BadRecord, r.Source, "says that the code runs on a trap frame, which has no return address")
	case FrameTaskGate:
		c.err = dump.Errorf(dump.BadRecord, r.Source, "says that the code was entered through a task gate, which leaves no return address")
	}
	return c
}

// name is how people find the record.
func (r *FrameRecord) name() string { return fmt.Sprintf("%s at %s+%#x", r.Source, r.Module, r.RVA) }

// text is what the record says, for explain.
func (r *FrameRecord) text() string {
	sizes := fmt.Sprintf("locals %d, saved registers %d, parameters %d", r.Locals, r.SavedRegs, r.Params)
	switch r.Kind {
	case FrameProgram:
		return sizes + ": " + r.Program
	case FrameCFI:
		out := ""
		for i, u := range r.Rules {
			if i > 0 {
				out += " "
			}
			out += u.Register + ": " + u.Expression
		}
		return out
	case FrameFPO:
		if r.UsesEBP {
			return sizes + ", ebp saved"
		}
	case FrameEBP:
		return sizes + ", a frame on ebp"
	}
	return sizes
}
