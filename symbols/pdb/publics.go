package pdb

import (
	"encoding/binary"
	"iter"
	"sort"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Public is a public symbol: a name that the linker saw.
type Public struct {
	Name     string // mangled
	RVA      uint32 // in the image as loaded
	Code     bool   // lies in code
	Function bool   // names a function
}

const (
	publicsHeader  = 28
	publicCode     = 1 << 0
	publicFunction = 1 << 1
	maxRecord      = 1<<16 + 2 // a symbol record with its length
)

// publicTable finds public symbols through the address map: offsets of symbol
// records, sorted by section and offset.
type publicTable struct {
	records *Stream
	order   []byte          // the address map, four bytes an entry
	keys    []atomic.Uint64 // section and offset of entries looked at so far, plus one
}

func (f *File) openPublics() *publicTable {
	t, err := f.readPublics()
	f.note(err)
	if t == nil {
		t = &publicTable{}
	}
	return t
}

func (f *File) readPublics() (*publicTable, error) {
	if f.dbi.publics == noStream || f.dbi.symRecords == noStream {
		return nil, nil
	}
	s, err := f.msf.Stream(int(f.dbi.publics))
	if err != nil {
		return nil, err
	}
	records, err := f.msf.Stream(int(f.dbi.symRecords))
	if err != nil {
		return nil, err
	}
	c, err := s.cursor(0, min(s.size, publicsHeader), "publics")
	if err != nil {
		return nil, err
	}
	hash, size := int64(c.U32()), int64(c.U32())
	if err := c.Err(); err != nil {
		return nil, err
	}
	t := &publicTable{records: records}
	have := min(size, max(s.size-publicsHeader-hash, 0)) &^ 3
	if have < size {
		err = dump.Errorf(dump.Truncated, "publics", "the address map claims %d bytes, %d are there", size, have)
	}
	if have > 0 {
		order, rerr := s.bytes(publicsHeader+hash, have)
		if rerr != nil {
			return nil, rerr
		}
		t.order, t.keys = order, make([]atomic.Uint64, have/4)
	}
	return t, err
}

func (t *publicTable) recordOffset(i int) int64 {
	return int64(binary.LittleEndian.Uint32(t.order[i*4:]))
}

// publicRecord is S_PUB32 without its name.
type publicRecord struct {
	flags, offset uint32
	section       uint16
}

const publicFixed = 4 + 10 // length, kind, flags, offset, section

func (t *publicTable) fixed(off int64) (r publicRecord, size int64, ok bool) {
	var buf [publicFixed]byte
	if n, _ := t.records.ReadAt(buf[:], off); n < len(buf) {
		return r, 0, false
	}
	c := cursor.New(buf[:], "publics", -1)
	size = 2 + int64(c.U16())
	if symbolKind(c.U16()) != symPublic || size < publicFixed {
		return r, 0, false
	}
	r.flags, r.offset, r.section = c.U32(), c.U32(), c.U16()
	return r, size, true
}

// key returns section and offset of an entry as one number that sorts. A bad
// record sorts last.
func (t *publicTable) key(i int) uint64 {
	if k := t.keys[i].Load(); k != 0 {
		return k - 1
	}
	k := ^uint64(0) - 1
	if r, _, ok := t.fixed(t.recordOffset(i)); ok {
		k = uint64(r.section)<<32 | uint64(r.offset)
	}
	t.keys[i].Store(k + 1)
	return k
}

func (t *publicTable) name(off, size int64) string {
	s, _ := readCString(t.records, off+publicFixed, off+size)
	return s
}

// lookupPublic takes the public symbol at or below an address. It must lie in
// the same contribution: what another object file contributed does not reach
// here. Where the contributions do not know the address, the same section does.
// It comes before a label, as it does for other debuggers: labels are places inside
// a function of assembler, whose name is public. Only where the public symbol's
// function is known to have ended the label stays.
func (f *File) lookupPublic(loc *Location, rva uint32, piece contribution, known bool) {
	section, offset, ok := f.sectionOf(rva)
	if !ok {
		return
	}
	t := f.publics()
	want := uint64(section)<<32 | uint64(offset)
	i := sort.Search(len(t.order)/4, func(i int) bool { return t.key(i) > want }) - 1
	if i < 0 || t.key(i)>>32 != uint64(section) {
		return
	}
	start, ok := f.sourceRVA(section, uint32(t.key(i)))
	if !ok || known && start < piece.rva || loc.Source == SourceLabel && f.covered(piece, start) {
		return
	}
	best := t.preferred(i)
	if r, size, ok := t.fixed(t.recordOffset(best)); ok && r.section == section {
		loc.Function, loc.FunctionRVA, loc.Size, loc.Source = t.name(t.recordOffset(best), size), start, 0, SourcePublic
		loc.SamePiece = known
	}
}

// covered reports whether a record tells how far the code at an address reaches.
func (f *File) covered(piece contribution, rva uint32) bool {
	m := f.module(int(piece.module))
	if m == nil {
		return false
	}
	_, ok := m.code.innermost(rva)
	return ok
}

// preferred picks among the symbols at one address (folded functions, aliases)
// the first that names a function, else the first.
func (t *publicTable) preferred(i int) int {
	const maxAliases = 1 << 12
	first := i
	for n := 0; first > 0 && n < maxAliases && t.key(first-1) == t.key(i); n++ {
		first--
	}
	for k := first; k <= i; k++ {
		if r, _, ok := t.fixed(t.recordOffset(k)); ok && r.flags&publicFunction != 0 {
			return k
		}
	}
	return first
}

// Publics iterates over the public symbols by section and offset. Symbols whose
// address is not in the image are left out.
func (f *File) Publics() iter.Seq[Public] {
	return func(yield func(Public) bool) {
		t := f.publics()
		for i := range len(t.order) / 4 {
			off := t.recordOffset(i)
			r, size, ok := t.fixed(off)
			if !ok {
				f.note(dump.Errorf(dump.BadRecord, "publics", "entry %d of the address map leads to no public symbol", i))
				continue
			}
			rva, ok := f.sourceRVA(r.section, r.offset)
			if ok {
				rva, ok = f.FromSource(rva)
			}
			if !ok {
				continue
			}
			if !yield(Public{t.name(off, size), rva, r.flags&publicCode != 0, r.flags&publicFunction != 0}) {
				return
			}
		}
	}
}
