package scrub

import (
	"cmp"
	"slices"

	"dumptriage/dump"
	"dumptriage/kdump"
)

// writeKernel makes the file.
func (k *kernelFile) write(comment string) ([]byte, error) {
	head, l, err := k.header(comment)
	if err != nil {
		return nil, err
	}
	switch {
	case k.src.PhysicalMemory() != nil:
		return k.writePages(head, l)
	case k.src.DumpType() == 4:
		return k.writeTriage(head, l)
	}
	return head, nil // there is no memory
}

// extent is a part of the file that is kept, and where it comes to lie.
type extent struct {
	off, size int64
	at        int64
}

// extents are ascending and do not overlap.
type extents []extent

// add puts in a part of the file.
func (e *extents) add(off, size int64) {
	if off > 0 && size > 0 {
		*e = append(*e, extent{off: off, size: size})
	}
}

// settle joins what overlaps, and gives each its place from at on; the one at table is
// given room for as many bytes as the new table has.
func (e *extents) settle(at, table, tableSize int64) (end int64) {
	slices.SortFunc(*e, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
	var out extents
	for _, x := range *e {
		if n := len(out); n > 0 && x.off <= out[n-1].off+out[n-1].size && x.off != table && out[n-1].off != table {
			out[n-1].size = max(out[n-1].size, x.off+x.size-out[n-1].off)
			continue
		}
		out = append(out, x)
	}
	for i := range out {
		at = (at + 7) &^ 7
		out[i].at = at
		if out[i].off == table {
			at += tableSize
		} else {
			at += out[i].size
		}
	}
	*e = out
	return at
}

// place returns where an offset has come to lie, 0 when it is not kept.
func (e extents) place(off int64) int64 {
	i, found := slices.BinarySearchFunc(e, off, func(x extent, off int64) int { return cmp.Compare(x.off, off) })
	if !found {
		i--
	}
	if i < 0 || off >= e[i].off+e[i].size {
		return 0
	}
	return e[i].at + off - e[i].off
}

// The bytes of all data blocks may be as many times those of the file, and some more:
// honest blocks hardly overlap.
const (
	blockFactor = 8
	blockBudget = 1 << 24
)

// dataBlocks are the blocks of the new dump, by their places in the old one: those whose
// size tells what they are as they were, of the others the parts that are kept.
func (k *kernelFile) dataBlocks() ([]kdump.Block, error) {
	var out []kdump.Block
	budget := blockBudget + blockFactor*k.in.File.Size()
	for _, b := range k.src.Blocks() {
		if budget -= b.Size; budget < 0 {
			return nil, &dump.Error{Code: dump.Limit, File: k.in.Path, Stream: "TRIAGE_DATA_BLOCK", Offset: -1, Size: -1, Msg: "the blocks lie on each other too often"}
		}
		parts := k.usedParts(b.Offset, b.Size)
		if len(parts) == 0 {
			continue
		}
		if b.Whole {
			out = append(out, b)
			continue
		}
		for _, p := range parts {
			out = append(out, kdump.Block{VA: b.VA + uint64(p.off-b.Offset), Offset: p.off, Size: p.size})
		}
	}
	return out, nil
}

// usedParts returns the parts of a part of the file that are kept, with small gaps.
func (k *kernelFile) usedParts(off, size int64) (out []extent) {
	for at := off; at < off+size; {
		number := at / pageSize
		end := min((number+1)*pageSize, off+size)
		page := k.page(number)
		if page.none() {
			at = end
			continue
		}
		for ; at < end; at++ {
			if !page.there(int(at % pageSize)) {
				continue
			}
			if n := len(out); n > 0 && at-(out[n-1].off+out[n-1].size) <= gap {
				out[n-1].size = at + 1 - out[n-1].off
			} else {
				out = append(out, extent{off: at, size: 1})
			}
		}
	}
	return out
}

const dataBlockSize = 16

// writeTriage writes a triage dump: the parts that the header names, the data blocks
// that are kept, and no secondary data. What lies where is as it was, but closer.
func (k *kernelFile) writeTriage(head record, l *kernelHeader) ([]byte, error) {
	triage := make(record, l.triageSize)
	if _, err := k.in.File.ReadAt(triage, int64(l.size)); err != nil {
		return nil, &dump.Error{Code: dump.Truncated, File: k.in.Path, Stream: "TRIAGE_DUMP", Offset: int64(l.size), Size: int64(l.triageSize), Msg: "cannot be read", Err: err}
	}
	u32 := func(off int) int64 { return int64(le.Uint32(triage[off:])) }
	table := u32(l.blocks)
	blocks, err := k.dataBlocks()
	if err != nil {
		return nil, err
	}
	var e extents
	fileSize := k.in.File.Size()
	for _, s := range k.src.Sections() {
		if s.Name != "DataBlocks" && s.Name != "SecondaryData" && s.Offset >= int64(l.size+l.triageSize) {
			e.add(s.Offset, min(s.Size, fileSize-s.Offset))
		}
	}
	for _, b := range blocks {
		e.add(b.Offset, b.Size)
	}
	if len(blocks) > 0 {
		e.add(table, 1)
	} else {
		table = 0
	}
	end := e.settle(int64(l.size+l.triageSize), table, int64(len(blocks))*dataBlockSize)
	out := make(record, end+4)
	copy(out, head)
	for _, x := range e {
		if x.off == table {
			continue
		}
		b, err := k.bytes(x.off, int(x.size))
		if err != nil {
			return nil, err
		}
		copy(out[x.at:], b)
	}
	for i, b := range blocks {
		r := out[e.place(table)+int64(i)*dataBlockSize:]
		r.u64s(0, b.VA)
		r.u32s(8, uint32(e.place(b.Offset)), uint32(b.Size))
	}
	k.placeDrivers(out, triage, l, e)
	for _, at := range []int{0x14, 0x18, 0x1c, 0x20, 0x24, 0x28, triageDrivers, 0x38, triageBrokenDriver, l.dataPage, l.kdbg} {
		triage.u32s(at, uint32(e.place(u32(at))))
	}
	triage.u32s(l.blocks, uint32(e.place(table)), uint32(len(blocks)))
	triage.u32s(triageSizeOfDump, uint32(len(out)), uint32(end))
	copy(out[l.size:], triage)
	out.u32s(int(end), validMark)
	required := uint64(len(out))
	if !k.src.Live() {
		required += 8 // else it would look like a live one when the table is the last part
	}
	out.u64s(l.required, required)
	return out, nil
}

// placeDrivers corrects where the drivers' names are.
func (k *kernelFile) placeDrivers(out, triage record, l *kernelHeader, e extents) {
	list := e.place(int64(le.Uint32(triage[triageDrivers:])))
	if list == 0 {
		return
	}
	for i := range int64(le.Uint32(triage[triageDrivers+4:])) {
		at := list + i*int64(l.driverSize)
		if at+int64(l.driverSize) > int64(len(out)) {
			return
		}
		out.u32s(int(at), uint32(e.place(int64(le.Uint32(out[at:])))))
	}
}

// Types of dumps with a bitmap, by DUMP_HEADER.DumpType of those without one.
var bitmapTypes = map[uint32]uint32{1: 5, 0xa: 5, 8: 6, 9: 6}

// writePages writes a dump of physical memory with a bitmap, that holds the pages of
// which something is kept.
func (k *kernelFile) writePages(head record, l *kernelHeader) ([]byte, error) {
	const bitmapHead = 0x38
	type page struct {
		number uint64
		off    int64
	}
	var pages []page
	used := k.usedPages()
	for r := range k.src.PhysicalMemory().Runs() {
		i, _ := slices.BinarySearch(used, r.Off/pageSize)
		last := int64(-1) // the last page of the run that was taken
		for ; i < len(used) && used[i]*pageSize < r.Off+int64(r.Size); i++ {
			// A page of the file lies in up to two pages of memory.
			for n := max((used[i]*pageSize-r.Off)/pageSize-1, last+1, 0); n <= (used[i]*pageSize+pageSize-1-r.Off)/pageSize && n*pageSize < int64(r.Size); n++ {
				if off := r.Off + n*pageSize; k.pageUsed(off) {
					pages = append(pages, page{r.VA/pageSize + uint64(n), off})
					last = n
				}
			}
		}
	}
	slices.SortStableFunc(pages, func(a, b page) int { return cmp.Compare(a.number, b.number) })
	pages = slices.CompactFunc(pages, func(a, b page) bool { return a.number == b.number })
	bits := uint64(0)
	if n := len(pages); n > 0 {
		bits = (pages[n-1].number + 8) &^ 7
	}
	if bits > maxBitmap && bits/8 > uint64(k.in.File.Size()) {
		return nil, &dump.Error{Code: dump.Limit, File: k.in.Path, Stream: "bitmap", Offset: -1, Size: -1, Msg: "the dump has pages at addresses that no machine has"}
	}
	first := (int64(l.size+bitmapHead) + int64(bits/8) + pageSize - 1) &^ (pageSize - 1)
	out := make(record, first, first+int64(len(pages))*pageSize)
	copy(out, head)
	old := le.Uint32(head[l.dumpType:])
	kind, full := bitmapTypes[old], uint32(0x504d4446) // "FDMP"
	if kind == 0 {
		kind = old
	}
	if kind != 5 {
		full = 0x504d4453 // "SDMP"
	}
	out.u32s(l.dumpType, kind)
	b := out[l.size:]
	b.u32s(0, full, 0x504d5544) // "DUMP"
	b.u64s(0x20, uint64(first), uint64(len(pages)), bits)
	for _, p := range pages {
		b[bitmapHead+p.number/8] |= 1 << (p.number % 8)
		data, err := k.bytes(p.off, pageSize)
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
	}
	out.u64s(l.required, uint64(len(out)))
	return out, nil
}

// maxBitmap bounds the bitmap that is written for a small file: 1 TB of memory, 32 MB.
const maxBitmap = 1 << 28

func (k *kernelFile) pageThere(number int64) bool {
	page := k.page(number)
	return !page.none()
}

// pageUsed reports whether something is kept of the page at an offset in the file.
func (k *kernelFile) pageUsed(off int64) bool {
	if off%pageSize == 0 {
		return k.pageThere(off / pageSize)
	}
	return len(k.usedParts(off, pageSize)) > 0
}
