package oracle

import (
	"encoding/binary"

	"golang.org/x/arch/arm64/arm64asm"
)

// Register numbers.
const (
	armFP = 29
	armLR = 30
	armSP = 31
	armPC = 32
)

// Classes that only ARM64 has.
const (
	armReturn = avx + 1 + iota
	pacIn     // paciasp, pacibsp: signs lr
	pacOut    // autiasp, autibsp, xpaclri: takes the signature off
)

// armInstruction is an instruction decoded as far as the oracle needs.
type armInstruction struct {
	class  class
	word   uint32
	target uint64 // of branch, jump and direct call, relative to the instruction's address
	signed bool   // a return that authenticates
}

// decodeARM64 classifies an instruction by the encodings of the Arm
// Architecture Reference Manual.
func decodeARM64(b []byte) armInstruction {
	if len(b) < 4 {
		return armInstruction{class: end}
	}
	w := binary.LittleEndian.Uint32(b)
	d := armInstruction{word: w}
	signed := func(high, bits uint) uint64 { // the field of that many bits below high, times 4
		return uint64(int64(w<<(31-high)) << 32 >> (64 - bits) * 4)
	}
	switch {
	case w>>26 == 0b100101: // bl
		d.class, d.target = call, signed(25, 26)
	case w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800: // blr, blraa and so on
		d.class = call
	case w>>26 == 0b000101: // b
		d.class, d.target = jump, signed(25, 26)
	case w>>24 == 0x54, w&0x7e000000 == 0x34000000: // b.cond, cbz, cbnz
		d.class, d.target = branch, signed(23, 19)
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		d.class, d.target = branch, signed(18, 14)
	case w&0xfffffc1f == 0xd61f0000, w&0xfefff800 == 0xd61f0800: // br, braa and so on
		d.class = indirect
	case w&0xfffffc1f == 0xd65f0000: // ret
		d.class = armReturn
	case w&0xfffffbff == 0xd65f0bff: // retaa, retab
		d.class, d.signed = armReturn, true
	case w == 0xd503233f, w == 0xd503237f: // paciasp, pacibsp
		d.class = pacIn
	case w == 0xd50323bf, w == 0xd50323ff, w == 0xd50320ff: // autiasp, autibsp, xpaclri
		d.class = pacOut
	case w>>24 == 0xd4 && w&0xe0001f == 0x01, w>>20 == 0xd53, w>>20 == 0xd51: // svc, mrs, msr
		d.class = skip
	case w>>24 == 0xd4, w>>16 == 0, w&0xfe000000 == 0xd6000000: // brk, hlt, udf, eret
		d.class = end
	}
	return d
}

// spChange tells additions of an immediate to sp, or subtractions, which give
// sp: its change.
func (d armInstruction) spChange() (by int64, ok bool) {
	if d.word&0xbf8003ff != 0x910003ff {
		return 0, false
	}
	by = int64(d.word >> 10 & 0xfff)
	if d.word>>22&1 != 0 {
		by <<= 12
	}
	if d.word>>30&1 != 0 {
		by = -by
	}
	return by, true
}

// writesSP reports whether an instruction changes sp.
func (d armInstruction) writesSP() bool {
	w := d.word
	switch {
	case w&0x1f800000 == 0x11000000: // add, sub with an immediate
		return w&0x1f == 31 && w>>29&1 == 0
	case w&0x1fe00000 == 0x0b200000: // and with an extended register
		return w&0x1f == 31 && w>>29&1 == 0
	case w&0x1f800000 == 0x12000000: // logical ones with an immediate
		return w&0x1f == 31 && w>>29&3 != 3
	case w&0x3a800000 == 0x28800000: // ldp, stp with writeback
		return w>>5&0x1f == 31
	case w&0x3b200400 == 0x38000400: // ldr, str with writeback
		return w>>5&0x1f == 31
	}
	return false
}

// allocates tells sub Xd, sp, Xm, an allocation of computed size: the register
// and how far it is shifted.
func (d armInstruction) allocates() (reg int, shift uint, ok bool) {
	if d.word&0xffe003e0 != 0xcb2003e0 {
		return 0, 0, false
	}
	return int(d.word >> 16 & 0x1f), uint(d.word >> 10 & 7), true
}

// compares tells cmp of a register with an immediate.
func (d armInstruction) compares() (reg int, limit uint64, ok bool) {
	if d.word&0x7fc0001f != 0x7100001f {
		return 0, 0, false
	}
	return int(d.word >> 5 & 0x1f), uint64(d.word >> 10 & 0xfff), true
}

// above reports whether a conditional branch is b.hi, b.hs, b.gt or b.ge.
func (d armInstruction) above() bool {
	switch d.word & 0xf {
	case 8, 2, 12, 10:
		return d.word>>24 == 0x54
	}
	return false
}

// leaves reports whether what follows is not, or need not be, reached.
func (d armInstruction) leaves() bool {
	switch d.class {
	case jump, indirect, armReturn, end, call:
		return true
	}
	return false
}

func textARM64(b []byte) string {
	in, err := arm64asm.Decode(b)
	if err != nil {
		return ""
	}
	return arm64asm.GNUSyntax(in)
}
