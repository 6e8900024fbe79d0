package hang

import (
	"dumptriage/dump"
	"dumptriage/triage"
)

// maxArgsARM64 is how many arguments are passed in registers, x0 to x7.
const maxArgsARM64 = 8

// armSite is a callSite of ARM64 code.
type armSite struct {
	code    []armInst // the last stands before the call
	entered bool      // code begins at the function's first instruction
	start   uint64    // of the function
	target  uint64    // of the call, 0 when it goes through a register
}

// argARM64 is argument for a register of ARM64. entry is where the function of frame
// i begins when that is known: its caller must not have called another.
func (a *analysis) argARM64(h *triage.Half, regs []dump.Registers, i int, reg dump.Reg, entry uint64, depth int) (uint64, bool) {
	if depth == 0 || i+1 >= len(regs) || i+1 >= len(h.Frames) {
		return 0, false
	}
	s := a.siteARM64(h.Frames[i+1].IP)
	if s == nil || entry != 0 && s.target != 0 && s.target != entry && !a.throughThunk(s.target) {
		return 0, false
	}
	e := armEvaluation{a: a, h: h, regs: regs, frame: i + 1, site: s, depth: depth}
	return e.register(len(s.code), int(reg), maxSteps)
}

// throughThunk reports whether a linker's thunk stands at va, which goes on to a
// function of another image: adrp x16; ldr x16, [x16, n]; br x16.
func (a *analysis) throughThunk(va uint64) bool {
	const branchX16 = 0xd61f0200
	code := make([]byte, 12)
	return a.space.Code(code, va) == len(code) && armWord(code, 2) == branchX16
}

// siteARM64 decodes the code before the call that ends at ret; nil when it cannot be
// had whole.
func (a *analysis) siteARM64(ret uint64) *armSite {
	key := siteKey{a.space, ret}
	if s, done := a.armSites[key]; done {
		return s
	}
	s := a.decodeARM64Site(ret)
	if s != nil {
		if a.kept += len(s.code) + 1; a.kept > maxKept {
			clear(a.sites)
			clear(a.armSites)
			a.kept = len(s.code) + 1
		}
	}
	if a.armSites == nil {
		a.armSites = map[siteKey]*armSite{}
	}
	a.armSites[key] = s
	return s
}

func (a *analysis) decodeARM64Site(ret uint64) *armSite {
	start, ok := a.space.FunctionStart(ret - 1)
	if !ok || start >= ret || ret-start > maxFunction || !a.afford(int(ret-start)) {
		return nil
	}
	code := make([]byte, ret-start)
	if a.space.Code(code, start) != len(code) {
		return nil
	}
	return siteInARM64(code, start)
}

// siteInARM64 is the site of the call that ends code, a function from its start on;
// nil when there is none.
func siteInARM64(code []byte, start uint64) *armSite {
	n := len(code) / 4
	if len(code)%4 != 0 || n == 0 {
		return nil
	}
	target, ok := endsInCallARM64(armWord(code, n-1), start+uint64(4*(n-1)))
	if !ok {
		return nil
	}
	all, targets := make([]armInst, n-1), map[uint64]bool{}
	for i := range all {
		all[i] = decodeARM64(armWord(code, i), start+uint64(4*i))
		if t := all[i].target; t != 0 {
			targets[t] = true
		}
	}
	from := n - 1
	for from > 0 && !targets[start+uint64(4*from)] && all[from-1].kind != armBarrier {
		from--
	}
	return &armSite{code: all[from:], entered: from == 0, start: start, target: target}
}

// armEvaluation follows a value back through a call site.
type armEvaluation struct {
	a     *analysis
	h     *triage.Half
	regs  []dump.Registers
	frame int // the caller's
	site  *armSite
	depth int
}

// register is what a register held before instruction n of the site; 31 is sp.
func (e *armEvaluation) register(n, reg, steps int) (uint64, bool) {
	if steps == 0 {
		return 0, false
	}
	kept := reg >= 19 && reg <= 29 || reg == spReg // by the calling convention
	if kept && !e.written(n, reg) {
		if v, ok := e.regs[e.frame].Get(dump.Reg(reg)); ok {
			return v, true
		}
	}
	for k := n - 1; k >= 0; k-- {
		if in := &e.site.code[k]; in.writes>>reg&1 != 0 {
			return e.result(k, in, reg, steps-1)
		}
	}
	if !kept && e.site.entered && reg < maxArgsARM64 { // the function's own argument
		return e.a.argARM64(e.h, e.regs, e.frame, dump.Reg(reg), e.site.start, e.depth-1)
	}
	return 0, false
}

// written reports whether a register changes from instruction n on.
func (e *armEvaluation) written(n, reg int) bool {
	for k := range e.site.code[n:] {
		if e.site.code[n+k].writes>>reg&1 != 0 {
			return true
		}
	}
	return false
}

// result is what instruction k, which changes reg, left in it.
func (e *armEvaluation) result(k int, in *armInst, reg, steps int) (v uint64, ok bool) {
	if in.back && reg == in.n {
		v, ok = e.register(k, in.n, steps)
		return v + in.base, ok
	}
	switch in.kind {
	case armAddress, armImm:
		v, ok = in.imm, true
	case armAdd:
		v, ok = e.register(k, in.n, steps)
		v += in.imm
	case armMove:
		if v, ok = 0, true; in.m != spReg {
			v, ok = e.register(k, in.m, steps)
		}
	case armKeep:
		v, ok = e.register(k, reg, steps)
		v = v&^(0xffff<<in.shift) | in.imm<<in.shift
	case armLoad:
		return e.load(k, in, reg, steps)
	}
	if in.narrow {
		v &= 0xffffffff
	}
	return v, ok
}

func (e *armEvaluation) load(k int, in *armInst, reg, steps int) (uint64, bool) {
	at := in.imm
	if in.n >= 0 {
		base, ok := e.register(k, in.n, steps)
		if !ok {
			return 0, false
		}
		at += base
	}
	if reg == in.d2 {
		at += in.size
	}
	if in.size == 4 {
		v, err := dump.ReadUint32(e.a.space, at)
		if in.signed {
			return uint64(int64(int32(v))), err == nil
		}
		return uint64(v), err == nil
	}
	v, err := dump.ReadUint64(e.a.space, at)
	return v, err == nil
}
