package dwarf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	// maxWhole caps the sections that are read as a whole: abbreviations, range
	// lists and the like, which are small beside .debug_info.
	maxWhole = 256 << 20
	// maxUnpacked caps what a compressed section unfolds to, and so does maxRatio:
	// debug information shrinks to a third, a tenth at best.
	maxUnpacked = 512 << 20
	maxRatio    = 64
	// maxString caps the name of one function; those of C++ templates are long.
	maxString = 64 << 10
)

// section is one DWARF section: a part of the file, or bytes that were unpacked.
type section struct {
	name  string
	r     io.ReaderAt
	off   int64 // in r
	size  int64
	whole []byte // once it was read as a whole
}

// openSection finds a section, plain or in the compressed form that Go's linker
// writes: ".zdebug_info", "ZLIB", the size in eight bytes, a zlib stream.
func (im *image) openSection(name string) (*section, error) {
	if s := im.find("." + name); s != nil {
		return &section{name: "." + name, r: im.r, off: s.off, size: s.size}, nil
	}
	s := im.find(".z" + name)
	if s == nil {
		return &section{name: "." + name}, nil
	}
	b, err := unpack(io.NewSectionReader(im.r, s.off, s.size), s.size)
	if err != nil {
		return &section{name: s.name}, &dump.Error{Code: dump.BadRecord, Stream: s.name, Offset: s.off, Size: s.size, Msg: "cannot be unpacked", Err: err}
	}
	return &section{name: s.name, r: bytes.NewReader(b), size: int64(len(b)), whole: b}, nil
}

// unpack returns what came out before an error too.
func unpack(r io.Reader, size int64) ([]byte, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if string(head[:4]) != "ZLIB" {
		return nil, dump.Errorf(dump.BadRecord, "", "does not begin with ZLIB")
	}
	claimed := binary.BigEndian.Uint64(head[4:])
	if claimed > maxUnpacked || claimed > uint64(size)*maxRatio {
		return nil, dump.Errorf(dump.Limit, "", "%d bytes claim to unfold to %d", size, claimed)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(z, int64(claimed)))
	return out.Bytes(), err
}

// at returns a cursor over up to n bytes from an offset on.
func (s *section) at(off uint64, n int64) *cursor.Cursor {
	if off > uint64(s.size) {
		c := cursor.New(nil, s.name, -1)
		c.Fail(dump.OutOfRange, "offset %#x lies beyond its %#x bytes", off, s.size)
		return c
	}
	n = min(n, s.size-int64(off))
	if s.whole != nil {
		c := cursor.New(s.whole, s.name, s.off)
		c.Seek(int(off))
		return c.Sub(int(n))
	}
	if s.r == nil {
		return cursor.New(nil, s.name, -1)
	}
	return cursor.At(s.r, s.off+s.size, s.off+int64(off), n, s.name)
}

// from returns a cursor from an offset to the end of a section that is small
// enough to be kept in memory.
func (s *section) from(off uint64) *cursor.Cursor {
	if s.whole == nil && s.r != nil {
		if s.size > maxWhole {
			c := cursor.New(nil, s.name, -1)
			c.Fail(dump.Limit, "has %d bytes, more than are read", s.size)
			return c
		}
		c := s.at(0, s.size)
		s.whole = c.Bytes(c.Left())
		if s.whole == nil {
			return c
		}
	}
	return s.at(off, s.size)
}

// string reads a string, "" when there is none.
func (s *section) string(off uint64) string {
	const usual = 256
	for n := int64(usual); ; n = maxString {
		c := s.at(off, n)
		b := c.Bytes(c.Left())
		if i := bytes.IndexByte(b, 0); i >= 0 || n == maxString {
			return cursor.CString(b)
		}
	}
}
