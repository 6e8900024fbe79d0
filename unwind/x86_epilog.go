package unwind

import (
	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

const maxEpilog86 = 12 // instructions

// epilog86 runs the code at a frame that stands in the end of a function which
// keeps no frame in ebp: pops and the release of locals, up to the return. No
// record tells of it. The return address must be behind a call.
func (w *Walker) epilog86(regs *dump.Registers, f *Frame, opt *Options) (g guess, out dump.Registers, ok bool) {
	code := w.code[:w.readCode(w.code[:], w.site(f.IP), f.IP)]
	sp := f.SP
	out = *regs
	for range maxEpilog86 {
		in, err := x86asm.Decode(code, 32)
		if err != nil || in.Op == 0 || in.Len == 0 || in.DataSize == 16 {
			return guess{}, out, false
		}
		dst, isReg := in.Args[0].(x86asm.Reg)
		imm, isImm := in.Args[1].(x86asm.Imm)
		switch {
		case in.Op == x86asm.POP && isReg && dst >= x86asm.EAX && dst <= x86asm.EDI && dst != x86asm.ESP:
			w.restore86(&out, dump.Reg(dst-x86asm.EAX), sp)
			sp += 4
		case in.Op == x86asm.ADD && isReg && dst == x86asm.ESP && isImm && imm > 0 && imm < maxFrameGap:
			sp += uint64(imm)
		case in.Op == x86asm.RET && sp != f.SP:
			drop := uint64(0)
			if n, ok := in.Args[0].(x86asm.Imm); ok {
				drop = uint64(uint16(n))
			}
			g = guess{trust: TrustFramePointer, method: MethodFPO, detail: "by running the code at the function's end"}
			g, ok = w.popReturn86(g, sp, drop, opt)
			return g, out, ok
		default:
			return guess{}, out, false
		}
		code = code[in.Len:]
	}
	return guess{}, out, false
}

// restore86 gives a register the value of a word of the stack.
func (w *Walker) restore86(regs *dump.Registers, reg dump.Reg, va uint64) {
	if v, ok := w.word(va); ok {
		regs.Set(reg, v)
	} else {
		regs.Forget(reg)
	}
}
