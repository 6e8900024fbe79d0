package managed

import (
	"dumptriage/dump"
)

// Kind says what code is. Its text is part of the JSON contract.
type Kind string

// The kinds of code.
const (
	KindJIT     Kind = "jit"     // compiled at run time
	KindR2R     Kind = "r2r"     // compiled ahead of time (ReadyToRun)
	KindStub    Kind = "stub"    // made by the runtime, no method's
	KindDynamic Kind = "dynamic" // compiled at run time for no metadata: DynamicMethod, IL stub
)

// Code is the code block at an address.
type Code struct {
	Kind       Kind
	Start      uint64 // 0 unknown
	MethodDesc uint64 // 0 none
	// Functions are Count RUNTIME_FUNCTIONs at an address, whose RVAs count from Base;
	// none of a stub.
	Functions, Base uint64
	Count           int
	Module          uint64 // the runtime's Module of ahead-of-time code, 0 else
}

const (
	maxFragments     = 1 << 12 // range sections that share 128 KiB of addresses
	maxHeaps         = 1 << 12
	maxUnwindInfos   = 1 << 12 // of one method: its body and its funclets
	functionSize     = 12      // RUNTIME_FUNCTION
	rangeCollectible = 1       // tag of the map's pointers
)

// RangeSection.Flags.
const (
	rangeCodeHeap  = 2
	rangeRangeList = 4 // stubs
)

// Code finds the code at an address. An error is about damage: an address that is no
// managed code gives false.
func (r *Runtime) Code(ip uint64) (Code, bool, error) {
	if r == nil {
		return Code{}, false, nil
	}
	if r.l.has("RangeSectionMap", "TopLevelData") && r.codeMap != 0 {
		return r.bySection(ip)
	}
	return r.byHeaps(ip)
}

// bySection finds code by the map of all code ranges.
func (r *Runtime) bySection(ip uint64) (Code, bool, error) {
	a := r.access()
	section := r.section(a, ip)
	if section == 0 || a.err != nil {
		return Code{}, false, a.err
	}
	begin := a.ptr(section, "RangeSection", "RangeBegin")
	flags := a.u32(section, "RangeSection", "Flags")
	if flags&rangeRangeList != 0 {
		return Code{Kind: KindStub}, a.err == nil, a.err
	}
	if module := a.ptr(section, "RangeSection", "R2RModule"); module != 0 {
		return Code{Kind: KindR2R, Module: module, Base: begin}, a.err == nil, a.err
	}
	heap := a.ptr(section, "RangeSection", "HeapList")
	if heap == 0 || a.err != nil {
		return Code{}, false, a.err
	}
	return r.inHeap(a, heap, begin, ip)
}

// section finds the RangeSection of an address, 0 when there is none. The map is a
// tree of tables by eight bits of the address each, then a list.
func (r *Runtime) section(a *access, ip uint64) uint64 {
	shifts := []uint{49, 41, 33, 25, 17}
	if r.l.pointer == 4 {
		shifts = []uint{24, 16}
	}
	level := a.at(r.codeMap, "RangeSectionMap", "TopLevelData")
	for _, shift := range shifts {
		level = a.word(level+uint64(r.l.pointer)*(ip>>shift&0xff), "RangeSectionMap") &^ rangeCollectible
		if level == 0 {
			return 0
		}
	}
	for range maxFragments {
		begin := a.ptr(level, "RangeSectionFragment", "RangeBegin")
		end := a.ptr(level, "RangeSectionFragment", "RangeEndOpen")
		if a.err != nil {
			return 0
		}
		if ip >= begin && ip < end {
			return a.ptr(level, "RangeSectionFragment", "RangeSection")
		}
		if level = a.ptr(level, "RangeSectionFragment", "Next") &^ rangeCollectible; level == 0 {
			return 0
		}
	}
	a.fail(dump.Limit, "RangeSectionFragment", "the list for %#x has more than %d members", ip, maxFragments)
	return 0
}

// byHeaps finds code in the code heaps that the process registered as function
// tables, where no map tells of them.
func (r *Runtime) byHeaps(ip uint64) (Code, bool, error) {
	for _, h := range r.heaps {
		if ip < h.Min || ip >= h.Max {
			continue
		}
		a := r.access()
		// EEJitManager: the first heap lies behind its table of virtual functions and a
		// pointer.
		node := a.word(h.Manager+2*uint64(r.l.pointer), "EEJitManager")
		for n := 0; node != 0 && a.err == nil; n++ {
			if n == maxHeaps {
				a.fail(dump.Limit, "HeapList", "more than %d code heaps", maxHeaps)
				break
			}
			begin := a.ptr(node, "CodeHeapListNode", "StartAddress")
			end := a.ptr(node, "CodeHeapListNode", "EndAddress")
			if ip >= begin && ip < end {
				return r.inHeap(a, node, 0, ip)
			}
			node = a.ptr(node, "CodeHeapListNode", "Next")
		}
		if a.err != nil {
			return Code{}, false, a.err
		}
	}
	return Code{}, false, nil
}

// inHeap finds the method of an address in a code heap. Base is what the
// RUNTIME_FUNCTIONs count from, 0 when that is not known.
func (r *Runtime) inHeap(a *access, heap, base, ip uint64) (Code, bool, error) {
	m := nibbleMap{
		base: a.ptr(heap, "CodeHeapListNode", "MapBase"), words: a.ptr(heap, "CodeHeapListNode", "HeaderMap"),
		constant: r.l.contracts["ExecutionManager"] != "1" && r.l.contracts["ExecutionManager"] != "",
	}
	begin, end := a.ptr(heap, "CodeHeapListNode", "StartAddress"), a.ptr(heap, "CodeHeapListNode", "EndAddress")
	if a.err != nil || ip < begin || ip >= end {
		return Code{}, false, a.err
	}
	start, ok := m.start(a, ip)
	if !ok || a.err != nil {
		return Code{}, false, a.err
	}
	header := a.word(start-uint64(r.l.pointer), "code header")
	if a.err != nil {
		return Code{}, false, a.err
	}
	if header <= r.l.number("StubCodeBlockLast", 15) {
		return Code{Kind: KindStub, Start: start}, true, nil
	}
	c := Code{Kind: KindJIT, Start: start, Base: base}
	c.MethodDesc = a.ptr(header, "RealCodeHeader", "MethodDesc")
	if r.l.has("RealCodeHeader", "NumUnwindInfos", "UnwindInfos") {
		c.Count = int(min(a.u32(header, "RealCodeHeader", "NumUnwindInfos"), maxUnwindInfos))
		c.Functions = a.at(header, "RealCodeHeader", "UnwindInfos")
		// The method begins at its first function, whatever the ranges say.
		if c.Count > 0 {
			c.Base = start - a.number(c.Functions, 4, "RUNTIME_FUNCTION")
		}
	}
	return c, a.err == nil, a.err
}
