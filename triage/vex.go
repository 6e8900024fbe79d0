package triage

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

// The moves between vectors and memory in the VEX and EVEX encodings, which the
// decoder of the other instructions does not know. With these encodings only
// moves that are made for it need their operand aligned: exception types 1 and
// E1 of the Intel manual (volume 2, "AVX and SSE Instruction Exception
// Classification"). Every other instruction takes any address.

// vexMove is what an opcode moves.
type vexMove struct {
	name  string // with EVEX.W=1 the one behind the comma, if there is one
	store bool
	align bool // the operand's address has to be a multiple of its size
	size  int  // of the operand in bytes, 0 for the whole vector
	only  byte // 'v' VEX, 'e' EVEX, 0 both
}

// vexKey is an opcode: its map (1 is 0F, 2 is 0F38), the implied prefix (0 none, 1
// 66, 2 F3, 3 F2), and the byte.
type vexKey struct{ opMap, pp, op byte }

// noReg stands for a register that is not among those at hand.
const noReg = ^x86asm.Reg(0)

// vexMoves are those of volume 2 of the manual; EVEX names are wanted where they differ.
var vexMoves = map[vexKey][]vexMove{
	{1, 0, 0x10}: {{name: "vmovups"}}, {1, 0, 0x11}: {{name: "vmovups", store: true}},
	{1, 1, 0x10}: {{name: "vmovupd"}}, {1, 1, 0x11}: {{name: "vmovupd", store: true}},
	{1, 2, 0x10}: {{name: "vmovss", size: 4}}, {1, 2, 0x11}: {{name: "vmovss", size: 4, store: true}},
	{1, 3, 0x10}: {{name: "vmovsd", size: 8}}, {1, 3, 0x11}: {{name: "vmovsd", size: 8, store: true}},
	{1, 0, 0x28}: {{name: "vmovaps", align: true}}, {1, 0, 0x29}: {{name: "vmovaps", align: true, store: true}},
	{1, 1, 0x28}: {{name: "vmovapd", align: true}}, {1, 1, 0x29}: {{name: "vmovapd", align: true, store: true}},
	{1, 0, 0x2b}: {{name: "vmovntps", align: true, store: true}}, {1, 1, 0x2b}: {{name: "vmovntpd", align: true, store: true}},
	{1, 1, 0x6f}: {{name: "vmovdqa", align: true, only: 'v'}, {name: "vmovdqa32,vmovdqa64", align: true, only: 'e'}},
	{1, 1, 0x7f}: {{name: "vmovdqa", align: true, store: true, only: 'v'}, {name: "vmovdqa32,vmovdqa64", align: true, store: true, only: 'e'}},
	{1, 2, 0x6f}: {{name: "vmovdqu", only: 'v'}, {name: "vmovdqu32,vmovdqu64", only: 'e'}},
	{1, 2, 0x7f}: {{name: "vmovdqu", store: true, only: 'v'}, {name: "vmovdqu32,vmovdqu64", store: true, only: 'e'}},
	{1, 3, 0x6f}: {{name: "vmovdqu8,vmovdqu16", only: 'e'}}, {1, 3, 0x7f}: {{name: "vmovdqu8,vmovdqu16", store: true, only: 'e'}},
	{1, 1, 0xe7}: {{name: "vmovntdq", align: true, store: true}},
	{1, 3, 0xf0}: {{name: "vlddqu", only: 'v'}},
	{2, 1, 0x2a}: {{name: "vmovntdqa", align: true}},
}

// vexPrefix is what a VEX or EVEX prefix says, its bits as they are meant.
type vexPrefix struct {
	key     vexKey
	evex    bool
	wide    bool // W
	length  int  // of a vector in bytes
	reg     int  // bits 3 and 4 of the register operand
	base    int  // bit 3 of the base, with bit 4 where the base is one of the APX registers
	index   int  // bit 3 of the index, the same
	mask    byte // EVEX: the mask register, 0 none
	zeroing bool
}

// decodeVex decodes a move of the table with an operand in memory; nil for every
// other instruction. code begins at the first prefix.
func decodeVex(regs *dump.Registers, code []byte, pc uint64) *Instruction {
	seg, short, n := vexLegacyPrefixes(code)
	p, size := readVexPrefix(code[n:])
	if size == 0 || len(code) < n+size+2 {
		return nil
	}
	n += size
	p.key.op = code[n]
	move := p.move()
	if move == nil {
		return nil
	}
	width := move.size
	if width == 0 {
		width = p.length
	}
	if short && regs.Arch == dump.X86 {
		return nil // 16-bit addresses, which compilers do not make
	}
	m, size, ok := p.memory(code[n+1:], width, short, regs.Arch)
	if !ok {
		return nil
	}
	n += 1 + size
	m.Segment = seg
	a := MemoryAccess{Size: width, Write: move.store}
	if move.align {
		a.Align = width
	}
	if m.Base == noReg || m.Index == noReg { // r16 to r31, which no CONTEXT at hand holds
		return nil
	}
	a.place(regs, m, pc+uint64(n))
	return &Instruction{Text: p.text(move, m, width), Bytes: append([]byte(nil), code[:n]...), Accesses: []MemoryAccess{a}}
}

// vexLegacyPrefixes reads the prefixes that may stand before VEX and EVEX: a segment
// and a smaller address.
func vexLegacyPrefixes(code []byte) (seg x86asm.Reg, short bool, n int) {
	for ; n < len(code) && n < 4; n++ {
		switch code[n] {
		case 0x64:
			seg = x86asm.FS
		case 0x65:
			seg = x86asm.GS
		case 0x67:
			short = true
		case 0x2e, 0x36, 0x3e, 0x26:
		default:
			return seg, short, n
		}
	}
	return seg, short, n
}

// readVexPrefix reads a prefix and returns its size, 0 when it is none, or one that
// no move of the table has.
func readVexPrefix(b []byte) (p vexPrefix, size int) {
	not := func(v byte, bit int) int { return int(^v >> bit & 1) }
	if len(b) < 4 {
		return p, 0
	}
	vvvv := b[1]
	switch b[0] {
	case 0xc5:
		p.key, p.reg, size = vexKey{opMap: 1}, not(b[1], 7)<<3, 2
	case 0xc4:
		vvvv, size = b[2], 3
		p.key, p.reg, p.index, p.base = vexKey{opMap: b[1] & 31}, not(b[1], 7)<<3, not(b[1], 6)<<3, not(b[1], 5)<<3
		p.wide = b[2]>>7 != 0
	case 0x62:
		vvvv, size, p.evex = b[2], 4, true
		p.key, p.wide = vexKey{opMap: b[1] & 7}, b[2]>>7 != 0
		p.reg, p.index, p.base = not(b[1], 7)<<3|not(b[1], 4)<<4, not(b[1], 6)<<3, not(b[1], 5)<<3
		if b[1]&8 != 0 {
			p.base |= 16
		}
		if b[2]&4 == 0 {
			p.index |= 16
		}
		p.length, p.mask, p.zeroing = 16<<(b[3]>>5&3), b[3]&7, b[3]>>7 != 0
		if b[3]&8 == 0 || b[3]&16 != 0 || p.length > 64 { // V', broadcast: not of moves
			return p, 0
		}
	default:
		return p, 0
	}
	if !p.evex {
		p.length = 16 << (vvvv >> 2 & 1)
	}
	p.key.pp = vvvv & 3
	if vvvv>>3&15 != 15 { // a second source, which these moves lack
		return p, 0
	}
	return p, size
}

// move is what the opcode moves, nil when the table lacks it.
func (p *vexPrefix) move() *vexMove {
	for i := range vexMoves[p.key] {
		m := &vexMoves[p.key][i]
		if m.only == 0 || (m.only == 'e') == p.evex {
			return m
		}
	}
	return nil
}

// memory reads ModRM, SIB and displacement of an operand in memory. A displacement
// of one byte counts in units of the operand with EVEX. Registers that are not
// among the first sixteen are noReg.
func (p *vexPrefix) memory(b []byte, width int, short bool, arch dump.Arch) (m x86asm.Mem, size int, ok bool) {
	if len(b) == 0 || b[0]>>6 == 3 {
		return m, 0, false
	}
	p.reg |= int(b[0] >> 3 & 7)
	mod, rm, size := b[0]>>6, int(b[0]&7), 1
	reg := func(n int) x86asm.Reg {
		switch {
		case n > 15:
			return noReg
		case short || arch == dump.X86:
			return x86asm.EAX + x86asm.Reg(n)
		}
		return x86asm.RAX + x86asm.Reg(n)
	}
	bare := false // no base
	if rm == 4 {
		if len(b) < 2 {
			return m, 0, false
		}
		sib := b[1]
		size++
		rm = int(sib & 7)
		if index := int(sib>>3&7) | p.index; index != 4 {
			m.Index, m.Scale = reg(index), 1<<(sib>>6)
		}
		bare = mod == 0 && rm == 5
	}
	bits := 0
	switch {
	case mod == 1:
		bits = 8
	case mod == 2 || bare:
		bits = 32
	case b[0]&7 == 5 && mod == 0:
		bits, bare = 32, true
		switch {
		case short && arch == dump.AMD64:
			m.Base = x86asm.EIP
		case arch == dump.AMD64:
			m.Base = x86asm.RIP
		}
	}
	if !bare {
		m.Base = reg(rm | p.base)
	}
	if len(b) < size+bits/8 {
		return m, 0, false
	}
	switch bits {
	case 8:
		m.Disp = int64(int8(b[size]))
		if p.evex {
			m.Disp *= int64(width)
		}
	case 32:
		m.Disp = int64(int32(uint32(b[size]) | uint32(b[size+1])<<8 | uint32(b[size+2])<<16 | uint32(b[size+3])<<24))
	}
	return m, size + bits/8, true
}

// text writes the instruction as the other ones are.
func (p *vexPrefix) text(move *vexMove, m x86asm.Mem, width int) string {
	name := move.name
	if narrow, wide, two := strings.Cut(name, ","); two {
		if name = narrow; p.wide {
			name = wide
		}
	}
	mask := ""
	if p.mask != 0 {
		mask = fmt.Sprintf("{k%d}", p.mask)
		if p.zeroing {
			mask += "{z}"
		}
	}
	vector := fmt.Sprintf("%cmm%d", map[int]byte{16: 'x', 32: 'y', 64: 'z'}[max(p.vectorLength(move), 16)], p.reg)
	memory := map[int]string{4: "dword", 8: "qword", 16: "xmmword", 32: "ymmword", 64: "zmmword"}[width] + " ptr " + operandText(m)
	if move.store {
		return name + " " + memory + mask + ", " + vector
	}
	return name + " " + vector + mask + ", " + memory
}

func (p *vexPrefix) vectorLength(move *vexMove) int {
	if move.size != 0 {
		return 16
	}
	return p.length
}

// operandText writes an operand in memory.
func operandText(m x86asm.Mem) string {
	var parts []string
	if m.Base != 0 {
		parts = append(parts, strings.ToLower(m.Base.String()))
	}
	if m.Index != 0 {
		part := strings.ToLower(m.Index.String())
		if m.Scale > 1 {
			part = fmt.Sprintf("%d*%s", m.Scale, part)
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, "+")
	switch {
	case text == "":
		text = fmt.Sprintf("%#x", uint64(m.Disp))
	case m.Disp < 0:
		text += fmt.Sprintf("-%#x", -m.Disp)
	case m.Disp > 0:
		text += fmt.Sprintf("+%#x", m.Disp)
	}
	if m.Segment != 0 {
		return strings.ToLower(m.Segment.String()) + ":[" + text + "]"
	}
	return "[" + text + "]"
}
