package kdump

import (
	"iter"
	"sync"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// full is what a dump with physical memory has beside the header.
type full struct {
	phys   *PhysicalMemory
	walker pageWalker
	system *AddressSpace // by the header's page tables, or by those that were found
	how    string        // where the page tables come from

	mu     sync.Mutex
	spaces map[uint64]*AddressSpace // by root

	layoutOnce    sync.Once
	layout        listLayout
	processesOnce sync.Once
	processes     []dump.Process
	listed        atomic.Bool  // processes is complete
	steps         atomic.Int64 // that lists have taken
	spent         atomic.Bool  // steps has passed its limit
	objectsOnce   sync.Once
	objects       cidObjects
	typesOnce     sync.Once
	types         objectTypes
	resourcesOnce sync.Once
	resources     map[uint64]resource
	sessionsOnce  sync.Once
	sessions      []*AddressSpace
}

// openFull reads the physical memory and finds the page tables, the kernel's
// data block and the current thread. It never fails: what is missing becomes
// damage.
func (f *File) openFull(opt Options) {
	f.r = &pageCache{r: f.r}
	f.watch(&opt)
	phys := f.openPhysical()
	if phys == nil {
		return
	}
	f.full = &full{phys: phys, spaces: map[uint64]*AddressSpace{}}
	f.findTables()
	f.mem = &kernelMemory{f: f}
	f.useSymbols(opt.Symbols)
	f.findKDBG()
	f.checkSymbols()
	f.findCurrent()
	f.ownTables()
}

// ownTables gives the page tables that were loaded to the current process when they
// are its own.
func (f *File) ownTables() {
	if f.kd == nil || f.process == nil {
		return
	}
	if root, ok := f.process.pointer(f.kd.process.dirBase); ok && f.pageTableRoot(root) == f.full.system.root {
		f.processSpace(&dump.Process{EPROCESS: f.process.va, DirBase: root})
	}
}

// PhysicalMemory returns the physical memory, nil when the dump holds none.
func (f *File) PhysicalMemory() *PhysicalMemory {
	if f.full == nil {
		return nil
	}
	return f.full.phys
}

// StoresPhysical reports whether dumps of this one's kind hold physical memory, also
// when it is so damaged that PhysicalMemory is nil.
func (f *File) StoresPhysical() bool {
	return f.hdr.dumpType != typeTriage && f.hdr.dumpType != typeHeader
}

// Full reports whether the dump holds the memory of a whole system, of which
// Processes lists the processes.
func (f *File) Full() bool { return f.full != nil }

// PageTables says by which kind of page tables memory is translated and where
// their root was found; both "" for triage dumps.
func (f *File) PageTables() (mode, how string) {
	if f.full == nil {
		return "", ""
	}
	return f.full.walker.name(), f.full.how
}

// walkers are the kinds of page tables that a dump's machine may have, the likely
// ones first.
func (f *File) walkers() []pageWalker {
	switch f.hdr.arch {
	case dump.ARM64:
		return []pageWalker{pagingARM64{}, pagingARM64{short: true}}
	case dump.X86:
		if f.hdr.paeEnabled {
			return []pageWalker{pagingX86{pae: true}, pagingX86{}}
		}
		return []pageWalker{pagingX86{}, pagingX86{pae: true}}
	}
	return []pageWalker{pagingAMD64{4}, pagingAMD64{5}}
}

// findTables tries the header's root with each kind of tables and takes the
// first by which the kernel's lists can be read. When none does, the roots that
// map themselves are tried: Windows keeps such an entry in every top table.
func (f *File) findTables() {
	fl := f.full
	try := func(root uint64, how string) bool {
		for _, w := range f.walkers() {
			s := newAddressSpace(fl.phys, w, root, nil)
			if f.provesTables(s) {
				fl.system, fl.walker, fl.how = s, w, how
				return true
			}
		}
		return false
	}
	root := uint64(0)
	if f.hdr.dirBase.ok {
		root = f.pageTableRoot(f.hdr.dirBase.v)
		if try(root, "header") {
			return
		}
	}
	if f.hdr.arch == dump.AMD64 {
		for root := range f.selfMaps() {
			if try(root, "self_map") {
				e := dump.Errorf(dump.BadRecord, headerStream, "the page tables at DirectoryTableBase do not translate the kernel's memory: those at %#x, which map themselves, do", root)
				e.Warning = true
				f.damage(e)
				return
			}
		}
	}
	fl.walker, fl.how = f.walkers()[0], "header, not proved"
	fl.system = newAddressSpace(fl.phys, fl.walker, root, nil)
	f.damage(dump.Errorf(dump.BadRecord, headerStream, "no page tables were found that translate the kernel's lists: virtual memory may not be readable"))
}

// provesTables reports whether a list head of the kernel can be read by the
// tables of s and is one: its neighbours point back to it.
func (f *File) provesTables(s *AddressSpace) bool {
	for _, head := range []optional[uint64]{f.hdr.modules, f.hdr.procs} {
		if !head.ok || !kernelAddress(f.hdr.ptr, head.v) {
			continue
		}
		flink, err := dump.ReadPointer(s, f.hdr.arch, head.v)
		if err != nil || !kernelAddress(f.hdr.ptr, flink) {
			continue
		}
		back, err := dump.ReadPointer(s, f.hdr.arch, flink+uint64(f.hdr.ptr))
		if err == nil && back == head.v {
			return true
		}
	}
	return false
}

// maxSelfMaps bounds how many roots are tried, maxRootPages how much memory is
// searched for them: the system's root is among the first pages ever used.
const (
	maxSelfMaps  = 64
	maxRootPages = 1 << 16
)

// selfMaps yields the pages in low memory that have an entry in their upper half
// which maps the page itself.
func (f *File) selfMaps() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		found, seen := 0, uint64(0)
		page := make([]byte, pageSize)
		for r := range f.full.phys.pages.runs() {
			for i := range r.count {
				if seen++; seen > maxRootPages || found >= maxSelfMaps {
					return
				}
				off := pageOffset(r.off, i)
				n := 0
				f.ahead(func() { n, _ = f.r.ReadAt(page, off) })
				if n < pageSize {
					return
				}
				if pa := (r.pfn + i) << pageShift; mapsItself(page, pa) {
					if found++; !yield(pa) {
						return
					}
				}
			}
		}
	}
}

func mapsItself(page []byte, pa uint64) bool {
	c := cursor.New(page, "", -1)
	c.Seek(pageSize / 2)
	for c.Left() >= 8 {
		if e := c.U64(); e&pteValid != 0 && e&pteFrame == pa {
			return true
		}
	}
	return false
}

// space returns the address space of the tables at root.
func (f *File) space(root uint64) *AddressSpace {
	fl := f.full
	if root = f.pageTableRoot(root); root == fl.system.root {
		return fl.system
	}
	fl.mu.Lock()
	defer fl.mu.Unlock()
	s := fl.spaces[root]
	if s == nil {
		s = newAddressSpace(fl.phys, fl.walker, root, fl.system)
		fl.spaces[root] = s
	}
	return s
}

// processSpace returns the address space of a process, whose descriptors tell what
// its page tables leave open.
func (f *File) processSpace(p *dump.Process) *AddressSpace {
	s := f.space(p.DirBase)
	if s.vads.Load() == nil {
		s.vads.CompareAndSwap(nil, f.newVADTree(p.EPROCESS))
	}
	return s
}

// kernelMemory is the memory of the current process. Drivers of a session, such
// as win32k, are mapped in processes of that session only: where the current
// process has nothing at a kernel address, one process of each session is asked.
type kernelMemory struct{ f *File }

var _ dump.Memory = (*kernelMemory)(nil)

// ReadAt implements dump.Memory.
func (m *kernelMemory) ReadAt(p []byte, va uint64) (int, error) {
	f := m.f
	n, err := f.full.system.ReadAt(p, va)
	if err == nil || n > 0 || !kernelAddress(f.hdr.ptr, va) || pageStateOf(err) != PageInvalid {
		return n, err
	}
	if !f.full.listed.Load() { // the processes are being looked for
		return n, err
	}
	for _, s := range f.sessionSpaces() {
		if n, err := s.ReadAt(p, va); n > 0 {
			return n, err
		}
	}
	return n, err
}

// Page tells what is known of the page that holds va.
func (m *kernelMemory) Page(va uint64) Page {
	f := m.f
	p := f.full.system.Page(va)
	if p.State != PageInvalid || !kernelAddress(f.hdr.ptr, va) {
		return p
	}
	for _, s := range f.sessionSpaces() {
		if q := s.Page(va); q.State.Readable() {
			return q
		}
	}
	return p
}
