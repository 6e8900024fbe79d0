package pdata

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// operand says what follows the first slot of an operation.
type operand uint8

const (
	none      operand = iota
	scaled8           // u16 in units of 8 bytes
	scaled16          // u16 in units of 16 bytes
	unscaled          // u32 in bytes
	byInfo            // scaled8 with info 0, unscaled with info 1
	skipped16         // an obsolete form: two slots, ignored
	skipped32         // an obsolete form: three slots, ignored
)

// operands is the table of "x64 exception handling", in the order of Op. The
// obsolete forms saved the low half of an xmm register.
var operands = [...]operand{
	PushNonvol:    none,
	AllocLarge:    byInfo,
	AllocSmall:    none,
	SetFPReg:      none,
	SaveNonvol:    scaled8,
	SaveNonvolFar: unscaled,
	Epilog:        skipped16,
	Spare:         skipped32,
	SaveXMM128:    scaled16,
	SaveXMM128Far: unscaled,
	PushMachFrame: none,
}

// decodeEpilogs gathers the epilog slots that version 2 puts before all codes
// and returns a cursor over the codes. The first slot gives the size of every
// epilog and, in info bit 0, whether one lies at the very end of the function;
// each further slot a 12-bit distance from the end, 0 for padding.
func (u *UnwindInfo) decodeEpilogs(c *cursor.Cursor) *cursor.Cursor {
	for first := true; c.Left() >= 2; first = false {
		start := c.Offset()
		low, high := c.U8(), c.U8()
		if Op(high&15) != Epilog {
			c.Seek(start)
			break
		}
		info := high >> 4
		distance := uint32(low) | uint32(info)<<8
		if first {
			u.EpilogSize, distance = low, 0
			if info&1 != 0 {
				distance = uint32(low)
			}
		}
		if distance != 0 {
			u.Epilogs = append(u.Epilogs, EpilogV2{FromEnd: distance})
		}
	}
	return c
}

// decodeCodes decodes the slots of a prolog's operations.
func (u *UnwindInfo) decodeCodes(c *cursor.Cursor) error {
	if c.Left() > 0 {
		u.Codes = make([]UnwindCode, 0, c.Left()/2) // at most 255
	}
	for c.Left() > 0 {
		code := UnwindCode{PrologOffset: c.U8()}
		b := c.U8()
		code.Op, code.Info = Op(b&15), b>>4
		if keep := u.decodeOperand(c, &code); keep {
			u.Codes = append(u.Codes, code)
		}
		if err := c.Err(); err != nil {
			// The slots ran out inside the record: its count is wrong, not the file.
			bad := *err.(*dump.Error)
			bad.Code = dump.BadRecord
			return &bad
		}
	}
	return nil
}

// decodeOperand reads the further slots of an operation and reports whether it
// has any effect.
func (u *UnwindInfo) decodeOperand(c *cursor.Cursor, code *UnwindCode) bool {
	if int(code.Op) >= len(operands) {
		c.Fail(dump.BadRecord, "unknown unwind operation %d", code.Op)
		return false
	}
	kind := operands[code.Op]
	if kind == byInfo {
		kind = scaled8
		if code.Info == 1 {
			kind = unscaled
		} else if code.Info > 1 {
			c.Fail(dump.BadRecord, "UWOP_ALLOC_LARGE with info %d", code.Info)
		}
	}
	switch kind {
	case scaled8:
		code.Value = uint32(c.U16()) * 8
	case scaled16:
		code.Value = uint32(c.U16()) * 16
	case unscaled:
		code.Value = c.U32()
	case skipped16:
		if u.Version == 2 {
			c.Fail(dump.BadRecord, "epilog code among the prolog's")
		}
		c.Skip(2)
		return false
	case skipped32:
		c.Skip(4)
		return false
	}
	return u.checkCode(c, code)
}

// checkCode refuses what contradicts itself, and finishes the one-slot forms.
func (u *UnwindInfo) checkCode(c *cursor.Cursor, code *UnwindCode) bool {
	switch {
	case code.Op == AllocSmall:
		code.Value = uint32(code.Info)*8 + 8
	case code.Op == SetFPReg && u.FrameRegister == 0:
		c.Fail(dump.BadRecord, "UWOP_SET_FPREG without a frame register")
	case code.Op == PushMachFrame && code.Info > 1:
		c.Fail(dump.BadRecord, "UWOP_PUSH_MACHFRAME with info %d", code.Info)
	}
	return true
}
