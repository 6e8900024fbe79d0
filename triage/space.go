package triage

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/symbols"
)

// space is one address space to walk in: the memory of one dump, its modules,
// and their images from that memory or from the store. It implements
// unwind.Space. It is used by one goroutine.
type space struct {
	mem     dump.Memory
	arch    dump.Arch
	mods    []*Module // ascending, may overlap when the file is damaged
	regions []dump.Region
	store   *symbols.Store
	images  map[*Module]*pdata.Image
	debug   map[*Module]symbols.Debug // nil values: searched in vain
	missing map[*Module]*symbols.Missing
	reach   []uint64 // the highest address in mods[0..i]
	last    *Module  // most stacks stay in a module for a few frames
	dynamic *dynamicTables
	gone    unloadedImages
	entries dispatchers
	clr     managedSpace
	// searched is set once modules that the list lacks were looked for.
	searched bool
}

func newSpace(src dump.Source, store *symbols.Store) *space {
	s := &space{
		mem:     src.Memory(),
		arch:    src.System().Arch,
		store:   store,
		images:  map[*Module]*pdata.Image{},
		debug:   map[*Module]symbols.Debug{},
		missing: map[*Module]*symbols.Missing{},
	}
	loaded := src.Modules()
	block := make([]Module, len(loaded))
	s.mods = make([]*Module, len(loaded))
	for i := range loaded {
		block[i].Module = &loaded[i]
		s.mods[i] = &block[i]
	}
	s.index()
	s.regions = slices.Clone(src.Regions())
	sortRegions(s.regions)
	s.dynamic = newDynamicTables(s, src)
	return s
}

// index orders the modules for find.
func (s *space) index() {
	slices.SortStableFunc(s.mods, func(a, b *Module) int { return cmp.Compare(a.Base, b.Base) })
	s.reach = make([]uint64, len(s.mods))
	var reach uint64
	for i, m := range s.mods {
		if m.Size > 0 {
			reach = max(reach, m.Base+min(m.Size-1, math.MaxUint64-m.Base))
		}
		s.reach[i] = reach
	}
}

// ReadAt implements dump.Memory.
func (s *space) ReadAt(p []byte, va uint64) (int, error) { return s.mem.ReadAt(p, va) }

// Watcher implements dump.Watched for the memory below.
func (s *space) Watcher() dump.Watcher { return dump.WatcherOf(s.mem) }

// peek reads what is searched through: a watcher is told of what was found alone, by
// used.
func (s *space) peek(p []byte, va uint64) int {
	if w := s.Watcher(); w != nil {
		n, _ := w.ReadAhead(p, va)
		return n
	}
	n, _ := s.mem.ReadAt(p, va)
	return n
}

func (s *space) used(va uint64, n int) {
	if w := s.Watcher(); w != nil {
		w.Used(va, n)
	}
}

// usedFromPage is used for what a search found, and what of its page lies before:
// the search is for pages that are there.
func (s *space) usedFromPage(va uint64, n int) {
	page := va &^ 0xfff
	s.used(page, int(va-page)+n)
}

// Module implements unwind.Space.
func (s *space) Module(va uint64) (*dump.Module, bool) {
	if m := s.find(va); m != nil {
		return m.Module, true
	}
	return nil, false
}

// find returns the module that holds va. Where the list is damaged so that
// modules overlap, it is the one with the highest base, whatever was asked
// before.
func (s *space) find(va uint64) *Module {
	if s.last != nil && s.last.Contains(va) {
		return s.last
	}
	i := sort.Search(len(s.mods), func(i int) bool { return s.mods[i].Base > va })
	for tries := 0; i > 0 && s.reach[i-1] >= va && tries < maxOverlap; tries++ {
		i--
		if m := s.mods[i]; m.Contains(va) {
			if s.alone(i) {
				s.last = m
			}
			return m
		}
	}
	if !s.searched {
		s.searched = true
		if s.addUnlisted() {
			return s.find(va)
		}
	}
	return nil
}

// alone reports whether no other module overlaps mods[i].
func (s *space) alone(i int) bool {
	return (i == 0 || s.reach[i-1] < s.mods[i].Base) && (i+1 == len(s.mods) || s.reach[i] < s.mods[i+1].Base)
}

// Image implements unwind.Space.
func (s *space) Image(va uint64) (*pdata.Image, uint64) {
	m := s.find(va)
	if m == nil {
		return nil, 0
	}
	return s.imageOf(m), m.Base
}

// imageOf finds a module's image once. Dump memory comes first, since it is
// what ran; a file takes its place when memory lacks the function table.
func (s *space) imageOf(m *Module) *pdata.Image {
	if im, done := s.images[m]; done {
		return im
	}
	im, err := pdata.OpenMapped(s.mem, m.Base, m.Name())
	mapped := err == nil
	if mapped && hasTable(im) {
		m.Image = symbols.ImageFromMemory
		s.images[m] = im
		return im
	}
	file, path, miss := s.store.Find(m.Module)
	switch {
	case file != nil:
		m.Image, m.ImagePath, im = symbols.ImageFromFile, path, file
	case mapped:
		m.Image = symbols.ImageFromMemory
	default:
		m.Image, im = symbols.ImageMissing, nil
	}
	if file == nil {
		miss.Tried = append([]string{"dump memory"}, miss.Tried...)
		s.missing[m] = miss
	}
	s.images[m] = im
	return im
}

// debugOf finds a module's debug information once. A module record without a
// debug identity has its image's.
func (s *space) debugOf(m *Module) symbols.Debug {
	if d, done := s.debug[m]; done {
		return d
	}
	im := s.imageOf(m) // its folder is the first to be looked into
	cv := m.CodeView
	if cv.Signature == "" && im != nil {
		cv = im.CodeView()
	}
	var d symbols.Debug
	d, m.SymbolsPath, m.Symbols = s.store.FindDebug(cv, m.ImagePath)
	if d == nil || m.Symbols == symbols.DebugMismatch {
		if own, path := s.imageDebug(m, im); own != nil {
			d, m.SymbolsPath, m.Symbols = own, path, symbols.DebugLoaded
		}
	}
	s.debug[m] = d
	return d
}

// imageDebug finds what compilers put into the image itself. Memory has no symbol
// table and often no debug sections, so that the file is looked for, if the
// headers say that it is worth while.
func (s *space) imageDebug(m *Module, im *pdata.Image) (symbols.Debug, string) {
	path := m.ImagePath
	if im != nil && m.Image == symbols.ImageFromMemory && im.HasSymbolTable() {
		im, path, _ = s.store.Find(m.Module)
	}
	if im == nil {
		return nil, ""
	}
	return s.store.FindImageDebug(im, path)
}

// Executable implements unwind.Space. In a module with an image the section
// table answers; without one any address in the module may be code, which is
// not known. Outside modules only the dump's memory list knows.
func (s *space) Executable(va uint64) (executable, known bool) {
	if m := s.find(va); m != nil {
		if im := s.imageOf(m); im != nil {
			return im.Executable(uint32(va - m.Base)), true
		}
	}
	if r := s.region(va); r != nil {
		return r.Executable(), true
	}
	return false, false
}

func (s *space) region(va uint64) *dump.Region { return regionAt(s.regions, va) }

// missingImages lists the images that were asked for in vain, by address.
func (s *space) missingImages() []symbols.Missing {
	var out []symbols.Missing
	for _, m := range s.mods {
		if miss := s.missing[m]; miss != nil {
			out = append(out, *miss)
		}
	}
	return out
}

// hasTable reports whether an image says how its code is unwound, or has no
// need to: x86 has no tables.
func hasTable(im *pdata.Image) bool {
	switch dump.ArchOfMachine(im.Identity().Machine) {
	case dump.AMD64:
		return im.HasFunctionTable()
	case dump.ARM64:
		return im.HasARM64Table()
	}
	return true
}
