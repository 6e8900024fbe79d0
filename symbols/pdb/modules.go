package pdb

import (
	"dumptriage/internal/cursor"
)

// Module is an object file that went into the image.
type Module struct {
	Name   string // object file, or "* Linker *", "Import:KERNEL32.dll" ...
	Object string // the archive that it came from, or the object file again
}

const (
	moduleFixed = 64      // bytes of a module record before its names
	maxModules  = 1 << 16 // a contribution names its module with 16 bits
)

// moduleTable is the module substream with the place of each record.
type moduleTable struct {
	raw []byte
	at  []uint32
}

// moduleHeader says where a module's symbols and lines are.
type moduleHeader struct {
	stream   uint16
	symBytes uint32 // signature and symbols
	c11Bytes uint32 // lines in the format of VC 6
	c13Bytes uint32
	name     string
	object   string
}

func (f *File) readModules() *moduleTable {
	t := &moduleTable{}
	if f.dbi.s == nil {
		return t
	}
	p := f.dbi.modules
	raw, err := f.dbi.s.bytes(p.off, p.size)
	if err != nil {
		f.note(err)
		return t
	}
	t.raw = raw
	c := cursor.New(raw, "DBI modules", -1)
	for c.Left() > 0 && len(t.at) < maxModules {
		at := c.Offset()
		c.Skip(moduleFixed)
		cstring(c)
		cstring(c)
		if c.Err() != nil {
			f.note(c.Err())
			break
		}
		t.at = append(t.at, uint32(at))
		align4(c)
	}
	return t
}

// streamAt is where a module record has the number of the module's stream.
const streamAt = 4 + 28 + 2

// stream returns the number of a module's stream.
func (t *moduleTable) stream(i int) (uint16, bool) {
	if i < 0 || i >= len(t.at) {
		return 0, false
	}
	c := cursor.New(t.raw, "DBI modules", -1)
	c.Seek(int(t.at[i]) + streamAt)
	return c.U16(), c.Err() == nil
}

// header decodes one module record.
func (t *moduleTable) header(i int) (moduleHeader, bool) {
	if i < 0 || i >= len(t.at) {
		return moduleHeader{}, false
	}
	c := cursor.New(t.raw, "DBI modules", -1)
	c.Seek(int(t.at[i]))
	c.Skip(streamAt)
	h := moduleHeader{stream: c.U16(), symBytes: c.U32(), c11Bytes: c.U32(), c13Bytes: c.U32()}
	c.Skip(16)
	h.name, h.object = cstring(c), cstring(c)
	return h, c.Err() == nil
}

// Modules returns the object files of the image in the file's order.
func (f *File) Modules() []Module {
	t := f.modules()
	out := make([]Module, 0, len(t.at))
	for i := range t.at {
		h, _ := t.header(i)
		out = append(out, Module{h.name, h.object})
	}
	return out
}
