package kdump

import "dumptriage/dump"

// pagingX86 is 32-bit paging: two levels of 4-byte entries, or with PAE three
// of 8-byte ones, of which the first has four entries.
type pagingX86 struct{ pae bool }

func (p pagingX86) name() string {
	if p.pae {
		return "x86, PAE"
	}
	return "x86"
}

// Where paging files are numbered is not known.
var (
	pteFormX86 = pteForm{ptr: 4, protect: 5, offset: 12}
	pteFormPAE = pteForm{ptr: 4, swizzle: true, protect: 5, offset: 32}
)

func (p pagingX86) software() *pteForm {
	if p.pae {
		return &pteFormPAE
	}
	return &pteFormX86
}

func (p pagingX86) walk(s *AddressSpace, va uint64) translation {
	if va>>32 != 0 {
		return translation{state: PageNonCanonical}
	}
	if p.pae {
		return p.walkPAE(s, va)
	}
	const directoryShift, frame = 22, 0xfffff000
	e, ok := s.entry(s.root&frame+va>>directoryShift*4, 4)
	table := e & frame
	switch {
	case !ok:
		return translation{state: PageTableMissing, level: 2}
	case e&pteValid == 0:
		var t translation
		if table, t = s.invalidTable(e, 2); table == 0 {
			return t
		}
	case e&pteLarge != 0: // 4 MiB; bits 13 to 20 are bits 32 to 39 of the address (PSE-36)
		base := e&0xffc00000 | e>>13&0xff<<32
		return translation{page: base | va&0x3ff000, level: 2, entry: e}
	}
	t := p.leaf(s, table, va)
	t.table = 0 // such a table maps 4 MiB, the cache is of those of 2 MiB
	return t
}

func (p pagingX86) walkPAE(s *AddressSpace, va uint64) translation {
	e, ok := s.entry(s.root&0xffffffe0+va>>30*8, 8)
	if !ok {
		return translation{state: PageTableMissing, level: 3}
	}
	if e&pteValid == 0 { // the processor loads all four: none is ever in transition
		return translation{state: PageInvalid, level: 3, entry: e}
	}
	e, ok = s.entry(e&pteFrame+va>>21%entriesPerTable*8, 8)
	table := e & pteFrame
	switch {
	case !ok:
		return translation{state: PageTableMissing, level: 2}
	case e&pteValid == 0:
		var t translation
		if table, t = s.invalidTable(e, 2); table == 0 {
			return t
		}
	case e&pteLarge != 0:
		return translation{page: e&pteFrame&^0x1fffff | va&0x1ff000, level: 2, entry: e}
	}
	return p.leaf(s, table, va)
}

func (p pagingX86) leaf(s *AddressSpace, table, va uint64) translation {
	if p.pae {
		e, ok := s.entry(table+va>>pageShift%entriesPerTable*8, 8)
		if !ok {
			return translation{state: PageTableMissing, level: 1}
		}
		t := softwarePAE(s, e)
		t.level, t.table = 1, table
		return t
	}
	e, ok := s.entry(table+va>>pageShift%1024*4, 4)
	if !ok {
		return translation{state: PageTableMissing, level: 1}
	}
	t := software32(e, false)
	t.level = 1
	return t
}

// softwarePAE: prototype PTEs lie at the address in the upper half of the entry.
func softwarePAE(s *AddressSpace, e uint64) translation {
	if e&pteValid != 0 || e&ptePrototype == 0 {
		return s.software64(e, false)
	}
	t := translation{entry: e, state: PageMappedFile}
	if s.depth > 0 || !kernelAddress(4, e>>32) {
		return t
	}
	s.depth++
	defer func() { s.depth-- }()
	own := s.readPrototype(e >> 32)
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

// software32 decodes a 4-byte entry, or a prototype PTE. Where the prototype PTE of
// an entry lies depends on a variable of the kernel: the VADs lead to it.
func software32(e uint64, prototype bool) translation {
	const frame = 0xfffff000
	t := translation{entry: e}
	switch {
	case e&pteValid != 0:
		t.page = e & frame
	case e == 0 && prototype:
		t.state = PageReserved // its section has no page there
	case e == 0:
		t.state, t.ask = PageInvalid, true
	case e&ptePrototype != 0:
		t.state, t.ask = PageMappedFile, !prototype
	case e&pteTransition != 0:
		t.state, t.page = PageTransition, e&frame
	case e>>12 != 0:
		t.state, t.soft = PagePagedOut, true
	case e>>5&0x1f == protectDecommit:
		t.state = PageReserved
	default:
		t.state = PageDemandZero
	}
	return t
}

// readPrototype32 reads a prototype PTE of four bytes. The caller holds the lock.
func (s *AddressSpace) readPrototype32(va uint64) *uint64 {
	if va&3 != 0 {
		return nil
	}
	if s.system != nil {
		v, err := dump.ReadUint32(s.system, va)
		if err != nil {
			return nil
		}
		e := uint64(v)
		return &e
	}
	t := s.walker.walk(s, va)
	if !t.readable() {
		return nil
	}
	e, ok := s.entry(t.page|va&(pageSize-1), 4)
	if !ok {
		return nil
	}
	return &e
}
