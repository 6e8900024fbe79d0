package kdump

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// processor is a KPRCB as far as it is needed.
type processor struct {
	va            uint64
	number        uint32
	current, idle uint64 // ETHREAD addresses, 0 not known
	context       uint64 // address of its CONTEXT
	state         uint64 // and of the one inside the block, which older systems have alone
	crashed       bool   // the processor that wrote the dump

	mhz, family, model, stepping uint64
}

// maxProcessors is what Windows supports: 2048 logical processors.
const maxProcessors = 2048

// processors returns the processor blocks by number.
func (f *File) processors() []processor {
	f.prcbsOnce.Do(f.readProcessors)
	return f.prcbs
}

func (f *File) readProcessors() {
	if f.kd == nil {
		return
	}
	size := f.kd.prcb.size
	if size < minPRCB || size > maxStructure {
		return
	}
	f.addOldOffsets()
	seen := map[uint32]bool{}
	add := func(r *record, crashed bool) {
		p, ok := f.newProcessor(r)
		switch {
		case !ok:
		case !seen[p.number]:
			p.crashed = crashed
			seen[p.number] = true
			f.prcbs = append(f.prcbs, p)
		default: // of the header's copy where it lies is not always known
			for i := range f.prcbs {
				if q := &f.prcbs[i]; q.number == p.number && q.va == 0 && q.current == p.current {
					q.va = p.va
				}
			}
		}
	}
	if f.prcb != nil {
		add(f.prcb, true)
	}
	part := f.processorPart()
	if f.full != nil {
		for _, r := range f.processorBlocks(part) {
			add(r, false)
		}
	}
	for b := range f.blocksOfSize(size) {
		if r := f.recordOfBlock(b, part); r != nil {
			add(r, false)
		}
	}
	slices.SortFunc(f.prcbs, func(a, b processor) int { return cmp.Compare(a.number, b.number) })
	if f.prcb == nil {
		f.markCrashed()
	}
}

// addOldOffsets adds what the data block of Windows 7 and before does not say, from
// public symbols of x64 and x86.
func (f *File) addOldOffsets() {
	const idleThread, idleThreadX86, dpcStack, windows7 = 0x18, 0xc, 0x21c0, 7601
	k := &f.kd.prcb
	if f.hdr.arch == dump.X86 && k.idleThread == 0 {
		k.idleThread = idleThreadX86
	}
	if f.hdr.arch != dump.AMD64 {
		return
	}
	if k.idleThread == 0 {
		k.idleThread = idleThread
	}
	if k.dpcStack == 0 && f.hdr.build == windows7 {
		k.dpcStack = dpcStack
	}
}

// processorPart is how much of a KPRCB must be read for the fields at its
// beginning: a KPRCB is large and there may be many.
func (f *File) processorPart() int {
	k := &f.kd.prcb
	return min(k.size, max(k.currentThread, k.mhz, k.cpuType, k.number, k.idleThread)+8)
}

// markCrashed finds the processor that wrote the dump when the header has no copy
// of its block: the one whose stack pointer is the header's.
func (f *File) markCrashed() {
	regs, ok := f.HeaderContext()
	sp, _ := regs.SP()
	for i := range f.prcbs {
		for _, at := range [...]uint64{f.prcbs[i].context, f.prcbs[i].state} {
			own, found := f.contextAt(at)
			if v, _ := own.SP(); ok && found && v == sp {
				f.prcbs[i].crashed = true
				return
			}
		}
	}
	if f.full != nil {
		f.markByStack()
	}
}

func (f *File) newProcessor(r *record) (processor, bool) {
	k := &f.kd.prcb
	number, ok := r.uint(k.number, f.processorNumberSize())
	if !ok || number >= maxProcessors || f.hdr.cpus.ok && f.hdr.cpus.v != 0 && number >= uint64(f.hdr.cpus.v) {
		return processor{}, false
	}
	p := processor{va: r.va, number: uint32(number), current: f.kernelPointer(r, k.currentThread), idle: f.kernelPointer(r, k.idleThread)}
	p.context = f.prcbContext(r)
	if off := k.state; off > 0 && off < k.size && r.va != 0 {
		p.state = r.va + uint64(off)
	}
	p.mhz, _ = r.uint(k.mhz, 4)
	p.family, _ = r.uint(k.cpuType, 1)
	if k.cpuType > 0 {
		p.stepping, _ = r.uint(k.cpuType+2, 1)
		p.model, _ = r.uint(k.cpuType+3, 1)
	}
	return p, true
}

// prcbContext reads KPRCB.Context, the address of a CONTEXT, which may lie beyond
// the part that was copied.
func (f *File) prcbContext(r *record) uint64 {
	off := f.kd.prcb.context
	if off == 0 || off > f.kd.prcb.size-f.hdr.ptr {
		return 0
	}
	if r.off < 0 { // read by its address
		v, _ := dump.ReadPointer(f.mem, f.hdr.arch, r.va+uint64(off))
		if kernelAddress(f.hdr.ptr, v) {
			return v
		}
		return 0
	}
	c := cursor.At(f.r, f.size, r.off+int64(off), int64(f.hdr.ptr), "KPRCB")
	if v := c.Pointer(f.hdr.ptr); c.Err() == nil && kernelAddress(f.hdr.ptr, v) {
		return v
	}
	return 0
}

// processorNumberSize: KPRCB.Number is 32-bit since Windows 7, one byte before.
func (f *File) processorNumberSize() int {
	if f.hdr.build >= 7600 {
		return 4
	}
	return 1
}

// processorOf returns the processor that runs the thread at an ETHREAD address.
func (f *File) processorOf(ethread uint64) *processor {
	ps := f.processors()
	for i := range ps {
		if ps[i].current == ethread && ethread != 0 {
			return &ps[i]
		}
	}
	return nil
}

// processorContext returns the registers that the processor saved when the
// system was stopped. Before Windows 7 the block holds them itself, in
// ProcessorState; later it may hold what an earlier stop left, or zeros, so that
// counts only where no other is named. A live dump has none.
func (f *File) processorContext(p *processor) (dump.Registers, dump.ContextSource) {
	if f.live {
		return dump.Registers{}, dump.ContextNone
	}
	if regs, ok := f.contextAt(p.context); ok {
		return regs, dump.ContextPRCB
	}
	if p.crashed {
		if regs, ok := f.HeaderContext(); ok {
			return regs, dump.ContextHeader
		}
	}
	if regs, ok := f.contextAt(p.state); ok && f.kd.prcb.context == 0 && f.onKernelStack(&regs) {
		return regs, dump.ContextPRCB
	}
	return dump.Registers{}, dump.ContextNone
}

// onKernelStack tells a CONTEXT that was saved from other bytes: one of kernel
// code has a kernel stack, one of user code its selector.
func (f *File) onKernelStack(regs *dump.Registers) bool {
	sp, _ := regs.SP()
	cs, ok := regs.Get(dump.RegCS)
	return ok && (cs&3 == 3) != kernelAddress(f.hdr.ptr, sp) && cs != 0
}

// CPUs implements dump.Source. In a live dump the processors went on, so only
// their blocks are listed: the writer clears what they were running.
func (f *File) CPUs() []dump.CPU {
	ids := map[uint64]uint32{}
	bases := map[uint64]uint64{}
	for i := range f.Threads() {
		if kt := f.threads[i].Kernel; kt.ETHREAD != 0 {
			ids[kt.ETHREAD], bases[kt.ETHREAD] = f.threads[i].ID, kt.StackBase
		}
	}
	var cpus []dump.CPU
	for i := range f.processors() {
		p := &f.prcbs[i]
		c := dump.CPU{Number: p.number, PRCB: p.va, Crashed: p.crashed}
		if !f.live {
			c.ETHREAD, c.Idle = p.current, p.current != 0 && p.current == p.idle
			c.ThreadID = ids[p.current]
			c.Context, c.Source = f.processorContext(p)
			c.StackBase = f.stackTop(&c.Context, bases[p.current])
			c.Switched = f.switchedStack(p, &c.Context)
		}
		cpus = append(cpus, c)
	}
	return cpus
}

// stackTop returns where the stack memory that holds the stack pointer ends: at
// the thread's StackBase when that is known, else at the end of the bytes that
// are in the dump.
func (f *File) stackTop(regs *dump.Registers, base uint64) uint64 {
	sp, ok := regs.SP()
	if !ok {
		return 0
	}
	const largest = 0x100000
	if base > sp && base-sp <= largest {
		return base
	}
	m, listed := f.mem.(*dump.FileMemory)
	if !listed {
		return 0
	}
	ranges := m.Ranges()
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End() > sp })
	if i == len(ranges) || ranges[i].VA > sp {
		return 0
	}
	top := ranges[i].End()
	for i++; i < len(ranges) && ranges[i].VA == top && top-sp < largest; i++ {
		top = ranges[i].End()
	}
	return top
}
