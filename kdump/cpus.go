package kdump

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
)

// processor is a KPRCB as far as it is needed.
type processor struct {
	va            uint64
	number        uint32
	current, idle uint64 // ETHREAD addresses, 0 not known
	context       uint64 // address of its CONTEXT
	mhz           uint32
	crashed       bool // the header's copy: the processor that wrote the dump
	record        *record
}

// processorTypePart is how much of a KPRCB is kept: its head, with the
// processor's type.
const processorTypePart = 0x100

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
	seen := map[uint32]bool{}
	add := func(r *record, crashed bool) {
		if p, ok := f.newProcessor(r); ok && !seen[p.number] {
			p.crashed = crashed
			seen[p.number] = true
			f.prcbs = append(f.prcbs, p)
		}
	}
	if f.prcb != nil {
		add(f.prcb, true)
	}
	for r := range f.blocksOfSize(size) {
		add(r, false)
	}
	slices.SortFunc(f.prcbs, func(a, b processor) int { return cmp.Compare(a.number, b.number) })
}

func (f *File) newProcessor(r *record) (processor, bool) {
	k := &f.kd.prcb
	number, ok := r.uint(k.number, f.processorNumberSize())
	if !ok || number >= maxProcessors || f.hdr.cpus.ok && f.hdr.cpus.v != 0 && number >= uint64(f.hdr.cpus.v) {
		return processor{}, false
	}
	p := processor{va: r.va, number: uint32(number), current: f.kernelPointer(r, k.currentThread), idle: f.kernelPointer(r, k.idleThread)}
	p.context = f.kernelPointer(r, k.context)
	if mhz, ok := r.uint(k.mhz, 4); ok {
		p.mhz = uint32(mhz)
	}
	p.record = &record{va: r.va, off: r.off, b: slices.Clone(r.b[:min(len(r.b), processorTypePart)]), ptr: r.ptr}
	return p, true
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
// system was stopped. A live dump has none.
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
	return dump.Registers{}, dump.ContextNone
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
		c := dump.CPU{Number: p.number, PRCB: p.va}
		if !f.live {
			c.ETHREAD, c.Idle = p.current, p.current != 0 && p.current == p.idle
			c.ThreadID = ids[p.current]
			c.Context, c.Source = f.processorContext(p)
			c.StackBase = f.stackTop(&c.Context, bases[p.current])
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
	ranges := f.mem.Ranges()
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
