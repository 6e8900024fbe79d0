package oracle

import (
	"golang.org/x/arch/x86/x86asm"
)

// class says what the oracle does with an instruction.
type class uint8

const (
	plain    class = iota // execute it
	call                  // check the call site, step over
	branch                // conditional: go where it is useful
	jump                  // direct
	indirect              // jump through a register or memory
	tail                  // indirect, and marked or known to leave the function
	skip                  // would need a machine around the processor
	end                   // no way on: int3, ud2, hlt, iret
	avx                   // VEX or EVEX: the emulator does not know it
)

// instruction is one decoded as far as the oracle needs.
type instruction struct {
	class  class
	size   int    // 0 when not known
	target uint64 // of branch and jump, relative to the instruction's address
	op     x86asm.Op
	inst   x86asm.Inst
}

// decode looks at the instruction at the beginning of b.
func decode(b []byte) instruction {
	i := prefixes(b)
	if i >= len(b) {
		return instruction{class: end}
	}
	switch b[i] {
	case 0xc4, 0xc5, 0x62, 0xd5: // x86asm misreads these
		return instruction{class: avx, size: vexSize(b, i)}
	}
	in, err := x86asm.Decode(b, 64)
	if err != nil || in.Op == 0 || in.Len == 0 {
		return instruction{class: plain}
	}
	d := instruction{size: in.Len, op: in.Op, inst: in}
	d.classify(b)
	return d
}

func (d *instruction) classify(b []byte) {
	rel, isRel := d.inst.Args[0].(x86asm.Rel)
	if isRel {
		d.target = uint64(d.size) + uint64(int64(rel))
	}
	switch d.op {
	case x86asm.CALL, x86asm.LCALL:
		d.class = call
	case x86asm.JMP:
		d.class = indirect
		if isRel {
			d.class = jump
		} else if mem, ok := d.inst.Args[0].(x86asm.Mem); ok && mem.Base == x86asm.RIP || b[0]&0xf8 == 0x48 {
			d.class = tail // import thunk, or a tail call by the compiler's redundant REX.W
		}
	case x86asm.INT, x86asm.UD1, x86asm.UD2, x86asm.HLT, x86asm.ICEBP, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.LJMP, x86asm.SYSRET, x86asm.SYSEXIT:
		d.class = end
	case x86asm.SYSCALL, x86asm.SYSENTER, x86asm.CPUID, x86asm.XGETBV, x86asm.RDTSC, x86asm.RDTSCP, x86asm.DIV, x86asm.IDIV,
		x86asm.RDMSR, x86asm.WRMSR, x86asm.CLI, x86asm.STI, x86asm.IN, x86asm.OUT, x86asm.INVLPG, x86asm.WBINVD, x86asm.LIDT, x86asm.LGDT,
		x86asm.LTR, x86asm.LLDT, x86asm.SWAPGS, x86asm.XSAVE, x86asm.XRSTOR, x86asm.FXSAVE, x86asm.FXRSTOR, x86asm.CLTS, x86asm.RDPMC:
		d.class = skip
	default:
		if isRel {
			d.class = branch
		}
	}
	if d.class == plain && touchesSystem(d.inst) {
		d.class = skip
	}
}

// touchesSystem reports whether an instruction names a control, debug or
// segment register.
func touchesSystem(in x86asm.Inst) bool {
	for _, a := range in.Args {
		if r, ok := a.(x86asm.Reg); ok && r >= x86asm.ES && r <= x86asm.TR7 {
			return true
		}
	}
	return false
}

func prefixes(b []byte) int {
	i := 0
	for i < len(b) {
		switch b[i] {
		case 0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65:
			i++
			continue
		}
		break
	}
	return i
}

// vexSize is the length of a VEX or EVEX instruction whose first prefix byte is
// at i, 0 when it is not known.
func vexSize(b []byte, i int) int {
	var opcodeMap byte
	switch b[i] {
	case 0xc5:
		opcodeMap, i = 1, i+2
	case 0xc4:
		if i+1 >= len(b) {
			return 0
		}
		opcodeMap, i = b[i+1]&0x1f, i+3
	case 0x62:
		if i+1 >= len(b) {
			return 0
		}
		opcodeMap, i = b[i+1]&7, i+4
	default:
		return 0
	}
	if i+1 >= len(b) || opcodeMap == 0 || opcodeMap > 3 {
		return 0
	}
	op := b[i]
	i++
	if opcodeMap == 1 && op == 0x77 { // vzeroupper, vzeroall
		return i
	}
	return modrmEnd(b, i, opcodeMap == 3 || opcodeMap == 1 && hasImmediate(op))
}

// hasImmediate tells the instructions of the two-byte opcode map that end in an
// immediate byte.
func hasImmediate(op byte) bool {
	switch op {
	case 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6:
		return true
	}
	return false
}

// modrmEnd is where an instruction with its ModRM byte at i ends.
func modrmEnd(b []byte, i int, immediate bool) int {
	mod, rm := b[i]>>6, b[i]&7
	i++
	if mod != 3 && rm == 4 {
		if i >= len(b) {
			return 0
		}
		if mod == 0 && b[i]&7 == 5 {
			i += 4
		}
		i++
	}
	switch {
	case mod == 1:
		i++
	case mod == 2, mod == 0 && rm == 5:
		i += 4
	}
	if immediate {
		i++
	}
	if i > len(b) {
		return 0
	}
	return i
}

// legacy translates a move between an xmm register and memory from its VEX form
// to the one the emulator knows: those save and restore registers in prologs
// and epilogs. ok is false for everything else.
func legacy(b []byte) (out []byte, ok bool) {
	var rex, pp byte
	i := 0
	switch b[0] {
	case 0xc5:
		rex, pp, i = ^b[1]>>5&4, b[1], 2
	case 0xc4:
		if b[1]&0x1f != 1 {
			return nil, false
		}
		rex, pp, i = ^b[1]>>5&7, b[2], 3
	default:
		return nil, false
	}
	if pp&4 != 0 { // 256 bits
		return nil, false
	}
	switch b[i] {
	case 0x10, 0x11, 0x28, 0x29, 0x6f, 0x7f:
	default:
		return nil, false
	}
	if b[i+1]&0xc7 == 5 { // relative to rip, which is elsewhere in the copy
		return nil, false
	}
	if pp&3 >= 2 && b[i]&0xfe == 0x10 { // scalar
		return nil, false
	}
	if p := [4]byte{0, 0x66, 0xf3, 0xf2}[pp&3]; p != 0 {
		out = append(out, p)
	}
	n := modrmEnd(b, i+1, false)
	if n == 0 {
		return nil, false
	}
	out = append(out, 0x40|rex, 0x0f)
	return append(out, b[i:n]...), true
}

// adjustsByRegister reports whether b begins with sub rsp, reg and returns the
// register: the allocation whose size a probe or the program computed.
func adjustsByRegister(b []byte) (reg int, ok bool) {
	if len(b) < 3 || b[0]&0xf8 != 0x48 {
		return 0, false
	}
	switch {
	case b[1] == 0x2b && b[2]&0xf8 == 0xe0: // sub rsp, r/m
		return int(b[2]&7 | b[0]&1<<3), true
	case b[1] == 0x29 && b[2]&0xc7 == 0xc4: // sub r/m, reg
		return int(b[2]>>3&7 | b[0]&4<<1), true
	}
	return 0, false
}
