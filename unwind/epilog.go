package unwind

import (
	"bytes"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/pdata"
)

type epilogKind uint8

const (
	epilogNone epilogKind = iota
	epilogBytes
	epilogDescribed // by version 2 data
)

// epilog is what remains of an epilog: rsp = fromReg + add, pops, popfq, then a
// return that drops args bytes, or a machine frame.
type epilog struct {
	kind     epilogKind
	fromReg  dump.Reg
	machine  bool
	popCount int
	pops     [maxPops]dump.Reg
	add      uint64
	flags    uint64 // bytes that popfq takes
	args     uint64
	jump     bool // it ends in a jump
	guessed  bool // by a form that other code may have too
}

// bareJump reports whether nothing but a jump is left of an epilog.
func (e *epilog) bareJump() bool {
	return e.jump && e.fromReg == dump.RSP && e.add == 0 && e.popCount == 0
}

const maxPops = 32

func (e *epilog) pop(reg dump.Reg) bool {
	if e.popCount == maxPops {
		return false
	}
	e.pops[e.popCount] = reg
	e.popCount++
	return true
}

// matchEpilog matches code at a site against the documented epilog:
//
//	add rsp, imm | lea rsp, [frame register + disp]   at most one
//	pop reg                                           any number
//	ret | jmp out of the function
//
// Relaxed matching lets padding and vzeroupper stand between pops and end.
func matchEpilog(code []byte, s *site, info *pdata.UnwindInfo, relaxed bool) epilog {
	e := epilog{kind: epilogBytes, fromReg: dump.RSP}
	c := cursor.New(code, "epilog", -1)
	e.matchAdjust(c, dump.Reg(info.FrameRegister))
	for e.matchPop(c) {
	}
	for relaxed && skipFiller(c) {
	}
	if peek(c, 1)[0] == 0xf2 { // BND
		c.Skip(1)
	}
	if !e.matchEnd(c, s, info) || c.Err() != nil {
		return epilog{}
	}
	return e
}

// matchReturn matches code that is not described by anything: only what ends in
// a plain return counts, as that is where the code itself will go.
func matchReturn(code []byte) epilog {
	e := epilog{kind: epilogBytes, fromReg: dump.RSP}
	c := cursor.New(code, "epilog", -1)
	e.matchAdjust(c, 0)
	for e.matchPop(c) {
	}
	for skipFiller(c) {
	}
	if b := peek(c, 3); b[0] != 0xc3 && b[0] != 0xc2 && (b[0] != 0xf3 || b[1] != 0xc3) {
		return epilog{}
	}
	if !e.matchEnd(c, nil, nil) || c.Err() != nil {
		return epilog{}
	}
	return e
}

// matchAdjust matches the instruction that frees the local variables.
func (e *epilog) matchAdjust(c *cursor.Cursor, frame dump.Reg) {
	b := peek(c, 7)
	switch {
	case b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xc4: // add rsp, imm8
		e.add = signExtend8(b[3])
		c.Skip(4)
	case b[0] == 0x48 && b[1] == 0x81 && b[2] == 0xc4: // add rsp, imm32
		e.add = signExtend32(b[3:])
		c.Skip(7)
	case b[0]&0xfe == 0x48 && b[1] == 0x8d && frame != 0: // lea rsp, [reg+disp]
		if dump.Reg(b[0]&1<<3|b[2]&7) != frame {
			return
		}
		switch b[2] & 0xf8 {
		case 0x60:
			e.fromReg, e.add = frame, signExtend8(b[3])
			c.Skip(4)
		case 0xa0:
			e.fromReg, e.add = frame, signExtend32(b[3:])
			c.Skip(7)
		}
	}
}

func (e *epilog) matchPop(c *cursor.Cursor) bool {
	b := peek(c, 2)
	switch {
	case b[0]&0xf8 == 0x58:
		c.Skip(1)
		return e.pop(dump.Reg(b[0] & 7))
	case b[0]&0xf0 == 0x40 && b[1]&0xf8 == 0x58:
		c.Skip(2)
		return e.pop(dump.Reg(b[0]&1<<3 | b[1]&7))
	}
	return false
}

func skipFiller(c *cursor.Cursor) bool {
	b := peek(c, 8)
	for _, fill := range fillers {
		if bytes.HasPrefix(b[:], fill) {
			c.Skip(len(fill))
			return true
		}
	}
	return false
}

var fillers = [][]byte{
	{0xc5, 0xf8, 0x77},             // vzeroupper
	{0x90},                         // nop
	{0x66, 0x90},                   // nop of 2 bytes
	{0x0f, 0x1f, 0x00},             // of 3
	{0x0f, 0x1f, 0x40, 0x00},       // of 4
	{0x0f, 0x1f, 0x44, 0x00, 0x00}, // of 5
}

// matchEnd matches what leaves the function.
func (e *epilog) matchEnd(c *cursor.Cursor, s *site, info *pdata.UnwindInfo) bool {
	at := c.Offset()
	b := peek(c, 5)
	switch {
	case b[0] == 0xc3:
		c.Skip(1)
		return true
	case b[0] == 0xf3 && b[1] == 0xc3:
		c.Skip(2)
		return true
	case b[0] == 0xc2:
		c.Skip(3)
		e.args = uint64(b[1]) | uint64(b[2])<<8
		return true
	}
	e.jump = true
	switch {
	case b[0] == 0xeb:
		c.Skip(2)
		return leaves(s, info, uint32(at)+2+uint32(signExtend8(b[1])))
	case b[0] == 0xe9:
		c.Skip(5)
		return leaves(s, info, uint32(at)+5+uint32(signExtend32(b[1:])))
	case b[0] == 0xff && b[1] == 0x25: // jmp [rip+disp32]
		c.Skip(6)
		return true
	case b[0]&0xf8 == 0x48 && b[1] == 0xff && b[2]>>3&7 == 4: // REX.W jmp: the compiler's mark of a tail call
		c.Skip(3)
		return true
	}
	return false
}

// leaves reports whether a jump to rel bytes beyond the site is a tail call and
// not a branch within the function: it leaves the entry for another function,
// or goes to the function's very start (recursion).
func leaves(s *site, info *pdata.UnwindInfo, rel uint32) bool {
	to := uint32(s.addr-s.base) + rel
	if to >= s.rf.Begin && to < s.rf.End {
		return to == s.rf.Begin && !info.Chained
	}
	other, ok, err := s.image.Lookup(to)
	if err != nil || !ok {
		return true
	}
	mine := s.image.Primary(s.rf)
	return s.image.Primary(other).Begin != mine.Begin || to == mine.Begin
}

// epilogV2 finds a site in the epilogs that version 2 data lists and works out
// which pops are still to come: those of the pushes, in reverse, from the first
// push that the codes name.
func epilogV2(s *site, info *pdata.UnwindInfo) epilog {
	rva := uint32(s.addr - s.base)
	offset, in := uint32(0), false
	for _, ep := range info.Epilogs {
		offset = rva - (s.rf.End - ep.FromEnd)
		if in = offset < uint32(info.EpilogSize); in {
			break
		}
	}
	if !in {
		return epilog{}
	}
	codes, ok := firstPush(s.image, info)
	if !ok {
		return epilog{}
	}
	e := epilog{kind: epilogDescribed, fromReg: dump.RSP}
	at := uint32(0) // offset in the epilog of the pop that mirrors the code
	for len(codes) > 0 && codes[0].Op == pdata.PushNonvol {
		reg := dump.Reg(codes[0].Info)
		if at >= offset && !e.pop(reg) {
			return epilog{}
		}
		at++
		if reg >= dump.R8 {
			at++ // REX prefix
		}
		codes = codes[1:]
	}
	if pushedFlags(codes) {
		if at >= offset {
			e.flags = 8
		}
		codes = codes[1:]
	}
	e.machine = len(codes) > 0 && codes[0].Op == pdata.PushMachFrame
	return e
}

// firstPush returns the codes from the first push on, which may be in a chained
// entry; without any push those from a final pushfq on.
func firstPush(im Table, info *pdata.UnwindInfo) ([]pdata.UnwindCode, bool) {
	for range maxChain {
		for i, c := range info.Codes {
			if c.Op == pdata.PushNonvol || c.Op == pdata.PushMachFrame || pushedFlags(info.Codes[i:]) {
				return info.Codes[i:], true
			}
		}
		if !info.Chained {
			return nil, true
		}
		var err error
		if info, err = readInfo(im, info.Chain); err != nil {
			return nil, false
		}
	}
	return nil, false
}

// pushedFlags reports whether the next code is a pushfq: an allocation of 8
// bytes by an instruction of one byte, the first of the prolog but for a
// machine frame.
func pushedFlags(codes []pdata.UnwindCode) bool {
	if len(codes) == 0 || codes[0].Op != pdata.AllocSmall || codes[0].Value != 8 {
		return false
	}
	if len(codes) == 1 {
		return codes[0].PrologOffset == 1
	}
	return codes[1].Op == pdata.PushMachFrame && codes[0].PrologOffset-codes[1].PrologOffset == 1
}

// peek returns the next n bytes (at most 8), zero where there are none: no
// instruction looked for begins or ends in zeros.
func peek(c *cursor.Cursor, n int) (b [8]byte) {
	at := c.Offset()
	copy(b[:], c.Bytes(min(n, len(b), c.Left())))
	c.Seek(at)
	return b
}

func signExtend8(b byte) uint64 { return uint64(int64(int8(b))) }

func signExtend32(b []byte) uint64 {
	return uint64(int64(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)))
}
