package pdb

import (
	"slices"
	"sort"
)

// omapEntry maps the addresses from from up to the next entry's. To is 0 where
// they have no counterpart.
type omapEntry struct{ from, to uint32 }

// omapTables translate between the image as linked (source) and as loaded.
type omapTables struct{ toSource, fromSource []omapEntry }

const omapEntrySize = 8

func (f *File) readOMAP() *omapTables {
	return &omapTables{toSource: f.omapStream(debugOmapToSource), fromSource: f.omapStream(debugOmapFromSource)}
}

func (f *File) omapStream(i int) []omapEntry {
	s := f.debugStream(i)
	if s == nil {
		return nil
	}
	c, err := s.cursor(0, s.size, "OMAP")
	if err != nil {
		f.note(err)
		return nil
	}
	out := make([]omapEntry, c.Left()/omapEntrySize)
	for i := range out {
		out[i] = omapEntry{c.U32(), c.U32()}
	}
	byFrom := func(a, b omapEntry) int { return int(int64(a.from) - int64(b.from)) }
	if !slices.IsSortedFunc(out, byFrom) {
		slices.SortStableFunc(out, byFrom)
	}
	return out
}

// translate maps an address. Without a table the address is its own image.
func translate(table []omapEntry, rva uint32) (uint32, bool) {
	if len(table) == 0 {
		return rva, true
	}
	i := sort.Search(len(table), func(i int) bool { return table[i].from > rva }) - 1
	if i < 0 || table[i].to == 0 {
		return 0, false
	}
	to := table[i].to + (rva - table[i].from)
	return to, to >= table[i].to
}

// Rearranged reports whether the image was rearranged after it was linked.
func (f *File) Rearranged() bool {
	return f.dbi.debug[debugOmapToSource] != noStream || f.dbi.debug[debugOmapFromSource] != noStream
}

// ToSource translates an address of the image as loaded to the image as linked,
// in which the PDB's records are. False says that it has no counterpart: the
// code was added when the image was rearranged.
func (f *File) ToSource(rva uint32) (uint32, bool) { return translate(f.omap().toSource, rva) }

// FromSource translates an address of the image as linked to the image as
// loaded. False says that the code was dropped.
func (f *File) FromSource(rva uint32) (uint32, bool) { return translate(f.omap().fromSource, rva) }
