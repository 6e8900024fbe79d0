package dwarf

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxUnits   = 1 << 17
	maxHeader  = 64      // bytes of a unit's header and more
	usualRoot  = 4 << 10 // bytes that hold the header and the first entry
	maxRoot    = 256 << 10
	maxUnit    = 256 << 20
	maxOverlap = 64 // units or functions at one address that are looked at
	// Unit types of version 5.
	unitCompile = 1
	unitPartial = 3
)

// unit is the header of a unit and what its first entry says: the compilation of
// one source file.
type unit struct {
	encoding
	off, end uint64 // in .debug_info, with the header
	first    uint64 // of the first entry
	abbrev   uint64
	lines    value
	compDir  value
	low      uint64 // what range lists count from
	// Where this unit's part of the indexed sections begins.
	strBase, addrBase, rangesBase uint64
}

// span is a run of addresses and what it belongs to.
type span struct {
	begin, end uint64
	index      int32
}

// spans finds by address.
type spans struct {
	list  []span   // by begin
	reach []uint64 // the highest end in list[0..i]
}

func (s *spans) sort() {
	slices.SortStableFunc(s.list, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	s.reach = make([]uint64, len(s.list))
	var reach uint64
	for i := range s.list {
		reach = max(reach, s.list[i].end)
		s.reach[i] = reach
	}
}

// each calls visit for what covers an address, the nearest beginning first, until
// it returns false.
func (s *spans) each(pc uint64, visit func(span) bool) {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].begin > pc })
	for n := 0; i > 0 && s.reach[i-1] > pc && n < maxOverlap; n++ {
		i--
		if s.list[i].end > pc && !visit(s.list[i]) {
			return
		}
	}
}

// index lists the units and the addresses they cover.
func (f *File) index() {
	for off := uint64(0); off < uint64(f.info.size); {
		if len(f.units) >= maxUnits || !f.spend(1) {
			f.note(dump.Errorf(dump.Limit, f.info.name, "more units than are read"))
			break
		}
		u, err := f.readHeader(off)
		if err != nil {
			f.note(err)
			break // where the next one begins is not known
		}
		off = u.end
		if u.first == 0 { // holds types, or stands for another file
			continue
		}
		f.units = append(f.units, u)
		if err := f.readRoot(&f.units[len(f.units)-1], int32(len(f.units)-1)); err != nil {
			f.note(err)
		}
	}
	f.byAddr.sort()
}

// readHeader reads a unit's header. Units other than those of code have no first
// entry then.
func (f *File) readHeader(off uint64) (u unit, err error) {
	c := f.info.at(off, maxHeader)
	u.off = off
	length := uint64(c.U32())
	if u.wide = length == 0xffffffff; u.wide {
		length = c.U64()
	}
	if c.Err() == nil && length > uint64(f.info.size)-off-uint64(c.Offset()) {
		c.Fail(dump.Truncated, "a unit of %d bytes, %d left", length, uint64(f.info.size)-off-uint64(c.Offset()))
	}
	u.end = off + uint64(c.Offset()) + length
	u.version = c.U16()
	if c.Err() != nil {
		return u, c.Err()
	}
	kind := uint8(unitCompile)
	if u.version >= 5 {
		kind = c.U8()
		u.addrSize = int(c.U8())
		u.abbrev = u.offset(c)
	} else {
		u.abbrev = u.offset(c)
		u.addrSize = int(c.U8())
	}
	if u.version < 2 || u.version > 5 {
		f.note(dump.Errorf(dump.UnsupportedFormat, f.info.name, "a unit of version %d", u.version))
		return u, nil
	}
	if c.Err() == nil && kind != unitCompile && kind != unitPartial {
		return u, nil
	}
	if u.addrSize != 4 && u.addrSize != 8 {
		c.Fail(dump.BadRecord, "a unit with addresses of %d bytes", u.addrSize)
	}
	u.first = off + uint64(c.Offset())
	return u, c.Err()
}

// readRoot reads the first entry of a unit.
func (f *File) readRoot(u *unit, index int32) error {
	for n := int64(usualRoot); ; n = maxRoot {
		c := f.info.at(u.off, min(n, int64(u.end-u.off)))
		c.Seek(int(u.first - u.off))
		low, high, ranges, err := f.readRootEntry(u, c)
		if err != nil && n < maxRoot {
			continue // a long name
		}
		if err != nil {
			return err
		}
		list, err := f.extent(u, low, high, ranges)
		if len(f.byAddr.list)+len(list) > most(f.info.size+f.ranges.size+f.rnglists.size) {
			return dump.Errorf(dump.Limit, f.info.name, "units with more ranges than are read")
		}
		for _, s := range list {
			f.byAddr.list = append(f.byAddr.list, span{s.begin, s.end, index})
		}
		return err
	}
}

func (f *File) readRootEntry(u *unit, c *cursor.Cursor) (low, high, ranges value, err error) {
	code := c.ULEB128()
	if c.Err() != nil {
		return low, high, ranges, c.Err()
	}
	a, err := f.rootAbbrev(u.abbrev, code)
	if err != nil {
		return low, high, ranges, err
	}
	for _, at := range a.attrs {
		v := u.read(c, at.form, at.implicit)
		switch at.name {
		case dwarf.AttrLowpc:
			low = v
		case dwarf.AttrHighpc:
			high = v
		case dwarf.AttrRanges:
			ranges = v
		case dwarf.AttrStmtList:
			u.lines = v
		case dwarf.AttrCompDir:
			u.compDir = v
		case dwarf.AttrStrOffsetsBase:
			u.strBase = v.u
		case dwarf.AttrAddrBase:
			u.addrBase = v.u
		case dwarf.AttrRnglistsBase:
			u.rangesBase = v.u
		}
	}
	if c.Err() == nil && low.there() {
		u.low, _ = f.address(u, low)
	}
	return low, high, ranges, c.Err()
}

// unitAt finds the unit that holds an offset in .debug_info.
func (f *File) unitAt(off uint64) (int32, bool) {
	i := sort.Search(len(f.units), func(i int) bool { return f.units[i].end > off })
	if i == len(f.units) || off < f.units[i].first {
		return 0, false
	}
	return int32(i), true
}
