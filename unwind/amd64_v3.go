package unwind

import (
	"fmt"
	"math"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// Unwind information of version 3, by Microsoft's preview specification. It
// tells of every operation where its instruction begins, in prologs and in
// epilogs, so that no code needs to be looked at. An address has passed what
// begins before it: that holds for the return address less one too, as a call
// is longer than a byte.
//
// A save counts from rsp as it is at its instruction, and not, as before
// version 3, from one base. Undoing in reverse brings rsp back there, provided
// that it is where the prolog left it. After SET_FPREG only the frame register
// tells where that is, so that what was done after it is anchored to that.

const (
	detailV3       = "by version 3 unwind information, a preview specification"
	detailV3Epilog = "in an epilog by version 3 unwind information, a preview specification"
)

// detail is the remark for a frame that the rule finds.
func (r *rule) detail() string {
	switch {
	case !r.v3:
		return ""
	case r.epilog:
		return detailV3Epilog
	}
	return detailV3
}

// compileV3 is compile for version 3. An epilog undoes everything up to the
// return, or with ToParent its own fragment's frame only.
func (r *rule) compileV3(im Table, info *pdata.UnwindInfo, rf pdata.RuntimeFunction, rva uint32) error {
	r.v3, r.baseReg = true, dump.RSP
	e, at := epilogAt(info.V3, rf, rva)
	r.epilog = e != nil
	for range maxChain {
		var done bool
		var err error
		if e != nil {
			done, err = r.addV3(e.Operations, func(o *pdata.OperationV3) bool { return uint32(o.IPOffset) >= at })
			done = done || !e.ToParent
			e = nil
		} else {
			offset := rva - rf.Begin // modulo 2^32: outside a parent all of its prolog is done
			done, err = r.addV3(info.V3.Prolog, func(o *pdata.OperationV3) bool { return passed(info, o, offset) })
		}
		if err != nil || done || !info.Chained {
			return err
		}
		rf = info.Chain
		if info, err = readInfo(im, rf); err != nil {
			return err
		}
		if info.V3 == nil {
			return fmt.Errorf("version 3 chained to version %d", info.Version)
		}
	}
	return fmt.Errorf("more than %d chained entries", maxChain)
}

// epilogAt finds the epilog that holds an RVA, and the RVA's offset in it.
func epilogAt(v3 *pdata.UnwindInfoV3, rf pdata.RuntimeFunction, rva uint32) (*pdata.EpilogV3, uint32) {
	for i := range v3.Epilogs {
		e := &v3.Epilogs[i]
		if start, ok := e.Start(rf); ok && rva >= start && rva-start <= uint32(e.Last) {
			return e, rva - start
		}
	}
	return nil, 0
}

// passed reports whether a prolog's operation has been done at an offset. A
// canonical frame at the very begin is the processor's: no instruction makes it.
func passed(info *pdata.UnwindInfo, o *pdata.OperationV3, offset uint32) bool {
	return offset >= uint32(info.SizeOfProlog) || offset > uint32(o.IPOffset) ||
		o.Op == pdata.WODPushCanonicalFrame && o.IPOffset == 0
}

// addV3 appends those of the operations that are still to be undone. done is
// set by a machine frame, below which there is nothing.
func (r *rule) addV3(ops []pdata.OperationV3, undone func(*pdata.OperationV3) bool) (done bool, err error) {
	anchor, err := r.anchor(ops, undone)
	if err != nil {
		return false, err
	}
	for i := range ops {
		o := &ops[i]
		if i == anchor || !undone(o) {
			continue
		}
		if len(r.ops)+1 >= maxOps {
			return false, fmt.Errorf("more than %d operations", maxOps)
		}
		if done, err = r.undoV3(o); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// anchor looks for the SET_FPREG that comes undone first. Where others come
// before it, rsp is set to where they left it, which SET_FPREG is then not
// needed for: its index is returned, else -1.
func (r *rule) anchor(ops []pdata.OperationV3, undone func(*pdata.OperationV3) bool) (int, error) {
	below, before := uint64(0), false
	for i := range ops {
		o := &ops[i]
		switch {
		case !undone(o):
			continue
		case o.Op == pdata.WODSetFPReg && !before:
			return -1, nil
		case o.Op == pdata.WODSetFPReg:
			if below += uint64(o.Value); below > math.MaxUint32 {
				return 0, fmt.Errorf("a frame of %#x bytes", below)
			}
			r.ops = append(r.ops, undo{undoFrame, dump.Reg(o.Reg), uint32(below)})
			return i, nil
		}
		before = true
		below += stackBytes(o)
	}
	return -1, nil
}

// stackBytes is how far an operation lowers rsp.
func stackBytes(o *pdata.OperationV3) uint64 {
	switch o.Op {
	case pdata.WODPush:
		return 8
	case pdata.WODPush2, pdata.WODPushConsecutive2:
		return 16
	case pdata.WODAllocSmall, pdata.WODAllocLarge, pdata.WODAllocHuge:
		return uint64(o.Value)
	}
	return 0
}

// Types of WOD_PUSH_CANONICAL_FRAME. These two are what the assembler's
// .PUSHFRAME makes; the values of the others (with a shadow stack, a CONTEXT)
// are not published.
const (
	canonicalFrame     = 0
	canonicalFrameCode = 1 // with an error code
)

// undoV3 appends the undoing of one operation.
func (r *rule) undoV3(o *pdata.OperationV3) (done bool, err error) {
	switch o.Op {
	case pdata.WODPush:
		r.pop(o.Reg)
	case pdata.WODPush2, pdata.WODPushConsecutive2:
		r.pop(o.Reg2) // the second is pushed last
		r.pop(o.Reg)
	case pdata.WODAllocSmall, pdata.WODAllocLarge, pdata.WODAllocHuge:
		r.ops = append(r.ops, undo{undoAlloc, 0, o.Value})
	case pdata.WODSetFPReg:
		r.ops = append(r.ops, undo{undoFrame, dump.Reg(o.Reg), o.Value})
	case pdata.WODSaveNonvol, pdata.WODSaveNonvolFar:
		if o.Reg < legacyRegs {
			r.ops = append(r.ops, undo{undoSave, dump.Reg(o.Reg), o.Value})
		}
	case pdata.WODSaveXMM128, pdata.WODSaveXMM128Far:
		r.ops = append(r.ops, undo{undoSaveXMM, dump.Reg(o.Reg), o.Value})
	case pdata.WODPushCanonicalFrame:
		if o.Value > canonicalFrameCode {
			return false, fmt.Errorf("a canonical frame of type %d, whose layout is not published", o.Value)
		}
		r.ops = append(r.ops, undo{undoMachine, 0, o.Value * errorCodeLen})
		return true, nil
	default:
		return false, fmt.Errorf("unknown version 3 operation %d", o.Op)
	}
	return false, nil
}

// legacyRegs is the number of general registers without APX. Registers has no
// slots for r16 to r31, which stay unknown.
const legacyRegs = 16

// pop appends the undoing of a push.
func (r *rule) pop(reg uint8) {
	if reg < legacyRegs {
		r.ops = append(r.ops, undo{undoPop, dump.Reg(reg), 0})
	} else {
		r.ops = append(r.ops, undo{undoAlloc, 0, 8})
	}
}

// stepStoppedV3 is stepStopped by version 3.
func (w *Walker) stepStoppedV3(regs *dump.Registers, f *Frame, s *site, opt *Options) (Stop, bool) {
	epilog := s.rule.epilog
	if w.tracing() {
		w.noteEpilogV3(&s.rule)
	}
	t, stop := w.undo(regs, f, s, opt)
	if epilog && !t.machine {
		t.method = MethodEpilog
	}
	return w.landChecked(regs, f, opt, t, stop)
}

// noteEpilogV3 notes whether the unwind data places the address in an epilog.
func (w *Walker) noteEpilogV3(r *rule) {
	n := Note{Kind: NoteEpilog, Rule: MethodEpilog, Known: r.epilog, Detail: "none here by the version 3 unwind information"}
	if r.epilog {
		n.Detail = "the version 3 unwind information describes one here"
	}
	w.note(n)
}
