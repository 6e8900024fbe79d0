package kdump

import (
	"fmt"

	"dumptriage/dump"
)

// layMemory makes one address space of everything in a triage dump that has an
// address. The header's copies of KPRCB, EPROCESS and ETHREAD come first: in
// bugcheck dumps the blocks at their addresses are stubs of a few bytes. Then the
// blocks, in file order, and what only the header points to.
func (f *File) layMemory() {
	t := f.tri
	f.findCopies()
	ranges := make([]dump.Range, 0, len(f.blocks)+6)
	for _, r := range []*record{f.thread, f.process, f.prcb} {
		if r != nil && r.va != 0 {
			ranges = append(ranges, dump.Range{VA: r.va, Size: uint64(len(r.b)), Off: r.off})
		}
	}
	ranges = append(ranges, f.blocks...)
	ranges = f.appendSpan(ranges, t.topOfStack, t.callStack, "CallStack")
	if f.kd != nil && f.hdr.kdbg.ok {
		ranges = f.appendSpan(ranges, f.hdr.kdbg.v, t.kdbg, kdbgStream)
	}
	ranges = f.appendSpan(ranges, t.dataPageVA, t.dataPage, "DataPage")
	f.mem = dump.NewFileMemory(f.r, ranges)
}

// appendSpan adds a part of the file that lies at an address, as far as the file
// holds it.
func (f *File) appendSpan(ranges []dump.Range, va uint64, s span, stream string) []dump.Range {
	if s.off == 0 || s.size == 0 {
		return ranges
	}
	size := min(int64(s.size), f.size-int64(s.off))
	if size < int64(s.size) {
		f.damage(&dump.Error{Code: dump.Truncated, Stream: stream, Offset: int64(s.off), Size: int64(s.size),
			Msg: fmt.Sprintf("reaches beyond the end of the file (%#x bytes)", f.size)})
	}
	if va == 0 || size <= 0 {
		return ranges
	}
	return append(ranges, dump.Range{VA: va, Size: uint64(size), Off: int64(s.off)})
}

// findCopies reads the header's copies and finds where they belong: at the
// address of the block that holds the same bytes, else by the chain KPRCB,
// CurrentThread, ApcState.Process.
func (f *File) findCopies() {
	k := f.kd
	if k == nil {
		return
	}
	f.prcb = f.copyAt(f.tri.prcb, k.prcb.size, minPRCB, "KPRCB")
	f.thread = f.copyAt(f.tri.thread, k.thread.size, minThread, "ETHREAD")
	f.process = f.copyAt(f.tri.process, k.process.size, minProcess, "EPROCESS")
	if f.prcb != nil && f.prcb.va == 0 {
		f.prcb.va = f.prcbAddress(f.prcb)
	}
	if f.prcb != nil && f.thread != nil && f.thread.va == 0 {
		f.thread.va = f.kernelPointer(f.prcb, k.prcb.currentThread)
	}
	if f.thread != nil && f.process != nil && f.process.va == 0 {
		f.process.va = f.kernelPointer(f.thread, k.thread.apcProcess)
	}
}

// The least sizes that are believed: below those of Windows XP for x86.
const (
	minPRCB    = 0x400
	minThread  = 0x200
	minProcess = 0x200
)

func (f *File) copyAt(off uint32, size, least int, stream string) *record {
	if off == 0 {
		return nil
	}
	if size < least || size > maxStructure {
		f.damage(dump.Errorf(dump.BadRecord, kdbgStream, "its size %#x of %s is not believable", size, stream))
		return nil
	}
	r := f.recordAtOffset(off, size, stream)
	if r == nil {
		return nil
	}
	for _, b := range f.blocks {
		if b.Off == int64(off) && b.Size == uint64(size) {
			r.va = b.VA
			break
		}
	}
	return r
}

// kernelPointer reads a pointer field that must hold a kernel address, else 0.
func (f *File) kernelPointer(r *record, off int) uint64 {
	if v, ok := r.pointer(off); ok && kernelAddress(r.ptr, v) {
		return v
	}
	return 0
}

// prcbAddress finds a processor block's own address: KiProcessorBlock[Number]
// when the array is in the dump, else the address that its own empty list heads
// name. An empty LIST_ENTRY points at itself, so each one votes for the address
// at which the structure must lie.
func (f *File) prcbAddress(r *record) uint64 {
	k := f.kd
	if n, ok := r.uint(k.prcb.number, 2); ok && k.processorBlock != 0 {
		if va := f.blockPointer(k.processorBlock + n*uint64(r.ptr)); kernelAddress(r.ptr, va) {
			return va
		}
	}
	votes, seen := map[uint64]int{}, r.unseen()
	best, most := uint64(0), 0
	for off := 0; off+2*r.ptr <= len(r.b); off += r.ptr {
		flink, _ := seen.raw(off, r.ptr)
		blink, _ := seen.raw(off+r.ptr, r.ptr)
		if flink != blink || !kernelAddress(r.ptr, flink) {
			continue
		}
		va := flink - uint64(off)
		if va&0xfff != uint64(k.prcb.contained)&0xfff { // KPCR is page aligned
			continue
		}
		votes[va]++
		if votes[va] > most {
			best, most = va, votes[va]
		}
	}
	const enough = 4
	if most < enough {
		return 0
	}
	for off := 0; off+2*r.ptr <= len(r.b); off += r.ptr {
		if v, _ := seen.raw(off, r.ptr); v == best+uint64(off) {
			r.use(off, 2*r.ptr)
		}
	}
	return best
}

// blockPointer reads a pointer straight from the blocks, before memory is laid
// out; 0 when it is not there.
func (f *File) blockPointer(va uint64) uint64 {
	for _, b := range f.blocks {
		if va >= b.VA && va-b.VA < b.Size && b.Size-(va-b.VA) >= uint64(f.hdr.ptr) {
			v, _ := dump.ReadPointer(dump.NewFileMemory(f.r, []dump.Range{b}), f.hdr.arch, va)
			return v
		}
	}
	return 0
}
