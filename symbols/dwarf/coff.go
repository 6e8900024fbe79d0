package dwarf

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxSymbols  = 1 << 23
	symbolBlock = 4096 // records read at a time

	classExternal = 2
	classStatic   = 3
	typeFunction  = 2 // IMAGE_SYM_DTYPE_FUNCTION
)

// symbol is a function of the COFF symbol table; its name is read when asked for.
type symbol struct {
	rva    uint32
	record uint32
	// untyped symbols are assembly's functions, or marks that the linker makes
	// where one may begin.
	untyped bool
}

// readSymbols reads the COFF symbol table, once.
func (f *File) readSymbols() {
	if f.symbolsRead {
		return
	}
	f.symbolsRead = true
	im := f.im
	count := im.count
	if count > maxSymbols {
		f.note(dump.Errorf(dump.Limit, "symbol table", "has %d records, %d are read", count, int64(maxSymbols)))
		count = maxSymbols
	}
	skip := int64(0) // auxiliary records
	for first := int64(0); first < count; first += symbolBlock {
		n := min(symbolBlock, count-first)
		c := cursor.At(im.r, im.size, im.symbols+first*symbolSize, n*symbolSize, "symbol table")
		for i := range n {
			rec := c.Sub(symbolSize)
			if rec.Err() != nil {
				f.note(rec.Err())
				return
			}
			if skip > 0 {
				skip--
				continue
			}
			s, more, ok := im.symbol(rec)
			skip = more
			if s.record = uint32(first + i); ok {
				f.symbols = append(f.symbols, s)
			}
		}
	}
	slices.SortFunc(f.symbols, func(a, b symbol) int {
		if a.rva == b.rva && a.untyped != b.untyped {
			if b.untyped {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.rva, b.rva), cmp.Compare(a.record, b.record))
	})
}

// symbol reads a record: the address of a function, and how many auxiliary records
// follow. Assembly's functions often lack the type, but are external.
func (im *image) symbol(c *cursor.Cursor) (s symbol, more int64, ok bool) {
	c.Skip(8)
	v := c.U32()
	section := int(int16(c.U16()))
	isFunction := c.U16()>>4&3 == typeFunction
	class := c.U8()
	more = int64(c.U8())
	if section < 1 || section > len(im.sections) || class != classExternal && class != classStatic {
		return s, more, false
	}
	in := &im.sections[section-1]
	if !in.executable || !isFunction && class != classExternal || v >= max(in.vsize, uint32(in.size)) {
		return s, more, false
	}
	s.rva, s.untyped = in.rva+v, !isFunction
	return s, more, s.rva >= in.rva
}

// symbolAt returns the nearest function at or below an address, in its section.
func (f *File) symbolAt(rva uint32) (Location, bool) {
	f.readSymbols()
	i := sort.Search(len(f.symbols), func(i int) bool { return f.symbols[i].rva > rva })
	if i == 0 {
		return Location{}, false
	}
	at := f.symbols[i-1].rva
	for i > 1 && f.symbols[i-2].rva == at { // of several at one address the first: a function, in the order of the table
		i--
	}
	if !f.im.sameSection(at, rva) {
		return Location{}, false
	}
	name := f.im.symbolName(int64(f.symbols[i-1].record))
	return Location{Function: name, RVA: at, Public: true}, name != ""
}

func (im *image) sameSection(a, b uint32) bool {
	for i := range im.sections {
		if s := &im.sections[i]; a >= s.rva && a-s.rva < s.vsize {
			return b >= s.rva && b-s.rva < s.vsize
		}
	}
	return false
}

// symbolName reads the name of a record: eight characters, or an offset in the
// string table behind four zeros.
func (im *image) symbolName(record int64) string {
	c := cursor.At(im.r, im.size, im.symbols+record*symbolSize, 8, "symbol table")
	short := c.Bytes(8)
	if c.Err() != nil {
		return ""
	}
	c.Seek(0)
	if c.U32() != 0 {
		return cursor.CString(short)
	}
	at := int64(c.U32())
	if name := im.longName(at, usualName); len(name) < usualName {
		return name
	}
	return im.longName(at, maxString)
}

const usualName = 256
