package pdata

import (
	"encoding/binary"

	"dumptriage/dump"
)

// ExceptionDirectory returns where the headers say that the image's function
// table is: its RVA and its size in bytes, zeros when they name none.
func (im *Image) ExceptionDirectory() (rva, size uint32) {
	d := im.h.dirs[dirException]
	return d.rva, d.size
}

// ExportName returns the name that the image's export directory gives it, ""
// when there is none.
func (im *Image) ExportName() string {
	const nameField = 12
	d := im.h.dirs[dirExport]
	var b [4]byte
	if d.rva == 0 {
		return ""
	}
	if _, err := im.layout.read(b[:], d.rva+nameField); err != nil {
		return ""
	}
	return im.exportName(binary.LittleEndian.Uint32(b[:]))
}

// OpenHeaderless opens an x64 image in memory whose header page is not there or
// has been wiped, by what is known from elsewhere: its size, and the RVA and size
// of its function table. What lies between the table's first function and its
// last is taken for code.
func OpenHeaderless(mem dump.Memory, base uint64, size, tableRVA, tableSize uint32, name string) (*Image, error) {
	h := headers{ntHeaders: ntHeaders{id: Identity{Machine: machineAMD64, SizeOfImage: size}}}
	h.dirs[dirException] = directory{tableRVA, tableSize}
	im := newImage(h, name)
	l := &mappedLayout{mem, base, size}
	im.layout = l
	code, err := im.table().extent(l)
	if err != nil {
		return nil, withFile(err, name)
	}
	im.code = []codeRange{code}
	return im, nil
}

// extent returns the range from the first function's begin to the last's end.
// Every entry of the first and the last block must lie within the image: bytes
// that are no function table have others.
func (t *functionTable) extent(l *mappedLayout) (codeRange, error) {
	entries := t.sorted
	switch {
	case t.err != nil:
		return codeRange{}, t.err
	case len(t.blocks) > 0:
		for _, i := range []int{0, len(t.blocks) - 1} {
			b, err := t.load(l, i)
			if err != nil {
				return codeRange{}, err
			}
			entries = append(entries, b.entries[:b.n]...)
		}
	case len(entries) == 0:
		return codeRange{}, tableError(dump.BadRecord, t.rva, t.size, "has no entries")
	}
	size := l.size
	for _, rf := range entries {
		if rf.Begin >= rf.End || rf.End > size || rf.UnwindInfo >= size {
			return codeRange{}, tableError(dump.BadRecord, t.rva, t.size, "has entries that lie outside the image")
		}
	}
	return codeRange{entries[0].Begin, entries[len(entries)-1].End}, nil
}
