package unwind

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxRestart     = 96 // instructions looked at
	longestSpill   = 10 // prefix, REX, two-byte opcode, ModRM, SIB, 32-bit displacement
	restartDetail  = "the code ahead begins the function anew: there is no frame yet"
	modrmDisp8     = 1
	modrmDisp32    = 2
	modrmSIB       = 4
	sibRSP         = 0x24 // base rsp, no index
	regFieldOfRSP  = 4
	rexExtendsReg  = 4
	rexPrefix      = 0x40
	highNibbleMask = 0xf0
)

// restarts reports whether the code at va, in the function of s, does nothing
// but spill arguments, call, reload them and jump to the function's very first
// instruction. There the function builds its frame, so at va it has none: its
// unwind data, whose operations are all behind it in the code, says otherwise.
// Up to calls calls may be ahead: one from a frame stopped anywhere, none from
// one at a call, as the call before this one may be that of a panic.
//
// That is how Go compilers lay out the call of morestack, at the end of
// functions whose unwind data is always push rbp; mov rbp, rsp. Undoing that
// would follow the caller's frame pointer and so pass over the caller, and
// nothing about the answer would look wrong; this is therefore asked first.
// Nothing else is affected: a function that has a frame cannot jump to where it
// would build another, but in an epilog, which pops.
func (w *Walker) restarts(s *site, va uint64, calls int) bool {
	if !buildsGoFrame(&s.rule) {
		return false
	}
	var buf [codeBytes]byte
	if w.readCode(buf[:6], s, va-5) == 6 && buf[0] == 0xe8 && buf[5] == 0x90 {
		calls = 0 // padding behind a call: of morestack, or of a panic, behind which the call of morestack begins
	}
	c := cursor.New(nil, "code", -1)
	for range maxRestart {
		if c.Left() < longestSpill {
			n := w.readCode(buf[:], s, va)
			c = cursor.New(buf[:n], "code", -1)
		}
		at := c.Offset()
		b := peek(c, 5)
		switch {
		case b[0] == 0xe8 && calls > 0:
			calls--
			c.Skip(5)
		case b[0] == 0xeb:
			return w.atStart(s, va+2+signExtend8(b[1]))
		case b[0] == 0xe9:
			return w.atStart(s, va+5+signExtend32(b[1:]))
		case skipFiller(c), skipSpill(c):
		default:
			return false
		}
		if c.Err() != nil {
			return false
		}
		va += uint64(c.Offset() - at)
	}
	return false
}

// buildsGoFrame reports whether a rule is that of a frame of Go code, entire.
func buildsGoFrame(r *rule) bool {
	return !r.v3 && len(r.ops) == 2 && r.ops[0] == undo{undoFrame, dump.RBP, 0} && r.ops[1] == undo{undoPop, dump.RBP, 0}
}

// atStart reports whether va is the first instruction of the site's function.
func (w *Walker) atStart(s *site, va uint64) bool {
	if va != s.base+uint64(s.rf.Begin) {
		return false
	}
	info, err := s.image.UnwindInfo(s.rf.UnwindInfo)
	return err == nil && !info.Chained
}

// skipSpill passes over a move between a register other than rsp and the stack
// at a fixed distance from rsp.
func skipSpill(c *cursor.Cursor) bool {
	start := c.Offset()
	ok := matchSpill(c)
	if !ok {
		c.Seek(start)
	}
	return ok
}

func matchSpill(c *cursor.Cursor) bool {
	if p := peek(c, 1)[0]; p == 0x66 || p == 0xf2 || p == 0xf3 {
		c.Skip(1)
	}
	var rex byte
	if b := peek(c, 1)[0]; b&highNibbleMask == rexPrefix {
		rex = b
		c.Skip(1)
	}
	opcode, vector := c.U8(), false
	switch opcode {
	case 0x88, 0x89, 0x8a, 0x8b: // mov
	case 0x0f:
		switch c.U8() {
		case 0x10, 0x11: // movups and its like
			vector = true
		case 0xb6, 0xb7, 0xbe, 0xbf: // movzx, movsx
		default:
			return false
		}
	default:
		return false
	}
	modrm, sib := c.U8(), c.U8()
	if modrm&7 != modrmSIB || sib != sibRSP {
		return false
	}
	if !vector && rex&rexExtendsReg == 0 && modrm>>3&7 == regFieldOfRSP {
		return false
	}
	switch modrm >> 6 {
	case 0:
	case modrmDisp8:
		c.Skip(1)
	case modrmDisp32:
		c.Skip(4)
	default:
		return false
	}
	return c.Err() == nil
}
