package kdump

import "dumptriage/dump"

// ownStackSize is the size of a processor's stacks for DPCs and interrupts: that
// of a thread's kernel stack. Believed, not measured; KPRCB holds their bases.
const ownStackSize = 0x6000

// switchedStack returns the processor's own stack that registers are on, nil when
// they are on none. AMD64 only: elsewhere the fields are not described.
func (f *File) switchedStack(p *processor, regs *dump.Registers) *dump.ProcessorStack {
	sp, ok := regs.SP()
	if !ok || f.hdr.arch != dump.AMD64 || p.va == 0 {
		return nil
	}
	k := &f.kd.prcb
	for _, s := range []struct {
		kind string
		off  int
	}{{"dpc", k.dpcStack}, {"interrupt", k.isrStack}} {
		if s.off == 0 {
			continue
		}
		base, err := dump.ReadPointer(f.mem, f.hdr.arch, p.va+uint64(s.off))
		if err == nil && kernelAddress(f.hdr.ptr, base) && sp < base && base-sp <= ownStackSize {
			return &dump.ProcessorStack{Kind: s.kind, Limit: base - ownStackSize, Base: base}
		}
	}
	if k.dpcStack == 0 || k.isrStack == 0 {
		return f.searchedStack(p, sp)
	}
	return nil
}

// searchedStack serves kernels of which nothing says where KPRCB keeps the bases of
// a processor's own stacks. When the stack pointer is not on the thread's stack, a
// page's address just above it somewhere in the block can hardly be anything else;
// the blocks of the other processors must have such an address at the same place.
// Which of the stacks it is remains unknown.
func (f *File) searchedStack(p *processor, sp uint64) *dump.ProcessorStack {
	r := f.recordAt(p.current, f.threadSize())
	if r == nil {
		return nil
	}
	if limit, base, ok := f.stackBounds(r); !ok || sp >= limit && sp < base {
		return nil
	}
	block := f.recordAt(p.va, f.kd.prcb.size)
	if block == nil {
		return nil
	}
	best := uint64(0)
	for off := 0; off+f.hdr.ptr <= len(block.b); off += f.hdr.ptr {
		base, _ := block.raw(off, f.hdr.ptr)
		if f.stackBase(base) && sp < base && base-sp <= ownStackSize && (best == 0 || base < best) && f.stackInAll(p, off) {
			best = base
		}
	}
	if best == 0 {
		return nil
	}
	return &dump.ProcessorStack{Kind: "unknown", Limit: best - ownStackSize, Base: best}
}

// stackBase reports whether an address can be a stack's base: a page of the kernel.
func (f *File) stackBase(va uint64) bool {
	const page = 0x1000
	return va%page == 0 && kernelAddress(f.hdr.ptr, va)
}

// stackInAll reports whether the blocks of all other processors that are in the dump
// have what can be a stack's base at an offset.
func (f *File) stackInAll(p *processor, off int) bool {
	ps := f.processors()
	for i := range ps {
		if ps[i].va == p.va || ps[i].va == 0 {
			continue
		}
		if !f.spend(1) { // forged blocks differ in the last processor alone, at each place
			return false
		}
		v, err := dump.ReadPointer(f.mem, f.hdr.arch, ps[i].va+uint64(off))
		if err == nil && !f.stackBase(v) {
			return false
		}
	}
	return true
}
