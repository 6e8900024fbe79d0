package kdump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"dumptriage/dump"
)

// PageState says what the page tables hold for an address.
type PageState uint8

// Page states. The bytes of those before PageDemandZero can be read.
const (
	PageValid      PageState = iota
	PageTransition           // taken from the process, its bytes still in memory
	PagePrototype            // shared, found through a prototype PTE

	PageDemandZero   // committed and never touched: it would read as zeros
	PageReserved     // reserved and not committed: an access would fail
	PagePagedOut     // in a page file or in the compression store
	PageMappedFile   // in the file that it maps, not in memory
	PageInvalid      // no page is mapped there
	PageNotInDump    // in memory, and left out of the dump
	PageTableMissing // a page table of it is not in the dump
	PageNonCanonical // no address that the processor would translate
	PageUnresolved   // its page tables have no entry, and what it would hold is not known
)

var pageStates = [...]struct{ key, text string }{
	{"valid", "valid"}, {"transition", "in transition"}, {"prototype", "shared"},
	{"demand_zero", "demand-zero: never touched"}, {"reserved", "reserved, not committed"}, {"paged_out", "paged out"},
	{"mapped_file", "not read in from the file that it maps"}, {"not_mapped", "not mapped"},
	{"not_in_dump", "mapped, but its page is not in the dump"}, {"table_missing", "not known: a page table is not in the dump"},
	{"non_canonical", "not a canonical address"},
	{"unresolved", "no page table entry: what the process has there is not known"},
}

// String describes the state in a few words.
func (s PageState) String() string {
	if int(s) < len(pageStates) {
		return pageStates[s].text
	}
	return fmt.Sprintf("page state %d", uint8(s))
}

// Key is the state in one word, such as "demand_zero".
func (s PageState) Key() string {
	if int(s) < len(pageStates) {
		return pageStates[s].key
	}
	return ""
}

// Readable reports whether a page in this state has bytes in memory.
func (s PageState) Readable() bool { return s < PageDemandZero }

// PageError is the cause in a dump.MemoryError of a full dump's memory: why a
// virtual address has no bytes.
type PageError struct{ Page }

// Error describes the state and the entry, and where the bytes are instead.
func (e *PageError) Error() string {
	text := e.Describe()
	if file := e.File(); file != "" {
		text += ": " + file
	}
	return text
}

// translation is the answer of a walk: the physical address of the first byte
// of a page of size bytes, or why there is none.
type translation struct {
	state PageState
	level uint8
	ask   bool // the page tables leave it to the VADs
	soft  bool // entry has the form of software, so that a page file's place can be read from it
	entry uint64
	page  uint64 // physical address of the 4 KiB page
	table uint64 // physical address of the last-level table, 0 when a large page was met
	vad   *vad   // that decided, nil none
}

func (t *translation) readable() bool { return t.state.Readable() }

// walker translates by the page tables of one mode of one processor.
type pageWalker interface {
	// walk translates va by the tables at root.
	walk(s *AddressSpace, va uint64) translation
	// leaf decodes the entry of a last-level table at physical address table.
	leaf(s *AddressSpace, table, va uint64) translation
	// name names the mode.
	name() string
	// software is the form of entries that are not valid.
	software() *pteForm
}

// AddressSpace is the virtual memory of one process, kernel half included, read
// through its page tables. It implements dump.Memory and is safe for concurrent
// use. What cannot be read is a *dump.MemoryError whose cause is a *PageError.
type AddressSpace struct {
	phys   *PhysicalMemory
	walker pageWalker
	form   *pteForm
	root   uint64 // physical address of the top table
	// system translates prototype PTEs, which are kernel memory, and on ARM64
	// the kernel half; nil for the system's own space.
	system *AddressSpace

	mu     sync.Mutex
	cache  []cachedPage  // direct-mapped, by page number
	tables []cachedTable // last-level tables, by the 2 MiB that they map
	last   cachedTable   // the one that entries are being read from
	buf    [8]byte       // keeps reads of entries from allocating
	depth  int           // of prototype PTEs being followed

	vads atomic.Pointer[vadTree] // of the process, nil when nobody asked for the space as one's
}

var _ dump.Memory = (*AddressSpace)(nil)

// A process's space is used for one stack or a few; the system's for all.
const (
	cachedPages  = 256
	cachedTables = 32
	systemFactor = 8 // of both, for the system's space
)

type cachedPage struct {
	key uint64 // page number + 1, 0 empty
	off int64  // file offset
}

type cachedTable struct {
	key uint64 // va>>21 + 1, 0 empty
	pa  uint64
	off int64 // file offset
}

func newAddressSpace(phys *PhysicalMemory, w pageWalker, root uint64, system *AddressSpace) *AddressSpace {
	return &AddressSpace{phys: phys, walker: w, form: w.software(), root: root, system: system}
}

// Root returns the physical address of the top page table.
func (s *AddressSpace) Root() uint64 { return s.root }

// Mode names the kind of page tables, such as "x64, 4 levels".
func (s *AddressSpace) Mode() string { return s.walker.name() }

// ReadAt implements dump.Memory.
func (s *AddressSpace) ReadAt(p []byte, va uint64) (int, error) {
	done := 0
	for done < len(p) {
		at := va + uint64(done)
		if at < va {
			return done, &dump.MemoryError{VA: at, Size: len(p) - done, Err: &PageError{Page{State: PageNonCanonical}}}
		}
		off, perr := s.page(at)
		if perr != nil {
			return done, &dump.MemoryError{VA: at, Size: len(p) - done, Err: perr}
		}
		n, err := s.phys.readPage(p[done:], off, at)
		done += n
		if err != nil {
			err.Size = len(p) - done
			if err.Err == nil {
				err.Err = &PageError{Page{State: PageNotInDump}}
			}
			return done, err
		}
	}
	return done, nil
}

// page returns the file offset of the page that holds va.
func (s *AddressSpace) page(va uint64) (int64, *PageError) {
	s.mu.Lock()
	if len(s.cache) > 0 {
		if slot := s.slot(va >> pageShift); slot.key == va>>pageShift+1 {
			off := slot.off
			s.mu.Unlock()
			return off, nil
		}
	}
	t, off := s.byTables(va)
	s.mu.Unlock()
	if off < 0 && t.ask {
		t, off = s.byVAD(va, t), -1
		if t.readable() {
			s.mu.Lock()
			off = s.keep(va, &t)
			s.mu.Unlock()
		}
	}
	if off < 0 {
		return 0, &PageError{s.describe(va, &t)}
	}
	return off, nil
}

// slot returns where the file offset of a page is kept. The caller holds the lock.
func (s *AddressSpace) slot(number uint64) *cachedPage {
	return &s.cache[number%uint64(len(s.cache))]
}

// byTables returns what the page tables say of a page, and its file offset, negative
// when it has none. The caller holds the lock.
func (s *AddressSpace) byTables(va uint64) (translation, int64) {
	if s.cache == nil {
		n := 1
		if s.system == nil {
			n = systemFactor
		}
		s.cache, s.tables = make([]cachedPage, n*cachedPages), make([]cachedTable, n*cachedTables)
	}
	t := s.translate(va)
	if !t.readable() {
		return t, -1
	}
	return t, s.keep(va, &t)
}

// keep returns the file offset of a page that can be read and remembers it. That of
// one that the dump lacks is negative. The caller holds the lock.
func (s *AddressSpace) keep(va uint64, t *translation) int64 {
	off, ok := s.phys.pages.locate(t.page >> pageShift)
	if !ok {
		t.state = PageNotInDump
		return -1
	}
	*s.slot(va >> pageShift) = cachedPage{va>>pageShift + 1, off}
	return off
}

// translate walks the tables, from the last one on when it is known already.
func (s *AddressSpace) translate(va uint64) translation {
	slot := &s.tables[va>>21%uint64(len(s.tables))]
	if slot.key == va>>21+1 {
		s.last = *slot
		return s.walker.leaf(s, slot.pa, va)
	}
	t := s.walker.walk(s, va)
	if t.table != 0 {
		if off, ok := s.phys.pages.locate(t.table >> pageShift); ok {
			*slot = cachedTable{va>>21 + 1, t.table &^ (pageSize - 1), off}
		}
	}
	return t
}

// Translate returns the physical address of va and the state of its page. There is
// an address when the state is PageNotInDump or one that can be read.
func (s *AddressSpace) Translate(va uint64) (pa uint64, state PageState) {
	p := s.Page(va)
	return p.Physical, p.State
}

// entry reads a page table entry of size bytes at a physical address. The caller
// holds the lock.
func (s *AddressSpace) entry(pa uint64, size int) (uint64, bool) {
	off := s.last.off
	if s.last.key == 0 || s.last.pa != pa&^(pageSize-1) {
		var ok bool
		if off, ok = s.phys.pages.locate(pa >> pageShift); !ok {
			return 0, false
		}
	}
	b := s.buf[:size]
	if n, err := s.phys.tables.ReadAt(b, off+int64(pa&(pageSize-1))); n < size || err != nil && !errors.Is(err, io.EOF) {
		return 0, false
	}
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(b)), true
	}
	return binary.LittleEndian.Uint64(b), true
}

// holds reports whether the dump has the page at a physical address.
func (s *AddressSpace) holds(pa uint64) bool {
	_, ok := s.phys.pages.locate(pa >> pageShift)
	return ok
}
