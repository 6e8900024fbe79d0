package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	sigRDMP     = 0x504d4452 // "RDMP"
	rangeStream = "ranges"
	rangeTable  = 0x30 // from the beginning of the range header
	rangeEntry  = 16
	// maxRanges bounds the list: a machine's memory falls into some thousands.
	maxRanges = 1 << 22
)

// openRanges reads what a debugger's .dump /k, /ka and /f leave behind the
// header: u32 0x40, "RDMP", "DUMP", u32, u64 size of the metadata, u64 file
// offset of the first page; then for /f u32 count of ranges, 4 bytes, u64 count
// of pages, for the others 16 bytes of unknown meaning; then from 0x30 on ranges
// {first page u64, pages u64}. Those of /k and /ka end with a page number of 0.
func (f *File) openRanges() pageMap {
	at := int64(f.hdr.size)
	c := cursor.At(f.r, f.size, at, rangeTable, rangeStream)
	c.Seek(0x18)
	first := int64(c.U64())
	claimed, _, pages := uint64(c.U32()), c.U32(), c.U64()
	if c.Err() != nil || first < at+rangeTable {
		f.damage(&dump.Error{Code: dump.BadRecord, Stream: rangeStream, Offset: at + 0x18, Size: 8,
			Msg: "the first page at " + hex(uint64(first)) + " lies inside the header"})
		return nil
	}
	counted := f.hdr.dumpType == typeRangeF
	table := cursor.At(f.r, f.size, at+rangeTable, min(first-at-rangeTable, maxRanges*rangeEntry), rangeStream)
	n := table.Len() / rangeEntry
	if counted {
		var err error
		n, err = table.Count(claimed, rangeEntry)
		f.damageErr(err)
	}
	r := &runReader{off: first}
	for i := range n {
		pfn, count := table.U64(), table.U64()
		if !counted && pfn == 0 && i > 0 || counted && r.sum >= pages {
			break
		}
		if counted { // the metadata of complete dumps names more than there is
			count = min(count, pages-r.sum)
		}
		if r.add(pfn, count); r.bad > 0 {
			break
		}
	}
	if !counted {
		pages = r.sum
	}
	return f.finishRuns(r, rangeStream, pages)
}
