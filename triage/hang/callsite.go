package hang

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
	"dumptriage/triage"
)

const (
	maxFunction = 32 << 10 // bytes of code that are decoded to find one call's arguments
	maxFollowed = 4        // callers that an argument is followed through
	maxSteps    = 16       // registers that one value is followed through
)

// The registers of the first four integer arguments on x64.
var argRegs = [...]dump.Reg{dump.RCX, dump.RDX, dump.R8, dump.R9}

// instruction is a decoded instruction and where it stands.
type instruction struct {
	x86asm.Inst
	va uint64
}

func (i *instruction) next() uint64 { return i.va + uint64(i.Len) }

// callSite is the code before a call, as far back as it certainly ran straight
// to it: nothing jumps into it and no call in it loses registers.
type callSite struct {
	code    []instruction
	entered bool // it reaches back to the function's first instruction
	call    instruction
	calls   []passed // of the function, this one and those before it
}

// argument computes what argument arg of the function of frame i was when its
// caller called it. regs are the registers of the half's frames. On x64 and ARM64 it is
// read from the caller's code; ok is false when the code is not at hand or the
// value went through what cannot be followed.
func (a *analysis) argument(h *triage.Half, regs []dump.Registers, i, arg int) (v uint64, ev Evidence, ok bool) {
	switch h.Registers.Arch {
	case dump.AMD64:
		if arg >= len(argRegs) {
			return 0, ev, false
		}
		v, ok = a.argAMD64(h, regs, i, argRegs[arg], maxFollowed)
		return v, Evidence{Source: FromCall, Frame: i + 1}, ok
	case dump.ARM64:
		if arg >= maxArgsARM64 {
			return 0, ev, false
		}
		v, ok = a.argARM64(h, regs, i, dump.Reg(arg), 0, maxFollowed)
		return v, Evidence{Source: FromCall, Frame: i + 1}, ok
	case dump.X86:
		v, ok = a.argX86(h, i, arg)
		return v, Evidence{Source: FromStack, Frame: i}, ok
	}
	return 0, ev, false
}

func (a *analysis) argAMD64(h *triage.Half, regs []dump.Registers, i int, reg dump.Reg, depth int) (uint64, bool) {
	if depth == 0 || i+1 >= len(regs) || i+1 >= len(h.Frames) {
		return 0, false
	}
	site := a.siteOf(h, i+1)
	if site == nil {
		return 0, false
	}
	e := evaluation{a: a, h: h, regs: regs, frame: i + 1, site: site, depth: depth}
	return e.register(len(site.code), reg, maxSteps)
}

// argX86 reads an argument from the stack, where the caller of frame i pushed
// it: behind the return address.
func (a *analysis) argX86(h *triage.Half, i, arg int) (uint64, bool) {
	if i+1 >= len(h.Frames) {
		return 0, false
	}
	f, ret := &h.Frames[i], h.Frames[i+1].IP
	// The return address lies above a saved ebp, at the stack pointer of a stub
	// that has pushed nothing, or below the caller's stack pointer.
	for _, at := range []uint64{f.FP + 4, f.SP, h.Frames[i+1].SP - 4} {
		if word, err := dump.ReadUint32(a.space, at); err != nil || uint64(word) != ret || at < f.SP {
			continue
		}
		v, err := dump.ReadUint32(a.space, at+4+4*uint64(arg))
		return uint64(v), err == nil
	}
	return 0, false
}

// siteOf decodes the code before the call that frame i stands behind; nil when
// it cannot be had whole.
func (a *analysis) siteOf(h *triage.Half, i int) *callSite {
	ret := h.Frames[i].IP
	key := siteKey{a.space, ret}
	if s, done := a.sites[key]; done {
		return s
	}
	s := a.decodeSite(ret)
	if s != nil {
		if n := len(s.code) + len(s.calls) + 1; a.kept+n > maxKept {
			clear(a.sites)
			clear(a.armSites)
			a.kept = n
		} else {
			a.kept += n
		}
	}
	a.sites[key] = s
	return s
}

func (a *analysis) decodeSite(ret uint64) *callSite {
	start, ok := a.space.FunctionStart(ret - 1)
	if !ok || start >= ret || ret-start > maxFunction {
		return nil
	}
	if !a.afford(int(ret - start)) {
		return nil
	}
	code := make([]byte, ret-start)
	if a.space.Code(code, start) != len(code) {
		return nil
	}
	return siteIn(code, start, &a.decoded)
}

// siteIn is the site of the call that ends code, a function from its start on;
// nil when it does not decode to a call exactly. It decodes in buf, which grows, and
// keeps what it needs.
func siteIn(code []byte, start uint64, buf *[]instruction) *callSite {
	ret := start + uint64(len(code))
	all := (*buf)[:0]
	defer func() { *buf = all[:0] }()
	targets := map[uint64]bool{}
	for va := start; va < ret; {
		in, err := x86asm.Decode(code[va-start:], 64)
		if err != nil || in.Op == 0 || in.Len == 0 || newEncoding(code[va-start:]) {
			return nil
		}
		all = append(all, instruction{in, va})
		if rel, ok := in.Args[0].(x86asm.Rel); ok && in.Op != x86asm.CALL {
			targets[va+uint64(in.Len)+uint64(int64(rel))] = true
		}
		va += uint64(in.Len)
		if va > ret {
			return nil
		}
	}
	if len(all) == 0 || all[len(all)-1].Op != x86asm.CALL {
		return nil
	}
	from := len(all) - 1
	for from > 0 && !targets[all[from].va] && !barrier(&all[from-1]) {
		from--
	}
	s := &callSite{code: slices.Clone(all[from : len(all)-1]), call: all[len(all)-1], calls: callsIn(all)}
	s.entered = from == 0
	return s
}

// newEncoding reports a VEX, EVEX or REX2 prefix, which the decoder misreads.
func newEncoding(code []byte) bool {
	switch code[0] {
	case 0xc4, 0xc5, 0x62, 0xd5:
		return true
	}
	return false
}

// barrier reports whether nothing can be followed across an instruction.
func barrier(in *instruction) bool {
	switch in.Op {
	case x86asm.CALL, x86asm.LCALL, x86asm.SYSCALL, x86asm.JMP, x86asm.LJMP, x86asm.RET, x86asm.LRET, x86asm.INT, x86asm.UD2:
		return true
	}
	return false
}

// evaluation follows a value back through a call site.
type evaluation struct {
	a     *analysis
	h     *triage.Half
	regs  []dump.Registers
	frame int // the caller's
	site  *callSite
	depth int
}

// register is what a register held before instruction n of the site.
func (e *evaluation) register(n int, reg dump.Reg, steps int) (uint64, bool) {
	if steps == 0 {
		return 0, false
	}
	if preserved(reg) && !e.written(n, reg) { // it is still what unwinding found
		if v, ok := e.regs[e.frame].Get(reg); ok {
			return v, true
		}
	}
	for k := n - 1; k >= 0; k-- {
		if in := &e.site.code[k]; writes(in, reg) {
			return e.result(k, in, reg, steps-1)
		}
	}
	if preserved(reg) {
		return 0, false
	}
	if e.site.entered { // the function's own argument
		return e.a.argAMD64(e.h, e.regs, e.frame, reg, e.depth-1)
	}
	return 0, false
}

// written reports whether a register changes from instruction n on.
func (e *evaluation) written(n int, reg dump.Reg) bool {
	return slices.ContainsFunc(e.site.code[n:], func(in instruction) bool { return writes(&in, reg) })
}

// result is what instruction k, which writes reg, left in it.
func (e *evaluation) result(k int, in *instruction, reg dump.Reg, steps int) (uint64, bool) {
	if width(in) < 32 {
		return 0, false // a part of it
	}
	switch in.Op {
	case x86asm.MOV:
		switch src := in.Args[1].(type) {
		case x86asm.Reg:
			from, bits := slot(src)
			if bits < 32 {
				return 0, false
			}
			v, ok := e.register(k, from, steps)
			return narrow(v, bits), ok
		case x86asm.Imm:
			return narrow(uint64(int64(src)), width(in)), true
		case x86asm.Mem:
			at, ok := e.address(k, in, src, steps)
			if !ok {
				return 0, false
			}
			if in.MemBytes == 4 {
				v, err := dump.ReadUint32(e.a.space, at)
				return uint64(v), err == nil
			}
			if in.MemBytes != 8 {
				return 0, false
			}
			v, err := dump.ReadUint64(e.a.space, at)
			return v, err == nil
		}
	case x86asm.LEA:
		if m, ok := in.Args[1].(x86asm.Mem); ok {
			v, ok := e.address(k, in, m, steps)
			return narrow(v, width(in)), ok
		}
	case x86asm.XOR:
		if in.Args[0] == in.Args[1] {
			return 0, true
		}
	}
	return 0, false
}

// address computes a memory operand of instruction k.
func (e *evaluation) address(k int, in *instruction, m x86asm.Mem, steps int) (uint64, bool) {
	if m.Segment == x86asm.FS || m.Segment == x86asm.GS {
		return 0, false
	}
	sum := uint64(m.Disp)
	for _, part := range []struct {
		reg   x86asm.Reg
		scale uint64
	}{{m.Base, 1}, {m.Index, uint64(m.Scale)}} {
		if part.reg == 0 {
			continue
		}
		if part.reg == x86asm.RIP {
			sum += in.next()
			continue
		}
		r, bits := slot(part.reg)
		if bits != 64 {
			return 0, false
		}
		v, ok := e.register(k, r, steps)
		if !ok {
			return 0, false
		}
		sum += v * part.scale
	}
	return sum, true
}

// writes reports whether an instruction changes a register, as far as its first
// operand and its kind say; what is not certain counts as a change.
func writes(in *instruction, reg dump.Reg) bool {
	switch in.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.NOP, x86asm.BT, x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHW:
		return false
	case x86asm.PUSH:
		return reg == dump.RSP
	case x86asm.POP:
		r, _ := operandReg(in.Args[0])
		return reg == dump.RSP || r == reg
	case x86asm.XCHG, x86asm.XADD:
		r0, ok0 := operandReg(in.Args[0])
		r1, ok1 := operandReg(in.Args[1])
		return ok0 && r0 == reg || ok1 && r1 == reg
	case x86asm.CMPXCHG, x86asm.CDQ, x86asm.CQO, x86asm.CDQE, x86asm.MUL, x86asm.IMUL, x86asm.DIV, x86asm.IDIV, x86asm.CPUID,
		x86asm.RDTSC, x86asm.XGETBV, x86asm.CWDE:
		if reg == dump.RAX || reg == dump.RDX || reg == dump.RCX || reg == dump.RBX {
			return true
		}
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ, x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.CMPSB:
		if reg == dump.RSI || reg == dump.RDI || reg == dump.RCX || reg == dump.RAX {
			return true
		}
	}
	r, ok := operandReg(in.Args[0])
	return ok && r == reg
}

func operandReg(arg x86asm.Arg) (dump.Reg, bool) {
	r, ok := arg.(x86asm.Reg)
	if !ok {
		return 0, false
	}
	s, bits := slot(r)
	return s, bits != 0
}

// slot is the register that a part of it belongs to, with the part's bits; no
// bits for registers that hold no integers.
func slot(r x86asm.Reg) (dump.Reg, int) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return dump.Reg(r - x86asm.RAX), 64
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return dump.Reg(r - x86asm.EAX), 32
	case r >= x86asm.AX && r <= x86asm.R15W:
		return dump.Reg(r - x86asm.AX), 16
	case r >= x86asm.AL && r <= x86asm.BL:
		return dump.Reg(r - x86asm.AL), 8
	case r >= x86asm.AH && r <= x86asm.BH:
		return dump.Reg(r - x86asm.AH), 8
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return dump.Reg(r-x86asm.SPB) + dump.RSP, 8
	}
	return 0, 0
}

// width is the size in bits of the register that an instruction writes.
func width(in *instruction) int {
	r, _ := in.Args[0].(x86asm.Reg)
	_, bits := slot(r)
	return bits
}

// narrow is what writing a register of so many bits leaves in the whole one.
func narrow(v uint64, bits int) uint64 {
	if bits == 32 {
		return v & 0xffffffff
	}
	return v
}

// preserved reports whether a call keeps a register by the x64 convention.
func preserved(reg dump.Reg) bool {
	switch reg {
	case dump.RBX, dump.RSP, dump.RBP, dump.RSI, dump.RDI, dump.R12, dump.R13, dump.R14, dump.R15:
		return true
	}
	return false
}
