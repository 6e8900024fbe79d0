package triage

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

const maxInstruction = 15

// explainFault decodes the instruction at a fault and, where the exception
// record cannot hold the address that was accessed, computes it. The processor
// reports an access to a non-canonical address without the address, which
// Windows shows as a read of ^0. teb is where the segment lies that threads have of
// their own, 0 when it is not known.
func explainFault(sp *space, c *Crash, teb uint64) {
	regs := &c.Context
	pc, ok := regs.PC()
	if !ok {
		return
	}
	var code [maxInstruction]byte
	n, _ := sp.ReadAt(code[:], pc)
	if n == 0 {
		if im, base := sp.Image(pc); im != nil {
			n, _ = im.ReadRVA(code[:], uint32(pc-base))
		}
	}
	if !executed(&c.Exception) {
		n = 0 // the fault was to read the instruction
	}
	c.Instruction = decode(regs, code[:n], pc)
	c.Instruction.resolve(teb, regs.Arch)
	c.Instruction.follow(sp, regs)
	if c.Code != exceptionAccessViolation || len(c.Parameters) < 2 {
		return
	}
	accessed := c.Parameters[1]
	switch {
	case regs.Arch == dump.AMD64 && accessed == ^uint64(0) && c.Instruction != nil:
		for _, a := range c.Instruction.Accesses {
			if a.Known && !canonical(a.Address) {
				c.Adjusted = &AdjustedAddress{Kind: "non-canonical", Address: a.Address}
				return
			}
		}
	case accessed < nullPage && !absoluteOperand(c.Instruction):
		c.Adjusted = &AdjustedAddress{Kind: "null-pointer", Offset: accessed}
	}
}

// absoluteOperand reports whether an instruction accesses an address that stands in it
// and is no pointer with an offset: "mov dword ptr [0x0], 0x1".
func absoluteOperand(in *Instruction) bool { return in != nil && strings.Contains(in.Text, "[0x") }

const (
	exceptionAccessViolation = 0xc0000005
	// nullPage is the part at the bottom of the address space that Windows
	// never maps, so that a null pointer with a field's offset faults.
	nullPage = 0x10000
)

// executed reports whether the instruction at a fault was run: not where the
// access that failed was the processor's own, for the instruction.
func executed(e *dump.Exception) bool {
	const executing = 8 // the first parameter: 0 read, 1 write, 8 execute
	return e.Code != exceptionAccessViolation || len(e.Parameters) == 0 || e.Parameters[0] != executing
}

// canonical reports whether bits 47 to 63 of an address agree.
func canonical(va uint64) bool { return va+1<<47 < 1<<48 }

// decode decodes one instruction, or returns nil where the decoder cannot be
// believed: it reports success for prefixes it does not know and misreads VEX,
// EVEX and REX2 encodings.
func decode(regs *dump.Registers, code []byte, pc uint64) *Instruction {
	mode := 64
	switch regs.Arch {
	case dump.AMD64:
	case dump.X86:
		mode = 32
	case dump.ARM64:
		return decodeARM64(regs, code, pc)
	default:
		return nil
	}
	if newEncoding(code, mode) {
		return decodeVex(regs, code, pc)
	}
	in, err := x86asm.Decode(code, mode)
	if err != nil || in.Op == 0 || in.Len == 0 || in.Len > len(code) {
		return nil
	}
	out := &Instruction{
		// The decoder leaves an address of nothing but a displacement of 0 empty.
		Text:  strings.ReplaceAll(strings.ToLower(x86asm.IntelSyntax(in, pc, nil)), "[]", "[0x0]"),
		Bytes: append([]byte(nil), code[:in.Len]...),
	}
	out.Accesses = accesses(regs, in, pc)
	return out
}

// newEncoding reports whether the first byte after legacy prefixes begins a
// VEX, EVEX or REX2 encoding. In 32-bit code the first byte of VEX and EVEX is
// also that of LES, LDS and BOUND, which take no register as their operand.
func newEncoding(code []byte, mode int) bool {
	for i, b := range code {
		switch b {
		case 0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf0:
			continue
		case 0xc4, 0xc5, 0x62:
			return mode == 64 || i+1 < len(code) && code[i+1] >= 0xc0
		case 0xd5:
			return mode == 64
		}
		return false
	}
	return false
}

// accesses lists an instruction's memory operands with their addresses.
func accesses(regs *dump.Registers, in x86asm.Inst, pc uint64) []MemoryAccess {
	var out []MemoryAccess
	if in.Op == x86asm.LEA || in.Op == x86asm.NOP {
		return nil
	}
	for i, arg := range in.Args {
		switch m := arg.(type) {
		case x86asm.Mem:
			a := MemoryAccess{Size: in.MemBytes, Write: i == 0 && writesFirst(in.Op), Align: alignment(in)}
			a.Read = a.Write && modifies(in.Op)
			a.place(regs, m, pc+uint64(in.Len))
			out = append(out, a)
		}
	}
	return out
}

// alignment is what an instruction's operand in memory has to be aligned to, 0 when
// any address will do: of the older encodings all operands of 16 bytes, but those of
// the moves that are made for any address and of the comparisons of strings, and the
// areas that registers are saved in (Intel manual, volume 1, 4.1.1 and 10.5).
func alignment(in x86asm.Inst) int {
	switch in.Op {
	case x86asm.MOVUPS, x86asm.MOVUPD, x86asm.MOVDQU, x86asm.LDDQU, x86asm.PCMPESTRI, x86asm.PCMPESTRM, x86asm.PCMPISTRI, x86asm.PCMPISTRM:
		return 0
	case x86asm.FXSAVE, x86asm.FXSAVE64, x86asm.FXRSTOR, x86asm.FXRSTOR64:
		return 16
	case x86asm.XSAVE, x86asm.XSAVE64, x86asm.XSAVEOPT, x86asm.XSAVEOPT64, x86asm.XRSTOR, x86asm.XRSTOR64:
		return 64
	}
	if in.MemBytes == 16 {
		return 16
	}
	return 0
}

// writesFirst reports whether an operation writes its first operand. These are
// the ones that only read it where it is memory.
func writesFirst(op x86asm.Op) bool {
	switch op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH, x86asm.CALL, x86asm.JMP, x86asm.LCALL, x86asm.LJMP,
		x86asm.BT, x86asm.MUL, x86asm.IMUL, x86asm.DIV, x86asm.IDIV, x86asm.BOUND,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD, x86asm.XLATB,
		x86asm.FLD, x86asm.FILD, x86asm.FBLD, x86asm.FADD, x86asm.FIADD, x86asm.FMUL, x86asm.FIMUL, x86asm.FSUB, x86asm.FISUB,
		x86asm.FSUBR, x86asm.FISUBR, x86asm.FDIV, x86asm.FIDIV, x86asm.FDIVR, x86asm.FIDIVR, x86asm.FCOM, x86asm.FICOM,
		x86asm.FCOMP, x86asm.FICOMP, x86asm.FLDCW, x86asm.FLDENV, x86asm.FRSTOR, x86asm.FXRSTOR, x86asm.FXRSTOR64,
		x86asm.XRSTOR, x86asm.XRSTOR64, x86asm.LDMXCSR, x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1,
		x86asm.PREFETCHT2, x86asm.PREFETCHW, x86asm.CLFLUSH, x86asm.LGDT, x86asm.LIDT, x86asm.LLDT, x86asm.LTR, x86asm.LMSW,
		x86asm.VERR, x86asm.VERW, x86asm.INVLPG:
		return false
	}
	return true
}

// place computes an operand's address. That of FS or GS is relative to a segment
// whose base a CONTEXT does not hold; one of the two is the thread's TEB.
func (a *MemoryAccess) place(regs *dump.Registers, m x86asm.Mem, next uint64) {
	a.Address, a.Known = effective(regs, m, next)
	if m.Segment != x86asm.FS && m.Segment != x86asm.GS {
		return
	}
	own := map[dump.Arch]x86asm.Reg{dump.AMD64: x86asm.GS, dump.X86: x86asm.FS}[regs.Arch]
	if a.Known && m.Segment == own {
		a.inTEB, a.offset = true, a.Address
	}
	a.Address, a.Known = 0, false
}

// resolve adds the TEB's address to the operands that are relative to it.
func (in *Instruction) resolve(teb uint64, arch dump.Arch) {
	if in == nil || teb == 0 {
		return
	}
	for i := range in.Accesses {
		if a := &in.Accesses[i]; a.inTEB {
			a.Address, a.Known = arch.Narrow(teb+a.offset), true
		}
	}
}

// modifies reports whether an operation reads its first operand in memory before it
// writes it.
func modifies(op x86asm.Op) bool {
	switch op {
	case x86asm.ADC, x86asm.ADD, x86asm.AND, x86asm.BTC, x86asm.BTR, x86asm.BTS, x86asm.CMPXCHG, x86asm.CMPXCHG16B, x86asm.CMPXCHG8B,
		x86asm.DEC, x86asm.INC, x86asm.NEG, x86asm.NOT, x86asm.OR, x86asm.RCL, x86asm.RCR, x86asm.ROL, x86asm.ROR, x86asm.SAR, x86asm.SBB,
		x86asm.SHL, x86asm.SHLD, x86asm.SHR, x86asm.SHRD, x86asm.SUB, x86asm.XADD, x86asm.XCHG, x86asm.XOR:
		return true
	}
	return false
}

// effective computes base + index*scale + displacement, where every register it
// needs is known; 32-bit registers make it a 32-bit address.
func effective(regs *dump.Registers, m x86asm.Mem, next uint64) (uint64, bool) {
	addr, short := uint64(m.Disp), regs.Arch == dump.X86
	for _, part := range []struct {
		reg   x86asm.Reg
		scale uint64
	}{{m.Base, 1}, {m.Index, uint64(m.Scale)}} {
		if part.reg == 0 {
			continue
		}
		short = short || part.reg == x86asm.EIP || part.reg >= x86asm.EAX && part.reg <= x86asm.R15L
		if part.reg == x86asm.RIP || part.reg == x86asm.EIP {
			addr += next
			continue
		}
		slot, ok := gprSlot(part.reg)
		if !ok {
			return 0, false
		}
		v, known := regs.Get(slot)
		if !known {
			return 0, false
		}
		addr += v * part.scale
	}
	if short {
		addr = uint64(uint32(addr))
	}
	return addr, true
}

func gprSlot(r x86asm.Reg) (dump.Reg, bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return dump.Reg(r - x86asm.RAX), true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return dump.Reg(r - x86asm.EAX), true
	}
	return 0, false
}
