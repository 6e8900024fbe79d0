package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
	"dumptriage/pdata"
)

// Layouts that the codes of system frames lead to, from public headers.
const (
	arm64TrapSize = 0x150 // KTRAP_FRAME
	arm64TrapSpsr = 0x90
	arm64TrapSP   = 0x98 // then X0 to X18
	arm64TrapLR   = 0x138
	arm64SpsrMode = 0xf // 0 is user mode

	arm64ContextSize   = 0x390
	arm64ECContextSize = 0x4d0
)

// arm64Undo is the state of undoing one function.
type arm64Undo struct {
	w    *Walker
	regs *dump.Registers
	sp   uint64
	next int // save_next codes that the next pair takes
}

// undoARM64 undoes the codes of the site. regs are changed as it goes.
func (w *Walker) undoARM64(regs *dump.Registers, f *Frame, s *site, opt *Options) (arm64Target, Stop) {
	u := arm64Undo{w: w, regs: regs, sp: f.SP}
	if !f.exact() {
		regs.Forget(dump.ARM64LR) // the call has overwritten it
	}
	t := arm64Target{target: target{method: MethodPdata}}
	for _, c := range s.arm64 {
		switch c.Op {
		case pdata.ARM64TrapFrame, pdata.ARM64MachineFrame, pdata.ARM64Context, pdata.ARM64ECContext:
			return u.system(c.Op, opt)
		case pdata.ARM64ClearUnwound:
			t.exact = true
		default:
			if why := u.one(c); why != "" {
				return t, Stop{StopBadUnwindInfo, fmt.Sprintf("%s: function at RVA %#x: %s", w.name(s), s.rf.Begin, why)}
			}
		}
	}
	lr, known := regs.Get(dump.ARM64LR)
	if !known {
		if s.rf.Begin != 0 && u.sp == f.SP {
			return t, Stop{StopBadUnwindInfo, fmt.Sprintf("%s: function at RVA %#x made a call, yet its unwind data restores no lr", w.name(s), s.rf.Begin)}
		}
		return t, w.missing(f.SP)
	}
	t.ip, t.sp = stripPAC(lr), u.sp
	w.noteLR(MethodPdata, t.ip, t.sp)
	return t, Stop{}
}

// one undoes a code and says what is wrong with it.
func (u *arm64Undo) one(c pdata.ARM64Code) (why string) {
	switch c.Op {
	case pdata.ARM64Alloc:
		u.sp += uint64(c.Value)
		u.noteOp(undoNames[undoAlloc], uint64(c.Value))
	case pdata.ARM64Save:
		return u.integers(c, u.sp+uint64(c.Value), u.sp)
	case pdata.ARM64SavePre:
		why = u.integers(c, u.sp, u.sp+uint64(c.Value))
		u.sp += uint64(c.Value)
	case pdata.ARM64SaveLRPair:
		u.w.restore(u.regs, dump.Reg(c.Reg), u.sp+uint64(c.Value))
		u.w.restore(u.regs, dump.ARM64LR, u.sp+uint64(c.Value)+8)
		u.noteSaves(dump.Reg(c.Reg), 1, u.sp+uint64(c.Value), u.sp)
		u.noteSaves(dump.ARM64LR, 1, u.sp+uint64(c.Value)+8, u.sp)
		if c.Reg > uint8(dump.ARM64FP) {
			why = "save_lrpair of a register that there is not"
		}
	case pdata.ARM64SaveD, pdata.ARM64SaveQ: // vector registers are not followed
		u.next = 0
	case pdata.ARM64SaveDPre, pdata.ARM64SaveQPre:
		u.next = 0
		u.sp += uint64(c.Value)
		u.noteOp(undoNames[undoAlloc], uint64(c.Value))
	case pdata.ARM64SetFP, pdata.ARM64AddFP:
		fp, known := u.regs.Get(dump.ARM64FP)
		if !known {
			return "it keeps sp in x29, which is not known here"
		}
		u.sp = fp - uint64(c.Value)
		u.noteOp(undoNames[undoFrame], fp)
	case pdata.ARM64SaveNext:
		u.next++
	}
	return why // the rest, nop, end_c and pac_sign_lr, change nothing: codes are stripped off lr at the end
}

// integers restores the registers that a code saved from va up. sp is what it is
// once the code is undone.
func (u *arm64Undo) integers(c pdata.ARM64Code, va, sp uint64) (why string) {
	n := int(c.Count)
	if u.next > 0 && n != 2 {
		return "save_next before a code that saves no pair"
	}
	n += 2 * u.next
	u.next = 0
	if int(c.Reg)+n > int(dump.ARM64SP) {
		return "a code saves registers past x30"
	}
	for i := range n {
		u.w.restore(u.regs, dump.Reg(c.Reg)+dump.Reg(i), va+8*uint64(i))
	}
	u.noteSaves(dump.Reg(c.Reg), n, va, sp)
	return ""
}

// system takes the registers from a frame that the system laid at sp. In a
// kernel walk a trap frame from user mode ends the half, with regs then holding
// the user-mode registers.
func (u *arm64Undo) system(op pdata.ARM64Op, opt *Options) (arm64Target, Stop) {
	t := arm64Target{target: target{method: MethodMachineFrame, machine: true}}
	size := map[pdata.ARM64Op]int{pdata.ARM64TrapFrame: arm64TrapSize, pdata.ARM64MachineFrame: 16,
		pdata.ARM64Context: arm64ContextSize, pdata.ARM64ECContext: arm64ECContextSize}[op]
	b := make([]byte, size) // rare: once in an exception or system call
	if n := u.w.stack.Bytes(b, u.sp); n < size {
		return t, u.w.missing(u.sp + uint64(n))
	}
	u.noteOp(undoNames[undoMachine], 0)
	c := cursor.New(b, "system frame", -1)
	out := dump.Registers{Arch: dump.ARM64}
	switch op {
	case pdata.ARM64TrapFrame:
		t.user = readTrapARM64(&out, c) && opt.Kernel
	case pdata.ARM64MachineFrame:
		out = *u.regs
		out.ForgetVolatile()
		out.SetSP(c.U64())
		out.SetPC(c.U64())
	case pdata.ARM64Context:
		var err error
		if out, err = threadcontext.Parse(dump.ARM64, b, -1); err != nil {
			return t, Stop{StopBadUnwindInfo, fmt.Sprintf("the CONTEXT at %#x: %v", u.sp, err)}
		}
	case pdata.ARM64ECContext:
		readECContext(&out, c)
	}
	keepPreserved(&out, u.regs, op)
	*u.regs = out
	pc, _ := out.PC()
	t.ip = stripPAC(pc)
	t.sp, _ = out.SP()
	if t.user {
		if t.ip < lowestUser || t.ip > highestUser || t.sp < lowestUser || t.sp > highestUser {
			return t, Stop{StopBadUnwindInfo, fmt.Sprintf("the trap frame at %#x says user mode with pc %#x, sp %#x", u.sp, t.ip, t.sp)}
		}
		u.w.seam = seam{u.sp, MethodMachineFrame}
	}
	return t, Stop{}
}

// keepPreserved adds what unwinding knows and the frame does not hold: a trap
// frame has no x19 to x28, which the kernel's own functions saved.
func keepPreserved(out, regs *dump.Registers, op pdata.ARM64Op) {
	if op != pdata.ARM64TrapFrame {
		return
	}
	for reg := dump.Reg(19); reg <= 28; reg++ {
		if v, ok := regs.Get(reg); ok {
			out.Set(reg, v)
		}
	}
}

// readTrapARM64 reads a KTRAP_FRAME and reports whether it is of user mode.
func readTrapARM64(r *dump.Registers, c *cursor.Cursor) (user bool) {
	c.Seek(arm64TrapSpsr)
	spsr := c.U32()
	r.Set(dump.ARM64CPSR, uint64(spsr))
	c.Seek(arm64TrapSP)
	r.SetSP(c.U64())
	for x := range dump.Reg(19) {
		r.Set(x, c.U64())
	}
	c.Seek(arm64TrapLR)
	r.Set(dump.ARM64LR, c.U64())
	r.Set(dump.ARM64FP, c.U64())
	r.SetPC(c.U64())
	return spsr&arm64SpsrMode == 0
}

// ecSlots are where an ARM64EC_NT_CONTEXT, which has the shape of an AMD64
// CONTEXT, keeps ARM64 registers.
var ecSlots = []struct {
	off int
	reg dump.Reg
}{
	{0x78, 8}, {0x80, 0}, {0x88, 1}, {0x90, 27}, {0x98, dump.ARM64SP}, {0xa0, dump.ARM64FP}, {0xa8, 25}, {0xb0, 26},
	{0xd8, 19}, {0xe0, 20}, {0xe8, 21}, {0xf0, 22}, {0xf8, dump.ARM64PC}, {0x120, dump.ARM64LR},
}

func readECContext(r *dump.Registers, c *cursor.Cursor) {
	for _, s := range ecSlots {
		c.Seek(s.off)
		r.Set(s.reg, c.U64())
	}
}
