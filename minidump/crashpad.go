package minidump

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// GUID is a UUID in the byte order of Windows files.
type GUID [16]byte

// String formats the GUID in lower case with dashes.
func (g GUID) String() string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(g[0:]), binary.LittleEndian.Uint16(g[4:]), binary.LittleEndian.Uint16(g[6:]), g[8:10], g[10:])
}

// Crashpad is the CrashpadInfo stream (Crashpad's MinidumpCrashpadInfo).
type Crashpad struct {
	Version     uint32
	ReportID    GUID
	ClientID    GUID
	Annotations []Annotation // of the process
	Modules     []CrashpadModule
}

// Annotation is a name with a value.
type Annotation struct {
	Name, Value string
	Type        uint16 // of annotation objects: 1 is a string; other types keep their bytes in Value
}

// CrashpadModule holds the annotations that one module gave.
type CrashpadModule struct {
	Index   uint32       // into ModuleList
	List    []string     // texts without a name
	Simple  []Annotation // Crashpad's simple annotations
	Objects []Annotation // Crashpad's annotation objects
}

const (
	crashpadDictionaryEntry = 8
	crashpadLink            = 12
	crashpadObject          = 12
	maxAnnotations          = 1 << 16 // in sum
)

// Crashpad returns the CrashpadInfo stream.
func (f *File) Crashpad() (*Crashpad, error) { return f.crashpad.get(f, (*File).decodeCrashpad) }

func (f *File) decodeCrashpad() (*Crashpad, *dump.Error) {
	c, fs := f.open(StreamCrashpadInfo, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	out := &Crashpad{Version: c.U32()}
	copy(out.ReportID[:], c.Bytes(16))
	copy(out.ClientID[:], c.Bytes(16))
	simple, modules := location(c), location(c)
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	r := annotationReader{text: f.texts(fs), left: maxAnnotations}
	out.Annotations = r.dictionary(simple)
	out.Modules = r.modules(modules)
	return out, fs.done()
}

// location reads a MINIDUMP_LOCATION_DESCRIPTOR.
func location(c *cursor.Cursor) Location {
	l := Location{Size: int64(c.U32())}
	l.Offset = int64(c.U32())
	return l
}

// annotationReader reads Crashpad's nested lists. A hostile file can let them
// overlap, so their number is limited in sum.
type annotationReader struct {
	text *texts
	left int
}

// list reads a count and returns a cursor over that many records.
func (r *annotationReader) list(at Location, size int) (*cursor.Cursor, int) {
	if at.Size < 4 {
		return nil, 0
	}
	data := r.text.blob(at.Offset, int(min(at.Size, 4+int64(r.left)*int64(size))), "an annotation list")
	c := cursor.New(bytes.Clone(data), r.text.fs.stream, at.Offset)
	n := c.U32()
	if c.Err() != nil {
		return nil, 0
	}
	k := r.text.fs.count(c, uint64(n), size, r.left)
	r.left -= k
	return c, k
}

func (r *annotationReader) dictionary(at Location) []Annotation {
	c, n := r.list(at, crashpadDictionaryEntry)
	out := make([]Annotation, 0, n)
	for range n {
		name, value := int64(c.U32()), int64(c.U32())
		out = append(out, Annotation{Name: r.text.utf8(name, "an annotation's name"), Value: r.text.utf8(value, "an annotation's value")})
	}
	return out
}

func (r *annotationReader) modules(at Location) []CrashpadModule {
	c, n := r.list(at, crashpadLink)
	out := make([]CrashpadModule, 0, n)
	for range n {
		m := CrashpadModule{Index: c.U32()}
		r.module(&m, location(c))
		out = append(out, m)
	}
	return out
}

// module reads a MinidumpModuleCrashpadInfo. Versions before annotation objects
// end before their location.
func (r *annotationReader) module(m *CrashpadModule, at Location) {
	c := cursor.New(r.text.blob(at.Offset, int(min(at.Size, 28)), "a module's annotations"), r.text.fs.stream, at.Offset)
	c.Skip(4)
	list, simple := location(c), location(c)
	if c.Err() != nil {
		if at.Size > 0 {
			r.text.fs.add(c.Err())
		}
		return
	}
	objects := location(c)
	hasObjects := c.Err() == nil
	entries, n := r.list(list, 4)
	for range n {
		m.List = append(m.List, r.text.utf8(int64(entries.U32()), "an annotation"))
	}
	m.Simple = r.dictionary(simple)
	if hasObjects {
		m.Objects = r.objects(objects)
	}
}

func (r *annotationReader) objects(at Location) []Annotation {
	c, n := r.list(at, crashpadObject)
	out := make([]Annotation, 0, n)
	for range n {
		name := int64(c.U32())
		a := Annotation{Name: r.text.utf8(name, "an annotation's name"), Type: c.U16()}
		c.Skip(2)
		if value := int64(c.U32()); value != 0 {
			a.Value = string(r.text.sized(value, "an annotation's value"))
		}
		out = append(out, a)
	}
	return out
}
