package kdump

import (
	"errors"
	"io"
	"iter"
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	pageShift = 12
	pageSize  = 1 << pageShift
	// maxPFN bounds page frame numbers: x64 and ARM64 have at most 52 bits of
	// physical address.
	maxPFN = 1 << (52 - pageShift)
)

// PhysicalMemory is the physical memory of a dump as far as the file holds it.
// It implements dump.Memory with physical addresses. It is safe for concurrent
// use, and reads the file page by page, so its size costs nothing.
type PhysicalMemory struct {
	r      io.ReaderAt
	tables io.ReaderAt // the same, for page tables
	size   int64
	pages  pageMap
	how    string
	// masked says that the system certainly XORs pteMask into invalid entries.
	masked bool
}

var _ dump.Memory = (*PhysicalMemory)(nil)

// pageMap says where in the file a page of physical memory lies.
type pageMap interface {
	// locate returns the file offset of page frame pfn.
	locate(pfn uint64) (off int64, ok bool)
	// runs yields the pages in ascending order of their numbers.
	runs() iter.Seq[pageRun]
	// end returns the number behind that of the last page.
	end() uint64
	// count returns how many pages the map names.
	count() uint64
	// first returns the file offset of the first page stored.
	first() int64
	// beyond returns how many of them lie beyond the end of a file of size bytes.
	beyond(size int64) uint64
}

// pageRun is count pages from page frame pfn on, stored from file offset off on.
type pageRun struct {
	pfn, count uint64
	off        int64
}

func (r pageRun) end() uint64 { return r.pfn + r.count }

// Layout names how the file stores pages: "runs", "bitmap" or "ranges".
func (m *PhysicalMemory) Layout() string { return m.how }

// Pages returns how many pages of 4096 bytes the file names.
func (m *PhysicalMemory) Pages() uint64 { return m.pages.count() }

// Runs yields the ranges of physical memory that the file holds, in ascending
// order, VA being the physical address. Pages that lie beyond its end are left
// out, so there are no more ranges than the file has room for.
func (m *PhysicalMemory) Runs() iter.Seq[dump.Range] {
	return func(yield func(dump.Range) bool) {
		_, ascending := m.pages.(*bitmapMap)
		for r := range m.pages.runs() {
			if r.off >= m.size {
				if ascending { // in the file too: none of the rest is in it
					return
				}
				continue
			}
			size := min(r.count<<pageShift, uint64(m.size-r.off))
			if !yield(dump.Range{VA: r.pfn << pageShift, Size: size, Off: r.off}) {
				return
			}
		}
	}
}

// ReadAt reads len(p) bytes at a physical address. A *dump.MemoryError names the
// first one that the file does not hold.
func (m *PhysicalMemory) ReadAt(p []byte, pa uint64) (int, error) {
	done := 0
	for done < len(p) {
		at := pa + uint64(done)
		off, ok := m.pages.locate(at >> pageShift)
		if at < pa || !ok {
			return done, &dump.MemoryError{VA: at, Size: len(p) - done}
		}
		n, err := m.readPage(p[done:], off, at)
		done += n
		if err != nil {
			err.Size = len(p) - done
			return done, err
		}
	}
	return done, nil
}

// readPage reads what of the page stored at off is wanted from address at on.
func (m *PhysicalMemory) readPage(p []byte, off int64, at uint64) (int, *dump.MemoryError) {
	skip := int(at & (pageSize - 1))
	want := min(len(p), pageSize-skip)
	n, err := m.r.ReadAt(p[:want], off+int64(skip))
	if n == want {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = nil // the file is cut short: the bytes are simply not there
	}
	return n, &dump.MemoryError{VA: at + uint64(n), Err: err}
}

// openPhysical reads how the file stores physical memory; nil when it stores
// none that is understood, which is then noted as damage.
func (f *File) openPhysical() *PhysicalMemory {
	var pages pageMap
	how := ""
	if f.hdr.dumpType == typeFull {
		pages, how = f.openRuns(), "runs"
	} else {
		c := cursor.At(f.r, f.size, int64(f.hdr.size), 8, "memory")
		first, second := c.U32(), c.U32()
		switch {
		case c.Err() != nil:
			f.damage(&dump.Error{Code: dump.Truncated, Stream: "memory", Offset: int64(f.hdr.size), Size: f.size - int64(f.hdr.size),
				Msg: "the dump ends behind its header: its memory is missing"})
		case first == sigSDMP || first == sigFDMP:
			pages, how = f.openBitmap(), "bitmap"
		case second == sigRDMP:
			pages, how = f.openRanges(), "ranges"
		default:
			f.damage(&dump.Error{Code: dump.BadRecord, Stream: "memory", Offset: int64(f.hdr.size), Size: 8,
				Msg: "behind the header stands neither a bitmap (SDMP, FDMP) nor a list of ranges (RDMP)"})
		}
	}
	if pages == nil {
		return nil
	}
	m := &PhysicalMemory{r: f.r, tables: f.tableReader(), size: f.size, pages: pages, how: how, masked: f.hdr.build >= firstMasked}
	f.checkPages(m)
	return m
}

// checkPages says how much of the pages lies beyond the end of the file.
func (f *File) checkPages(m *PhysicalMemory) {
	if cut := m.pages.beyond(f.size); cut > 0 {
		f.damage(dump.Errorf(dump.Truncated, "memory", "%d of %d pages lie beyond the end of the file: the dump is cut short", cut, m.Pages()))
	}
}

// pageOffset returns where page n of the data from first on is stored, clamped
// so that it cannot overflow.
func pageOffset(first int64, n uint64) int64 {
	if n > uint64(math.MaxInt64-first)>>pageShift {
		return math.MaxInt64 &^ (pageSize - 1)
	}
	return first + int64(n<<pageShift)
}

// sections lists the parts behind the header: what describes the pages, and the
// pages.
func (m *PhysicalMemory) sections(h *header) (out []Section) {
	first := m.pages.first()
	if at := int64(h.size); first > at {
		out = append(out, Section{m.how, at, first - at, -1})
	}
	return append(out, Section{"pages", first, int64(min(m.Pages(), uint64(max(0, m.size-first))>>pageShift)) << pageShift, int(m.Pages())})
}
