package triage

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"

	"dumptriage/dump"
)

// decodeARM64 decodes one A64 instruction. What the disassembler does not know is
// shown as assemblers write words; its accesses are decoded apart and all the same.
func decodeARM64(regs *dump.Registers, code []byte, pc uint64) *Instruction {
	if len(code) < 4 {
		return nil
	}
	word := binary.LittleEndian.Uint32(code)
	out := &Instruction{Text: fmt.Sprintf(".inst 0x%08x", word), Bytes: append([]byte(nil), code[:4]...)}
	if in, err := arm64asm.Decode(code[:4]); err == nil && in.Op != 0 {
		out.Text = absolute(strings.ToLower(arm64asm.GNUSyntax(in)), pc)
	} else if word>>16 == 0 {
		out.Text = fmt.Sprintf("udf #%#x", word)
	}
	a := arm64Access{regs: regs, word: word, pc: pc}
	if s := a.atomicText(); s != "" {
		out.Text = s
	}
	a.decode()
	out.Accesses = a.list
	return out
}

// absolute gives the target of a branch or an address of data, ".+0x10", as the
// address that it is; adrp counts from the start of the page.
func absolute(text string, pc uint64) string {
	before, distance, ok := strings.Cut(text, ".+0x")
	n, err := strconv.ParseUint(distance, 16, 64)
	if !ok || err != nil {
		return text
	}
	if strings.HasPrefix(text, "adrp ") {
		pc &^= 0xfff
	}
	return fmt.Sprintf("%s%#x", before, pc+n)
}

// arm64Access finds what a load or store touches. Source: the encodings of "Loads
// and Stores" in the Arm Architecture Reference Manual for A-profile, C4.1.
type arm64Access struct {
	regs *dump.Registers
	word uint32
	pc   uint64
	list []MemoryAccess
}

// bits are those of the word from hi to lo.
func (a *arm64Access) bits(hi, lo uint) uint32 { return a.word >> lo & (1<<(hi-lo+1) - 1) }

// signed is a field as a signed number.
func (a *arm64Access) signed(hi, lo uint) uint64 {
	n := 63 - (hi - lo)
	return uint64(int64(uint64(a.bits(hi, lo))<<n) >> n)
}

// gpr is a general register; 31 is the stack pointer in an address and zero elsewhere.
func (a *arm64Access) gpr(n uint32, base bool) (uint64, bool) {
	if n == 31 {
		if !base {
			return 0, true
		}
		return a.regs.SP()
	}
	return a.regs.Get(dump.Reg(n))
}

// at notes an access at the base register and an offset.
func (a *arm64Access) at(offset uint64, known bool, size int, write bool, align int) {
	base, ok := a.gpr(a.bits(9, 5), true)
	m := MemoryAccess{Size: size, Write: write, Align: align, Known: ok && known}
	if m.Known {
		m.Address = base + offset
	}
	a.list = append(a.list, m)
}

// unknown notes that something is accessed, and no more.
func (a *arm64Access) unknown(size int) { a.list = append(a.list, MemoryAccess{Size: size}) }

func (a *arm64Access) decode() {
	switch {
	case a.byAddress(): // cache lines and blocks, whose size the processor knows
		m := MemoryAccess{Write: a.word&^0x1f == 0xd50b7420} // dc zva
		m.Address, m.Known = a.gpr(a.bits(4, 0), false)
		a.list = append(a.list, m)
	case a.bits(31, 31) == 1 && a.bits(28, 25) == 0b0010: // of scalable vectors
		a.unknown(0)
	case a.bits(27, 27) == 0 || a.bits(25, 25) != 0: // no load or store
	case a.bits(29, 27) == 0b111:
		a.register()
	case a.bits(29, 27) == 0b101:
		a.pair()
	case a.bits(29, 27) == 0b011 && a.bits(25, 24) == 0:
		a.literal()
	case a.bits(29, 24) == 0b011001 && a.bits(21, 21) == 0 && a.bits(11, 10) == 0:
		a.single(a.signed(20, 12), true) // ldapur, stlur
	case a.bits(29, 27) == 0b011: // copies of memory, memory tags
		a.unknown(0)
	case a.bits(29, 24) == 0b001000:
		a.ordered()
	case a.bits(31, 31) == 0 && a.bits(29, 25) == 0b00110:
		a.structures()
	}
}

// byAddress reports whether an instruction works on the cache line or block at an
// address: those that programs may use, and "dc ivac". Others name sets and ways,
// nothing, or an address that is only translated.
func (a *arm64Access) byAddress() bool {
	if a.word>>19 != 0xd508<<16>>19 || a.bits(15, 12) != 7 { // sys, of caches
		return false
	}
	op1, crm, op2 := a.bits(18, 16), a.bits(11, 8), a.bits(7, 5)
	return op1 == 3 && (crm == 4 || crm == 5 || crm >= 10) || op1 == 0 && crm == 6 && op2 == 1
}

// single notes a load or store of one register, by size, V and opc.
func (a *arm64Access) single(offset uint64, known bool) {
	size, opc := a.bits(31, 30), a.bits(23, 22)
	if a.bits(26, 26) == 1 {
		log := size | opc>>1<<2
		a.at(offset, known, 1<<log, opc&1 == 0, 0)
		return
	}
	if size == 3 && opc == 2 {
		return // a prefetch fails silently
	}
	a.at(offset, known, 1<<size, opc == 0, 0)
}

// register has the forms of the address of one register's load or store.
func (a *arm64Access) register() {
	if a.bits(25, 24) == 1 { // unsigned offset, in units of the size
		log := a.bits(31, 30)
		if a.bits(26, 26) == 1 {
			log |= a.bits(23, 23) << 2
		}
		a.single(uint64(a.bits(21, 10))<<log, true)
		return
	}
	if a.bits(21, 21) == 0 {
		switch a.bits(11, 10) {
		case 1: // the offset is added afterwards
			a.single(0, true)
		default:
			a.single(a.signed(20, 12), true)
		}
		return
	}
	switch a.bits(11, 10) {
	case 0: // atomics read and write; ldapr alone reads
		if a.bits(26, 26) == 1 || a.bits(15, 15) == 1 && a.bits(13, 12) != 0 {
			a.unknown(0) // of vectors, and of 64 bytes at once
			return
		}
		size := 1 << a.bits(31, 30)
		a.at(0, true, size, a.bits(15, 12) != 0b1100, size)
		a.modifies()
	case 2:
		a.indexed()
	default:
		a.unknown(8) // a signed pointer: where it leads, its code decides
	}
}

// indexed is the address by a second register, extended and shifted.
func (a *arm64Access) indexed() {
	v, ok := a.gpr(a.bits(20, 16), false)
	switch a.bits(15, 13) {
	case 0b010:
		v = uint64(uint32(v))
	case 0b110:
		v = uint64(int64(int32(v)))
	case 0b011, 0b111:
	default:
		return
	}
	if a.bits(12, 12) == 1 {
		log := a.bits(31, 30)
		if a.bits(26, 26) == 1 {
			log |= a.bits(23, 23) << 2
		}
		v <<= log
	}
	a.single(v, ok)
}

func (a *arm64Access) pair() {
	opc, vector := a.bits(31, 30), a.bits(26, 26) == 1
	log := 2 + opc>>1
	if vector {
		log = 2 + opc
	}
	if opc == 3 {
		return
	}
	offset := a.signed(21, 15) << log
	if a.bits(24, 23) == 1 {
		offset = 0
	}
	a.at(offset, true, 2<<log, a.bits(22, 22) == 0, 0)
}

func (a *arm64Access) literal() {
	opc, vector := a.bits(31, 30), a.bits(26, 26) == 1
	size := 4
	switch {
	case opc == 3:
		return // a prefetch
	case vector:
		size = 4 << opc
	case opc == 1:
		size = 8
	}
	a.list = append(a.list, MemoryAccess{Address: a.pc + a.signed(23, 5)<<2, Size: size, Known: true})
}

// ordered are the exclusive loads and stores, those with an order, and compare and
// swap: the address has to be aligned to the size, without the extension LSE2.
func (a *arm64Access) ordered() {
	size := 1 << a.bits(31, 30)
	write := a.bits(22, 22) == 0
	if a.bits(21, 21) == 1 {
		if a.bits(23, 23) == 0 && a.bits(31, 31) == 0 { // casp
			size, write = 8<<a.bits(30, 30), true
		} else if a.bits(23, 23) == 1 { // cas
			write = true
		} else {
			size *= 2 // of a pair
		}
	}
	a.at(0, true, size, write, size)
	if a.bits(21, 21) == 1 && (a.bits(23, 23) == 1 || a.bits(31, 31) == 0) {
		a.modifies()
	}
}

// modifies notes that what the last access writes it reads first.
func (a *arm64Access) modifies() {
	last := &a.list[len(a.list)-1]
	last.Read = last.Write
}

// structures are loads and stores of up to four vectors, or of a lane of each.
func (a *arm64Access) structures() {
	write := a.bits(22, 22) == 0
	if a.bits(24, 24) == 1 {
		vectors, log := (a.bits(13, 13)<<1|a.bits(21, 21))+1, a.bits(15, 14)
		switch {
		case log == 3: // one element into all lanes
			log = a.bits(11, 10)
		case log == 2 && a.bits(10, 10) == 1:
			log = 3
		}
		a.at(0, true, int(vectors)<<log, write, 0)
		return
	}
	registers := map[uint32]int{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}[a.bits(15, 12)]
	if registers == 0 {
		return
	}
	a.at(0, true, registers*8<<a.bits(30, 30), write, 0)
}

// atomicText is the text of the atomic instructions of Armv8.1 and 8.3, which the
// disassembler does not know and which interlocked functions are made of.
func (a *arm64Access) atomicText() string {
	var name string
	acquire, release := a.bits(23, 23) == 1, a.bits(22, 22) == 1
	switch {
	case a.bits(29, 23) == 0b0010001 && a.bits(21, 21) == 1 && a.bits(14, 10) == 31:
		name, acquire, release = "cas", a.bits(22, 22) == 1, a.bits(15, 15) == 1
	case a.bits(29, 24) != 0b111000 || a.bits(21, 21) == 0 || a.bits(11, 10) != 0:
		return ""
	case a.bits(15, 15) == 0:
		name = [8]string{"ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin"}[a.bits(14, 12)]
	case a.bits(15, 12) == 0b1000:
		name = "swp"
	case a.bits(23, 12) == 0xbfc:
		name, acquire = "ldapr", false
	default:
		return ""
	}
	if acquire {
		name += "a"
	}
	if release {
		name += "l"
	}
	size := a.bits(31, 30)
	if size < 2 {
		name += "bh"[size : size+1]
	}
	operands := a.name(a.bits(4, 0), size)
	if !strings.HasPrefix(name, "ldapr") {
		operands = a.name(a.bits(20, 16), size) + ", " + operands
	}
	base := a.name(a.bits(9, 5), 3)
	if base == "xzr" {
		base = "sp"
	}
	return name + " " + operands + ", [" + base + "]"
}

// name is a general register's, by the size of what it holds.
func (a *arm64Access) name(n, size uint32) string {
	prefix := "w"
	if size == 3 {
		prefix = "x"
	}
	if n == 31 {
		return prefix + "zr"
	}
	return fmt.Sprintf("%s%d", prefix, n)
}
