// Package cursor reads fixed-layout little-endian records from bytes or from a
// file without ever reading past their end.
//
// A Cursor has a sticky error: after the first failed read every further read
// returns zero and moves nothing, so a parser reads straight through a record
// and checks once. The bytes are untrusted; offsets and lengths are checked
// without overflow. Formats are read through it; what the parsers slice
// themselves is only what it has handed out.
package cursor

import (
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"

	"dumptriage/dump"
)

// Cursor walks over bytes that were read from Base in a file.
type Cursor struct {
	b      []byte
	off    int
	base   int64
	stream string
	err    error
}

// New returns a cursor over b. Stream and base (the file offset of b[0], or -1
// where there is none) are for error messages.
func New(b []byte, stream string, base int64) *Cursor {
	return &Cursor{b: b, base: base, stream: stream}
}

// At reads size bytes of r at off and returns a cursor over them. The size is
// clamped to what the file holds: a short read gives a cursor over the bytes
// there are, and the reads past them fail. It allocates no more than the file
// holds.
func At(r io.ReaderAt, fileSize, off, size int64, stream string) *Cursor {
	c := &Cursor{base: off, stream: stream}
	if off < 0 || off > fileSize {
		c.err = &dump.Error{Code: dump.OutOfRange, Stream: stream, Offset: off, Size: size, Msg: fmt.Sprintf("begins beyond the end of the file (%#x bytes)", fileSize)}
		return c
	}
	if size < 0 || size > fileSize-off {
		size = fileSize - off
	}
	c.b = make([]byte, size)
	n, err := r.ReadAt(c.b, off)
	c.b = c.b[:n]
	if err != nil && err != io.EOF {
		c.err = &dump.Error{Code: dump.IO, Stream: stream, Offset: off, Size: size, Msg: "cannot be read", Err: err}
	}
	return c
}

// Err returns the first error.
func (c *Cursor) Err() error { return c.err }

// Offset returns the position within the cursor's bytes.
func (c *Cursor) Offset() int { return c.off }

// FileOffset returns the position in the file, or -1.
func (c *Cursor) FileOffset() int64 {
	if c.base < 0 {
		return -1
	}
	return c.base + int64(c.off)
}

// Left returns how many bytes remain.
func (c *Cursor) Left() int {
	if c.err != nil {
		return 0
	}
	return len(c.b) - c.off
}

// Len returns the number of bytes the cursor was made over.
func (c *Cursor) Len() int { return len(c.b) }

// Seek moves to an offset within the bytes.
func (c *Cursor) Seek(off int) {
	if c.err != nil {
		return
	}
	if off < 0 || off > len(c.b) {
		c.fail(dump.OutOfRange, int64(off), fmt.Sprintf("offset %#x lies outside its %#x bytes", off, len(c.b)))
		return
	}
	c.off = off
}

// Skip moves n bytes on.
func (c *Cursor) Skip(n int) { c.Bytes(n) }

// Fail records an error at the current position unless there is one already.
func (c *Cursor) Fail(code dump.Code, format string, args ...any) {
	c.fail(code, -1, fmt.Sprintf(format, args...))
}

func (c *Cursor) fail(code dump.Code, size int64, msg string) {
	if c.err == nil {
		c.err = &dump.Error{Code: code, Stream: c.stream, Offset: c.FileOffset(), Size: size, Msg: msg}
	}
}

// Bytes returns the next n bytes without copying them, or nil.
func (c *Cursor) Bytes(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.b)-c.off {
		c.fail(dump.Truncated, int64(n), fmt.Sprintf("needs %d bytes, %d left", n, len(c.b)-c.off))
		return nil
	}
	p := c.b[c.off : c.off+n : c.off+n]
	c.off += n
	return p
}

// U8 reads one byte.
func (c *Cursor) U8() uint8 {
	if p := c.Bytes(1); p != nil {
		return p[0]
	}
	return 0
}

// U16 reads a little-endian 16-bit value.
func (c *Cursor) U16() uint16 {
	if p := c.Bytes(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

// U32 reads a little-endian 32-bit value.
func (c *Cursor) U32() uint32 {
	if p := c.Bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

// U64 reads a little-endian 64-bit value.
func (c *Cursor) U64() uint64 {
	if p := c.Bytes(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// Pointer reads a value of 4 or 8 bytes.
func (c *Cursor) Pointer(size int) uint64 {
	if size == 4 {
		return uint64(c.U32())
	}
	return c.U64()
}

// Sub returns a cursor over the next n bytes and moves past them. It is inlined, so
// that a cursor which does not outlive its caller costs no allocation.
func (c *Cursor) Sub(n int) *Cursor {
	s := c.part(n)
	return &s
}

func (c *Cursor) part(n int) Cursor {
	base := c.FileOffset()
	p := c.Bytes(n)
	return Cursor{b: p, base: base, stream: c.stream, err: c.err}
}

// Count checks a count of records of at least size bytes against the bytes
// left and returns how many can really be there. When it had to clamp it
// returns an error for the caller to report beside the records that are there.
func (c *Cursor) Count(n uint64, size int) (int, error) {
	if c.err != nil || size <= 0 {
		return 0, c.err
	}
	if most := uint64(len(c.b)-c.off) / uint64(size); n > most {
		return int(most), &dump.Error{Code: dump.BadCount, Stream: c.stream, Offset: c.FileOffset(), Size: -1,
			Msg: fmt.Sprintf("claims %d records of %d bytes, room for %d", n, size, most)}
	}
	return int(n), nil
}

// UTF16 decodes little-endian UTF-16 bytes up to the first NUL. An odd last
// byte is dropped; unpaired surrogates become U+FFFD.
func UTF16(b []byte) string {
	if s, ok := utf16ASCII(b); ok {
		return s
	}
	u := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		v := binary.LittleEndian.Uint16(b[i:])
		if v == 0 {
			break
		}
		u = append(u, v)
	}
	return string(utf16.Decode(u))
}

// utf16ASCII is UTF16 for the usual case that every character is ASCII.
func utf16ASCII(b []byte) (string, bool) {
	n := 0
	for ; 2*n+1 < len(b); n++ {
		if b[2*n+1] != 0 || b[2*n] >= 0x80 {
			return "", false
		}
		if b[2*n] == 0 {
			break
		}
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = b[2*i]
	}
	return string(out), true
}

// CString returns the bytes up to the first NUL as a string.
func CString(b []byte) string {
	for i, ch := range b {
		if ch == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
