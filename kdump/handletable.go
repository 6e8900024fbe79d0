package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// tableWalk reads a HANDLE_TABLE: a page of entries, or a tree of pages of
// pointers with such pages at its ends. Entries are two words; those that are
// free are left out.
type tableWalk struct {
	f       *File
	stream  string
	entry   func(low, high uint64, id uint32)
	seen    map[uint64]bool // pages
	pages   int
	entries int
	missing int // pages of it that are not in the dump, or in part
}

// tableCode reads HANDLE_TABLE.TableCode: the second field since Windows 8, the
// first before. Its two lowest bits are the level of the page that it points to.
func (f *File) tableCode(table uint64) uint64 {
	for _, off := range []int{f.hdr.ptr, 8, 0} { // 32-bit Windows 10 has it at 8 too
		v, err := dump.ReadPointer(f.mem, f.hdr.arch, table+uint64(off))
		if err == nil && kernelAddress(f.hdr.ptr, v) && v&3 != 3 && v&^3%pageSize == 0 {
			return v
		}
	}
	return 0
}

// readTable walks the table at an address, and reports whether all of it was read.
func (f *File) readTable(table uint64, stream string, entry func(low, high uint64, id uint32)) (whole bool) {
	code := f.tableCode(table)
	if code == 0 {
		return false
	}
	w := &tableWalk{f: f, stream: stream, entry: entry, seen: map[uint64]bool{}}
	w.page(code&^3, int(code&3), 0)
	if w.full() {
		f.damage(dump.Errorf(dump.Limit, stream, "larger than any system's, or than the file: the rest is left out"))
	}
	if w.missing > 0 { // tables are pageable
		e := dump.Errorf(dump.OutOfRange, stream, "%d of %d pages of the table at %#x are not in the dump: what they name is left out", w.missing, w.pages, table)
		e.Warning = true
		f.damage(e)
	}
	return w.missing == 0 && !w.full() && !f.full.spent.Load()
}

// full reports that no more is read. Honest pages do not lie over each other, so
// there are no more entries than the file can hold.
func (w *tableWalk) full() bool {
	return w.pages > maxCIDPages || w.entries > maxCIDObjects || w.entries > w.f.most(2*w.f.hdr.ptr)
}

// page reads one page of the table; first is the id of its first entry.
func (w *tableWalk) page(va uint64, level int, first uint32) {
	if w.seen[va] || w.full() {
		return
	}
	w.seen[va] = true
	w.pages++
	page := make([]byte, pageSize)
	n, _ := w.f.mem.ReadAt(page, va)
	if n < pageSize {
		w.missing++
	}
	ptr := w.f.hdr.ptr
	c := cursor.New(page[:n], w.stream, -1)
	if level == 0 {
		for i := uint32(0); c.Left() >= 2*ptr; i++ {
			low, high := c.Pointer(ptr), c.Pointer(ptr)
			if id := first + i*cidStep; low != 0 && id != 0 && !w.full() && w.f.spend(1) {
				w.entries++
				w.entry(low, high, id)
			}
		}
		return
	}
	below := uint32(pageSize / (2 * ptr) * cidStep) // ids of one page of the level below
	if level == 2 {
		below *= uint32(pageSize / ptr)
	}
	for i := uint32(0); c.Left() >= ptr; i++ {
		v := c.Pointer(ptr)
		if kernelAddress(ptr, v) && v%pageSize == 0 && first+i*below < maxID {
			w.page(v, level-1, first+i*below)
		}
	}
}
