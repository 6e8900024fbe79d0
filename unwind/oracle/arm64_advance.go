package oracle

// advance executes the instruction at pc, or does what stands for it. It
// returns false when the run cannot go on.
func (r *armRun) advance() bool {
	pc := r.regs[armPC]
	d := decodeARM64(r.code(uint32(pc - r.im.base)))
	r.arrival = byFall
	next := pc + 4
	switch d.class {
	case end:
		return false
	case skip:
		return r.jumpTo(next)
	case call:
		return r.stepOver(d, pc, next)
	case branch:
		return r.branch(d, pc+d.target, next)
	case pacIn:
		r.regs[armLR] |= armSignature
		return r.jumpTo(next)
	case pacOut:
		r.regs[armLR] &^= armSignature
		return r.jumpTo(next)
	case armReturn:
		if d.signed {
			r.regs[armLR] &^= armSignature
			return r.jumpTo(r.regs[armLR])
		}
	case jump:
		r.arrival = byJump
	case indirect:
		r.arrival = byIndirect
	}
	if reg, limit, ok := d.compares(); ok {
		r.index.reg, r.index.limit, r.index.ok = reg, limit, true
	}
	r.bound(d)
	if r.m.step(pc) {
		r.m.writes(func(va, size uint64) { r.note(r.p, va, size) })
		return true
	}
	// What faults is passed over unless the stack or the way depends on it.
	if d.class != plain || d.writesSP() {
		return false
	}
	return r.jumpTo(next)
}

func (r *armRun) jumpTo(pc uint64) bool {
	r.regs[armPC] = pc
	r.m.load()
	return true
}

// bound keeps allocations of a size that comes out of random data small.
func (r *armRun) bound(d armInstruction) {
	reg, shift, ok := d.allocates()
	if ok && r.free(reg) && r.regs[reg]<<shift > stackSize/2 {
		r.regs[reg] = 0x40 >> shift
		r.m.load()
	}
}

// free reports whether a register may be changed without breaking the promise
// that the function makes about it: it is volatile, or saved.
func (r *armRun) free(reg int) bool {
	slots, kept := r.homes[r.entry[reg]]
	return reg < armFP && reg != armTEB && (!kept || len(slots) > 0 && r.regs[reg] != r.entry[reg])
}

// branch goes where no run has been, else either way.
func (r *armRun) branch(d armInstruction, target, next uint64) bool {
	been := func(pc uint64) bool { return r.visited[uint32(pc-r.im.base)] }
	taken := r.rng.IntN(2) == 0
	if been(target) != been(next) {
		taken = been(next)
	}
	if taken {
		r.arrival = byJump
		return r.jumpTo(target)
	}
	// A bounds check that is passed has its index within bounds.
	if i := r.index; d.above() && i.ok && r.free(i.reg) {
		r.regs[i.reg] = r.rng.Uint64N(i.limit + 1)
	}
	return r.jumpTo(next)
}

// stepOver checks a call site and returns from the call as some callee would,
// or lets a helper that changes sp run.
func (r *armRun) stepOver(d armInstruction, pc, next uint64) bool {
	rva := uint32(next - r.im.base)
	if d.target != 0 && r.changesSP(pc+d.target) {
		return r.through(pc, next)
	}
	v := r.unwind(next, next-4)
	r.res.Calls.count(v)
	r.fail(v, rva, true)
	size := r.regs[probeSize]
	r.randomVolatile()
	if r.rng.IntN(3) == 0 {
		r.regs[0] = 0
	}
	if r.probes(rva) {
		r.regs[probeSize] = size
	}
	r.regs[armLR] = next
	r.arrival = byCall
	return r.jumpTo(next)
}

// probes reports whether the code at an RVA allocates what a stack probe has
// just been given: one or two instructions on sp by x15.
func (r *armRun) probes(rva uint32) bool {
	for i := range uint32(2) {
		if reg, _, ok := decodeARM64(r.code(rva + 4*i)).allocates(); ok && reg == probeSize {
			return true
		}
	}
	return false
}

// changesSP reports whether the code at va is a short helper without branches
// that returns with another sp, as those that push and pop a security cookie.
func (o *Oracle) changesSP(va uint64) bool {
	sum := int64(0)
	for i := range uint64(maxHelperSize) {
		at := va + 4*i - o.im.base
		if at+4 > uint64(o.im.size) {
			return false
		}
		d := decodeARM64(o.code(uint32(at)))
		by, ok := d.spChange()
		switch {
		case d.class == armReturn:
			return sum != 0
		case ok:
			sum += by
		case d.class != plain && d.class != branch, d.writesSP():
			return false
		}
	}
	return false
}

// through runs a helper, whose own boundaries are its own function's matter.
func (r *armRun) through(pc, next uint64) bool {
	for range 4 * maxHelperSize {
		if !r.m.step(pc) {
			return false
		}
		r.m.writes(func(va, size uint64) { r.note(r.p, va, size) })
		if pc = r.regs[armPC]; pc == next {
			r.arrival = byCall
			return true
		}
	}
	return false
}
