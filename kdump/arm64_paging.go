package kdump

// pagingARM64 is the 4 KiB granule with four levels and 47 bits in each half of
// the address space: the lower is translated by TTBR0, the upper by TTBR1. Short
// says that TTBR1 is a table of its own, whose entries count from its beginning;
// else it is the upper half of the page of TTBR0.
type pagingARM64 struct{ short bool }

func (p pagingARM64) name() string {
	if p.short {
		return "ARM64, 4 KiB granule, TTBR1 apart"
	}
	return "ARM64, 4 KiB granule"
}

const (
	armBits  = 48
	armTable = 1 << 1 // in levels 0 to 2: a table and no block; in level 3 always set
	armFrame = 0x0000fffffffff000
)

// pteFormARM64 is that of published type headers: the kinds of entries are told as
// on x64, no bit masks them, and protection and paging file lie elsewhere. No dump
// with such entries was at hand.
var pteFormARM64 = pteForm{ptr: 8, protect: 1, file: 6, offset: 32}

func (p pagingARM64) software() *pteForm { return &pteFormARM64 }

func (p pagingARM64) walk(s *AddressSpace, va uint64) translation {
	if !canonical(va, armBits) {
		return translation{state: PageNonCanonical}
	}
	kernel := kernelAddress(8, va)
	table := s.root & armFrame
	if kernel && s.system != nil {
		table = s.system.root & armFrame
	}
	for level := 4; level > 1; level-- {
		shift := pageShift + 9*(level-1)
		index := va >> shift % entriesPerTable
		if level == 4 && kernel && p.short {
			index %= entriesPerTable / 2
		}
		e, ok := s.entry(table+index*8, 8)
		switch {
		case !ok:
			return translation{state: PageTableMissing, level: uint8(level)}
		case e&pteValid == 0:
			var t translation
			if table, t = s.invalidTable(e, level); table == 0 {
				return t
			}
			continue
		case e&armTable == 0:
			if level > 3 { // no block of that size exists
				return translation{state: PageInvalid, level: uint8(level), entry: e}
			}
			frame := e & armFrame &^ (1<<shift - 1)
			return translation{page: frame | va&(1<<shift-1)&^(pageSize-1), level: uint8(level), entry: e}
		}
		table = e & armFrame
	}
	return p.leaf(s, table, va)
}

func (p pagingARM64) leaf(s *AddressSpace, table, va uint64) translation {
	e, ok := s.entry(table+va>>pageShift%entriesPerTable*8, 8)
	if !ok {
		return translation{state: PageTableMissing, level: 1}
	}
	var t translation
	switch {
	case e&pteValid != 0 && e&armTable == 0:
		t = translation{state: PageInvalid, entry: e} // a reserved form
	case e&pteValid != 0:
		t = translation{page: e & armFrame, entry: e}
	default:
		t = s.software64(e, false)
	}
	t.level, t.table = 1, table
	return t
}
