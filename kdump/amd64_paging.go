package kdump

import (
	"math/bits"

	"dumptriage/dump"
)

// Bits of a page table entry of x64, and of x86 with PAE.
const (
	pteValid      = 1 << 0
	pteLarge      = 1 << 7 // PS: the entry maps a large page
	ptePrototype  = 1 << 10
	pteTransition = 1 << 11
	pteSwizzled   = 1 << 4 // of an invalid entry: its address bits stand as they are
	pteFrame      = 0x000ffffffffff000
	// pteMask is what Windows XORs into invalid entries, so that speculation
	// through them (L1TF) meets no memory: normally bit 45.
	pteMask = 1 << 45
	// firstMasked is the first build that always does; earlier ones do since an
	// update of August 2018.
	firstMasked = 17763

	entriesPerTable = 512
)

// pagingAMD64 is long mode with 4 or 5 levels. Large pages keep PAT in bit 12, so
// their frames are cut to their size.
type pagingAMD64 struct{ levels int }

func (p pagingAMD64) name() string {
	if p.levels == 5 {
		return "x64, 5 levels"
	}
	return "x64, 4 levels"
}

// canonical reports whether the bits above those that are translated are copies
// of the highest.
func canonical(va uint64, width int) bool {
	top := int64(va) >> (width - 1)
	return top == 0 || top == -1
}

func (p pagingAMD64) walk(s *AddressSpace, va uint64) translation {
	if !canonical(va, pageShift+9*p.levels) {
		return translation{state: PageNonCanonical}
	}
	table := s.root & pteFrame // CR3 keeps the PCID in its low twelve bits
	for level := p.levels; level > 1; level-- {
		shift := pageShift + 9*(level-1)
		e, ok := s.entry(table+va>>shift%entriesPerTable*8, 8)
		switch {
		case !ok:
			return translation{state: PageTableMissing, level: uint8(level)}
		case e&pteValid == 0:
			var t translation
			if table, t = s.invalidTable(e, level); table == 0 {
				return t
			}
			continue
		case e&pteLarge != 0 && level <= 3:
			frame := e & pteFrame &^ (1<<shift - 1)
			return translation{page: frame | va&(1<<shift-1)&^(pageSize-1), level: uint8(level), entry: e}
		}
		table = e & pteFrame
	}
	return p.leaf(s, table, va)
}

// invalidTable decodes an entry that should name a page table and is not valid.
// Tables of a process that was trimmed are in transition like any of its pages,
// and are returned while they are in memory; else the table is 0 and the
// translation says why.
func (s *AddressSpace) invalidTable(e uint64, level int) (table uint64, t translation) {
	switch {
	case e == 0:
		return 0, translation{state: PageInvalid, level: uint8(level), ask: true}
	case e&ptePrototype != 0 || e&pteTransition == 0:
		return 0, translation{state: PagePagedOut, level: uint8(level), entry: e}
	}
	table = s.transitionFrame(e)
	if table == 0 || !s.holds(table) {
		return 0, translation{state: PageTableMissing, level: uint8(level), entry: e}
	}
	return table, t
}

func (p pagingAMD64) leaf(s *AddressSpace, table, va uint64) translation {
	e, ok := s.entry(table+va>>pageShift%entriesPerTable*8, 8)
	if !ok {
		return translation{state: PageTableMissing, level: 1}
	}
	t := s.software64(e, false)
	t.level, t.table = 1, table
	return t
}

// pteForm is where an architecture keeps the fields of entries that are not valid.
type pteForm struct {
	ptr     int  // size of its pointers
	swizzle bool // bit 4 says that pteMask was not applied
	protect int  // first of the five bits of the protection
	file    int  // first of the four bits that number the paging file, 0 not known
	offset  int  // first bit of the page's place in it, counted in pages
}

// pteFormAMD64: builds before firstMasked number paging files in bits 1 to 4, or
// not, as they were updated.
var pteFormAMD64 = pteForm{ptr: 8, swizzle: true, protect: 5, file: 12, offset: 32}

func (p pagingAMD64) software() *pteForm { return &pteFormAMD64 }

// software64 decodes a 64-bit entry of a last-level table, or a prototype PTE,
// which cannot lead to a further one.
func (s *AddressSpace) software64(e uint64, prototype bool) translation {
	t := translation{entry: e}
	switch {
	case e&pteValid != 0:
		t.page = e & pteFrame
	case e == 0 && prototype:
		t.state = PageReserved // its section has no page there
	case e == 0:
		t.state, t.ask = PageInvalid, true
	case e&ptePrototype != 0 && prototype:
		t.state = PageMappedFile // a subsection: where in its file the page is
	case e&ptePrototype != 0:
		return s.prototype(e)
	case e&pteTransition != 0:
		t.state, t.page = PageTransition, s.transitionFrame(e)
	case s.unswizzle(e)>>s.form.offset != 0:
		t.state, t.soft = PagePagedOut, true
	case e>>s.form.protect&0x1f == protectDecommit:
		t.state = PageReserved
	default:
		t.state = PageDemandZero
	}
	return t
}

func (s *AddressSpace) unswizzle(e uint64) uint64 {
	if s.form.swizzle && e&pteSwizzled == 0 {
		e &^= pteMask
	}
	return e
}

// transitionFrame returns the page of a transition entry. Machines with another
// number of address bits use another bit than 45. A bit is taken for the mask when
// the machine cannot have that much memory: one that it may have is of a page
// that the dump leaves out, and without it another page's bytes would be shown.
func (s *AddressSpace) transitionFrame(e uint64) uint64 {
	frame := s.unswizzle(e) & pteFrame
	if frame == 0 || e&pteSwizzled != 0 || !s.form.swizzle {
		return frame
	}
	const beyond = 4 // times the highest page of the dump
	if bit := uint64(1) << (bits.Len64(frame) - 1); bit/beyond >= s.phys.pages.end()<<pageShift {
		return frame &^ bit
	}
	return frame
}

// vadPrototype in a prototype entry says that only the process's VADs know the
// page.
const vadPrototype = 0xffffffff0000

// prototype follows an entry whose bits 16 to 63 are the address of a prototype
// PTE.
func (s *AddressSpace) prototype(e uint64) translation {
	t := translation{entry: e, state: PageMappedFile}
	va := uint64(int64(e) >> 16)
	if (e|pteMask)>>16&vadPrototype == vadPrototype { // masked or not
		t.ask = true
		return t
	}
	if !kernelAddress(8, va) {
		return t
	}
	if s.depth > 0 { // the memory of prototype PTEs is itself never shared
		return t
	}
	s.depth++
	defer func() { s.depth-- }()
	own := s.readPrototype(va)
	if s.form.swizzle && e&pteSwizzled == 0 && e&pteMask != 0 {
		plain := s.readPrototype(uint64(int64(e&^pteMask) >> 16))
		switch {
		case s.phys.masked || own == nil:
			own = plain
		case plain != nil: // an older build, updated or not: which of the two is not known
			own = nil
		}
	}
	if own == nil {
		t.state = PageTableMissing
		return t
	}
	r := s.software64(*own, true)
	if r.readable() {
		r.state = PagePrototype
	}
	return r
}

// readPrototype reads a prototype PTE from the kernel's memory.
func (s *AddressSpace) readPrototype(va uint64) *uint64 {
	if va&7 != 0 {
		return nil
	}
	if s.system != nil {
		v, err := dump.ReadUint64(s.system, va)
		if err != nil {
			return nil
		}
		return &v
	}
	t := s.walker.walk(s, va)
	if !t.readable() {
		return nil
	}
	v, ok := s.entry(t.page|va&(pageSize-1), 8)
	if !ok {
		return nil
	}
	return &v
}
