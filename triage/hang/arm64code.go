package hang

import "encoding/binary"

// The instructions of A64 as far as following a value needs them: which registers
// each changes, and for a few to what. Encodings are those of the Arm Architecture
// Reference Manual, C4.1; what is not known to leave a register alone changes it.

// spReg is the number that stands for sp or, in other places, for zero.
const spReg = 31

// armKind says what an instruction leaves in the register that it changes.
type armKind uint8

const (
	armOther   armKind = iota // not known
	armBarrier                // nothing can be followed across it
	armAddress                // imm
	armAdd                    // n + imm
	armMove                   // m
	armImm                    // imm
	armKeep                   // d with 16 bits from imm put in at shift
	armLoad                   // what memory holds at n + imm, or at imm alone without n
)

// armInst is one instruction.
type armInst struct {
	kind   armKind
	writes uint32 // bit n for register n, bit 31 for sp
	target uint64 // of a branch within the function, 0 none
	d, n   int    // n is -1 where a load has no base
	d2     int    // the second register of a pair, -1 none
	m      int
	imm    uint64
	shift  uint
	size   uint64 // of a load, of one register
	signed bool   // a load that extends the sign
	narrow bool   // only 32 bits count
	base   uint64 // added to the base register by writeback
	back   bool
}

func bits(w uint32, high, low int) uint32 { return w << (31 - high) >> (31 - high + low) }

// signed extends a field of n bits.
func signedField(v uint32, n int) uint64 { return uint64(int64(uint64(v)<<(64-n)) >> (64 - n)) }

// mask is the set of one register; number 31 is zero and never changed.
func mask(reg uint32) uint32 {
	if reg == spReg {
		return 0
	}
	return 1 << reg
}

// decodeARM64 decodes the instruction at va.
func decodeARM64(w uint32, va uint64) armInst {
	in := armInst{d: int(bits(w, 4, 0)), n: int(bits(w, 9, 5)), m: int(bits(w, 20, 16)), d2: -1}
	switch op := bits(w, 28, 25); {
	case op&0b1110 == 0b1000:
		in.immediate(w, va)
	case op&0b1110 == 0b1010:
		in.branch(w, va)
	case op&0b0101 == 0b0100:
		in.memory(w, va)
	case op&0b0111 == 0b0101:
		in.registers(w)
	case op&0b0111 == 0b0111: // floating point and vectors, some of which set a general register
		in.writes = mask(bits(w, 4, 0))
	default:
		in.kind = armBarrier
	}
	return in
}

// immediate decodes data processing with an immediate.
func (in *armInst) immediate(w uint32, va uint64) {
	in.narrow, in.writes = bits(w, 31, 31) == 0, mask(bits(w, 4, 0))
	switch bits(w, 25, 23) {
	case 0b000, 0b001: // ADR, ADRP
		in.kind, in.narrow = armAddress, false
		imm := signedField(bits(w, 23, 5)<<2|bits(w, 30, 29), 21)
		if in.imm = va + imm; bits(w, 31, 31) == 1 {
			in.imm = va&^0xfff + imm<<12
		}
	case 0b010: // ADD, SUB
		in.kind, in.imm = armAdd, uint64(bits(w, 21, 10))<<(12*bits(w, 22, 22))
		if bits(w, 30, 30) == 1 {
			in.imm = -in.imm
		}
		if in.d == spReg && bits(w, 29, 29) == 0 {
			in.writes = 1 << spReg
		}
	case 0b011, 0b100: // with tags; logical
		if in.d == spReg && bits(w, 30, 29) != 3 {
			in.writes = 1 << spReg
		}
	case 0b101: // MOVN, MOVZ, MOVK
		in.kind, in.shift, in.imm = armImm, uint(16*bits(w, 22, 21)), uint64(bits(w, 20, 5))
		switch bits(w, 30, 29) {
		case 0b00:
			in.imm = ^(in.imm << in.shift)
		case 0b10:
			in.imm <<= in.shift
		case 0b11:
			in.kind = armKeep
		default:
			in.kind = armBarrier
		}
	}
}

// branch decodes branches, exceptions and system instructions.
func (in *armInst) branch(w uint32, va uint64) {
	switch {
	case bits(w, 31, 26) == 0b000101: // B
		in.kind, in.target = armBarrier, va+signedField(bits(w, 25, 0), 26)<<2
	case bits(w, 31, 24) == 0b01010100, bits(w, 30, 25) == 0b011010: // B.cond, CBZ, CBNZ
		in.target = va + signedField(bits(w, 23, 5), 19)<<2
	case bits(w, 30, 25) == 0b011011: // TBZ, TBNZ
		in.target = va + signedField(bits(w, 18, 5), 14)<<2
	case bits(w, 31, 22) == 0b1101010100: // system: reads set Rt, hints may sign lr or x17
		in.writes = 1<<30 | 1<<17
		if bits(w, 21, 21) == 1 {
			in.writes |= mask(bits(w, 4, 0))
		}
	default: // BL, BR, BLR, RET, SVC, BRK
		in.kind = armBarrier
	}
}

// memory decodes loads and stores.
func (in *armInst) memory(w uint32, va uint64) {
	rt, vector, load := mask(bits(w, 4, 0)), bits(w, 26, 26) == 1, bits(w, 22, 22) == 1
	if vector {
		rt = 0
	}
	switch class := bits(w, 29, 27); {
	case class == 0b101: // pairs
		in.pair(w, rt, vector, load)
	case class == 0b011 && bits(w, 24, 24) == 0: // LDR (literal)
		in.writes = rt
		if size := bits(w, 31, 30); !vector && size < 2 {
			in.kind, in.n, in.size, in.imm = armLoad, -1, 4<<size, va+signedField(bits(w, 23, 5), 19)<<2
		}
	case class == 0b111 && bits(w, 24, 24) == 1: // an unsigned offset
		in.single(w, rt, vector, uint64(bits(w, 21, 10))<<bits(w, 31, 30))
	case class == 0b111 && bits(w, 21, 21) == 0: // a signed offset: plain, behind, before
		mode, imm := bits(w, 11, 10), signedField(bits(w, 20, 12), 9)
		offset := imm
		if mode == 1 {
			offset = 0
		}
		in.single(w, rt, vector, offset)
		if mode == 1 || mode == 3 {
			in.writeback(imm)
		}
	case class == 0b111 && bits(w, 11, 10) == 0b10: // an offset in a register
		if bits(w, 23, 22) != 0 {
			in.writes = rt
		}
	default: // exclusive, atomic, of structures: whatever they name may change
		in.writes = mask(bits(w, 4, 0)) | mask(bits(w, 14, 10)) | mask(bits(w, 20, 16)) | 1<<bits(w, 9, 5)
	}
}

// single decodes a load or store of one register.
func (in *armInst) single(w uint32, rt uint32, vector bool, offset uint64) {
	size, opc := bits(w, 31, 30), bits(w, 23, 22)
	if opc == 0 {
		return // a store
	}
	in.writes = rt
	if !vector && size >= 2 && (opc == 1 || opc == 2 && size == 2) {
		in.kind, in.imm, in.size, in.signed = armLoad, offset, 1<<size, opc == 2
	}
}

func (in *armInst) pair(w uint32, rt uint32, vector, load bool) {
	scale := uint64(4) << bits(w, 31, 31)
	imm := signedField(bits(w, 21, 15), 7) * scale
	mode := bits(w, 24, 23)
	if load && !vector {
		in.writes = rt | mask(bits(w, 14, 10))
		in.d2 = int(bits(w, 14, 10))
		if bits(w, 30, 30) == 0 { // not LDPSW
			in.kind, in.imm, in.size = armLoad, imm, scale
			if mode == 1 {
				in.imm = 0
			}
		}
	}
	if mode == 1 || mode == 3 {
		in.writeback(imm)
	}
}

func (in *armInst) writeback(imm uint64) {
	in.back, in.base = true, imm
	in.writes |= 1 << uint(in.n)
}

// registers decodes data processing between registers.
func (in *armInst) registers(w uint32) {
	in.writes, in.narrow = mask(bits(w, 4, 0)), bits(w, 31, 31) == 0
	switch {
	case bits(w, 30, 21) == 0b0101010_000 && bits(w, 15, 10) == 0 && in.n == spReg: // MOV, that is ORR with zero
		in.kind = armMove
	case bits(w, 28, 24) == 0b01011 && bits(w, 21, 21) == 1 && in.d == spReg && bits(w, 29, 29) == 0: // ADD, SUB extended
		in.writes = 1 << spReg
	}
}

// endsInCallARM64 reports whether an instruction is BL or BLR, authenticating or
// not, and where BL leads.
func endsInCallARM64(w uint32, va uint64) (target uint64, ok bool) {
	switch {
	case bits(w, 31, 26) == 0b100101:
		return va + signedField(bits(w, 25, 0), 26)<<2, true
	case w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800:
		return 0, true
	}
	return 0, false
}

func armWord(code []byte, i int) uint32 { return binary.LittleEndian.Uint32(code[4*i:]) }
