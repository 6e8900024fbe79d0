package oracle

import (
	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

// advance executes the instruction at rip, or does what stands for it. It
// returns false when the run cannot go on.
func (r *run) advance() bool {
	ip := r.regs[dump.RIP]
	code := r.code(uint32(ip - r.im.base))
	d := decode(code)
	defer func() { r.previous = d }()
	r.arrival = byFall
	next := ip + uint64(d.size)
	switch d.class {
	case end:
		return false
	case skip:
		return r.jumpTo(next)
	case call:
		return r.stepOver(next)
	case avx:
		return r.stepAVX(code, d)
	case branch:
		return r.branch(d, ip+d.target, next)
	case jump:
		r.arrival = byJump
	case indirect:
		r.arrival = byIndirect
	case tail:
		r.arrival = byTail
	}
	r.bound(d, code)
	if r.m.step(ip) {
		r.m.writes(func(va, size uint64) { r.t.note(r.p, va, size) })
		return true
	}
	// What faults is passed over unless the stack or the way depends on it.
	switch {
	case d.size == 0, d.class != plain, movesStack(d):
		return false
	}
	return r.jumpTo(next)
}

func (r *run) jumpTo(ip uint64) bool {
	r.regs[dump.RIP] = ip
	r.m.load()
	return true
}

func movesStack(d instruction) bool {
	switch d.op {
	case x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFQ, x86asm.POP, x86asm.POPF, x86asm.POPFQ, x86asm.RET, x86asm.LRET, x86asm.LEAVE, x86asm.ENTER:
		return true
	}
	reg, ok := d.inst.Args[0].(x86asm.Reg)
	return ok && (reg == x86asm.RSP || reg == x86asm.ESP)
}

// bound keeps counts and sizes that come out of random data within reason:
// those of repeated string instructions and of allocations of computed size.
func (r *run) bound(d instruction, code []byte) {
	for _, p := range d.inst.Prefix {
		if (p&0xff == x86asm.PrefixREP || p&0xff == x86asm.PrefixREPN) && isString(d.op) && r.regs[dump.RCX] > 4 {
			r.regs[dump.RCX] = 2
			r.m.load()
		}
	}
	if reg, ok := adjustsByRegister(code); ok && r.regs[reg] > stackSize/2 && r.free(dump.Reg(reg)) {
		r.regs[reg] = 0x40
		r.m.load()
	}
}

func isString(op x86asm.Op) bool {
	switch op {
	case x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ, x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ, x86asm.LODSB, x86asm.LODSD, x86asm.LODSQ:
		return true
	}
	return false
}

// free reports whether a register may be changed without breaking the promise
// that the function makes about it: it is volatile, or saved.
func (r *run) free(reg dump.Reg) bool {
	slots, kept := r.t.homes[r.t.gpr[reg]]
	return reg != dump.RSP && reg != dump.RBP && (!kept || len(slots) > 0 && r.regs[reg] != r.t.gpr[reg])
}

// branch goes where no run has been, else either way.
func (r *run) branch(d instruction, target, next uint64) bool {
	if r.regs[dump.RSP] == entrySP {
		r.frameless[target] = true
	}
	been := func(ip uint64) bool { return r.visited[uint32(ip-r.im.base)] }
	taken := r.rng.IntN(2) == 0
	if been(target) != been(next) {
		taken = been(next)
	}
	if taken {
		r.arrival = byJump
		return r.jumpTo(target)
	}
	if d.op == x86asm.JA || d.op == x86asm.JAE {
		r.withinBounds()
	}
	return r.jumpTo(next)
}

// withinBounds makes true what a bounds check before a jump table has just been
// passed off as having found.
func (r *run) withinBounds() {
	c := r.previous
	if c.op != x86asm.CMP {
		return
	}
	x, ok1 := c.inst.Args[0].(x86asm.Reg)
	limit, ok2 := c.inst.Args[1].(x86asm.Imm)
	if !ok1 || !ok2 || limit < 0 || limit > 0x1000 {
		return
	}
	reg, ok := number(x)
	if ok && r.free(reg) {
		r.regs[reg] = r.rng.Uint64N(uint64(limit) + 1)
	}
}

// number returns the processor's number of a general register, whatever part of
// it is named.
func number(x x86asm.Reg) (dump.Reg, bool) {
	switch {
	case x >= x86asm.RAX && x <= x86asm.R15:
		return dump.Reg(x - x86asm.RAX), true
	case x >= x86asm.EAX && x <= x86asm.R15L:
		return dump.Reg(x - x86asm.EAX), true
	case x >= x86asm.AX && x <= x86asm.R15W:
		return dump.Reg(x - x86asm.AX), true
	case x >= x86asm.AL && x <= x86asm.BL:
		return dump.Reg(x - x86asm.AL), true
	case x >= x86asm.SPB && x <= x86asm.R15B:
		return dump.Reg(x-x86asm.SPB) + dump.RSP, true
	}
	return 0, false
}

// stepOver checks a call site and returns from the call as some callee would.
func (r *run) stepOver(next uint64) bool {
	rva := uint32(next - r.im.base)
	v := r.unwind(next, next-1)
	r.res.Calls.count(v)
	r.fail(v, rva, true)
	after := r.code(rva)
	if _, probe := adjustsByRegister(after); !probe { // a stack probe preserves the size in rax
		r.regs[dump.RAX] = r.pointer()
		if r.rng.IntN(3) == 0 {
			r.regs[dump.RAX] = 0
		}
		r.randomVolatile()
		for i := range firstPreservedXMM {
			r.xmm[i] = [2]uint64{r.rng.Uint64(), r.rng.Uint64()}
		}
		if r.im.goCode {
			r.goRegisters()
		}
	}
	r.arrival = byCall
	return r.jumpTo(next)
}

// stepAVX executes the moves that save and restore registers by their older
// encoding and passes over all else: what that would compute decides nothing.
func (r *run) stepAVX(code []byte, d instruction) bool {
	if d.size == 0 {
		return false
	}
	next := r.regs[dump.RIP] + uint64(d.size)
	if len(code) < 16 {
		return false
	}
	if older, ok := legacy(code); ok {
		copy(r.p.caller[stubBase-callBase:], older)
		r.m.changed(stubBase, len(older))
		if !r.m.step(stubBase) {
			return false
		}
		r.m.writes(func(va, size uint64) { r.t.note(r.p, va, size) })
	}
	return r.jumpTo(next)
}
