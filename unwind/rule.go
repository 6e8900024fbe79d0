package unwind

import (
	"errors"
	"fmt"

	"dumptriage/dump"
	"dumptriage/pdata"
)

const (
	maxChain = 32  // chained unwind infos followed
	maxOps   = 256 // operations of one function; real prologs have a few dozen at most
)

// undoOp is one step of undoing a prolog.
type undoOp uint8

const (
	undoAlloc    undoOp = iota // rsp += val
	undoPop                    // reg = [rsp]; rsp += 8
	undoFrame                  // rsp = reg - val
	undoSave                   // reg = [base+val]
	undoSaveXMM                // xmm reg = [base+val]
	undoMachine                // rip, cs, eflags, rsp, ss = [rsp+val]...
	errorCodeLen = 8
)

type undo struct {
	op  undoOp
	reg dump.Reg
	val uint32
}

// rule is the unwind data of one code address, reduced to what has to be done
// there: which operations the address has passed depends on nothing else.
type rule struct {
	ops []undo
	// The frame base that saves are relative to is baseReg - baseOff, with
	// baseReg rsp when there is no frame register (or not yet).
	baseReg dump.Reg
	baseOff uint32
	v3      bool // by version 3: a save is relative to rsp as it is when the save comes undone
	epilog  bool // the address is in an epilog that version 3 describes
}

var errNoFrameReg = errors.New("sets a frame register but names none")

// compile makes the rule for an RVA covered by rf, through chained entries.
func (r *rule) compile(im Table, rf pdata.RuntimeFunction, rva uint32) error {
	info, err := readInfo(im, rf)
	if err != nil {
		return err
	}
	if info.V3 != nil {
		return r.compileV3(im, info, rf, rva)
	}
	r.setBase(info, rva-rf.Begin)
	for range maxChain {
		done, err := r.add(info, rva-rf.Begin)
		if err != nil || done || !info.Chained {
			return err
		}
		rf = info.Chain
		if info, err = readInfo(im, rf); err != nil {
			return err
		}
		if info.V3 != nil {
			return fmt.Errorf("chained to version %d", info.Version)
		}
	}
	return fmt.Errorf("more than %d chained entries", maxChain)
}

func readInfo(im Table, rf pdata.RuntimeFunction) (*pdata.UnwindInfo, error) {
	info, err := im.UnwindInfo(rf.UnwindInfo)
	if err != nil {
		return nil, err
	}
	if info.Version != 1 && info.Version != 2 && info.V3 == nil {
		return nil, fmt.Errorf("unwind information of version %d is not supported", info.Version)
	}
	return info, nil
}

// setBase finds the frame base. It is that of the entry which covers the
// address, and holds for the chained entries too.
func (r *rule) setBase(info *pdata.UnwindInfo, offset uint32) {
	r.baseReg, r.baseOff = dump.RSP, 0
	if info.FrameRegister == 0 {
		return
	}
	set := offset >= uint32(info.SizeOfProlog) || info.Chained
	for i := 0; !set && i < len(info.Codes); i++ {
		c := &info.Codes[i]
		set = c.Op == pdata.SetFPReg && offset >= uint32(c.PrologOffset)
	}
	if set {
		r.baseReg, r.baseOff = dump.Reg(info.FrameRegister), info.FrameOffset
	}
}

// add appends what one entry's prolog has done up to offset. A chained entry's
// offset is taken modulo 2^32, so that code outside it counts as past its
// prolog. done is set by a machine frame, below which there is nothing.
func (r *rule) add(info *pdata.UnwindInfo, offset uint32) (done bool, err error) {
	for i := range info.Codes {
		c := &info.Codes[i]
		if offset < uint32(c.PrologOffset) {
			continue
		}
		if len(r.ops) == maxOps {
			return false, fmt.Errorf("more than %d operations", maxOps)
		}
		if c.Info > 15 {
			return false, fmt.Errorf("operation %d of register %d", c.Op, c.Info)
		}
		reg := dump.Reg(c.Info)
		switch c.Op {
		case pdata.PushNonvol:
			r.ops = append(r.ops, undo{undoPop, reg, 0})
		case pdata.AllocSmall, pdata.AllocLarge:
			r.ops = append(r.ops, undo{undoAlloc, 0, c.Value})
		case pdata.SetFPReg:
			if info.FrameRegister == 0 {
				return false, errNoFrameReg
			}
			r.ops = append(r.ops, undo{undoFrame, dump.Reg(info.FrameRegister), info.FrameOffset})
		case pdata.SaveNonvol, pdata.SaveNonvolFar:
			r.ops = append(r.ops, undo{undoSave, reg, c.Value})
		case pdata.SaveXMM128, pdata.SaveXMM128Far:
			r.ops = append(r.ops, undo{undoSaveXMM, reg, c.Value})
		case pdata.PushMachFrame:
			r.ops = append(r.ops, undo{undoMachine, 0, uint32(c.Info&1) * errorCodeLen})
			return true, nil
		case pdata.Epilog, pdata.Spare: // nothing to undo
		default:
			return false, fmt.Errorf("unknown operation %d", c.Op)
		}
	}
	return false, nil
}
