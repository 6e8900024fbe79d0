package metadata

import (
	"bytes"
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
	"dumptriage/internal/cursor"
)

const (
	maxName = 4096    // bytes of a name; II.22 says below 1024, obfuscators write more
	maxBlob = 1 << 16 // bytes of a signature
)

// text reads a name of the #Strings heap: UTF-8 up to a NUL. What is not UTF-8
// becomes U+FFFD.
func (m *Metadata) text(off uint32) (string, error) {
	if off == 0 {
		return "", nil // always the empty string, also without a heap
	}
	left, ok := m.strings.inside(off)
	if !ok {
		return "", outside("#Strings", -1, "offset %#x is not in its %#x bytes", off, m.strings.size)
	}
	var b []byte
	at := m.strings.off + int64(off)
	for left > 0 && len(b) < maxName {
		step := min(left, 64, chunk.Size-at%chunk.Size)
		part, err := m.in.UpTo(at, step, "#Strings")
		if name, _, ended := bytes.Cut(part, []byte{0}); ended {
			return valid(append(b, name...)), nil
		}
		if err != nil {
			return "", err
		}
		b = append(b, part...)
		left -= step
		at += step
	}
	return "", &dump.Error{Code: dump.BadRecord, Stream: "#Strings", Offset: m.strings.off + int64(off), Size: int64(len(b)),
		Msg: fmt.Sprintf("name does not end within %d bytes", len(b))}
}

func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// blob returns a cursor over a blob of the #Blob heap (II.24.2.4).
func (m *Metadata) blob(off uint32) *cursor.Cursor {
	if off == 0 {
		return cursor.New(nil, "#Blob", m.blobs.off)
	}
	left, ok := m.blobs.inside(off)
	if !ok {
		c := cursor.New(nil, "#Blob", -1)
		c.Fail(dump.OutOfRange, "offset %#x is not in its %#x bytes", off, m.blobs.size)
		return c
	}
	at := m.blobs.off + int64(off)
	first, err := m.in.UpTo(at, min(left, 4), "#Blob")
	if len(first) == 0 {
		return failed(err)
	}
	head := cursor.New(first, "#Blob", at)
	size := int64(compressed(head))
	if left -= int64(head.Offset()); size > left || size > maxBlob {
		head.Fail(dump.BadCount, "blob of %d bytes; %d are left in the heap, at most %d are read", size, left, maxBlob)
	}
	if head.Err() != nil {
		return head
	}
	return m.in.At(at+int64(head.Offset()), size, "#Blob")
}

// failed is a cursor that has nothing but an error.
func failed(err error) *cursor.Cursor {
	e := *dump.AsError(err)
	c := cursor.New(nil, e.Stream, e.Offset)
	c.Fail(e.Code, "%s", e.Msg)
	return c
}

// compressed reads an unsigned integer of one, two or four bytes (II.23.2).
func compressed(c *cursor.Cursor) uint32 {
	b := uint32(c.U8())
	switch {
	case b < 0x80:
		return b
	case b < 0xc0:
		return b&0x3f<<8 | uint32(c.U8())
	case b < 0xe0:
		hi := uint32(c.U8())
		mid := uint32(c.U8())
		return b&0x1f<<24 | hi<<16 | mid<<8 | uint32(c.U8())
	}
	c.Fail(dump.BadRecord, "compressed integer begins with %#x", b)
	return 0
}

// GUID is 16 bytes in the order they have in a file.
type GUID [16]byte

// String formats a GUID as "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
func (g GUID) String() string {
	c := cursor.New(g[:], "GUID", -1)
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", c.U32(), c.U16(), c.U16(), c.Bytes(2), c.Bytes(6))
}

// guid reads an entry of the #GUID heap, which counts from 1.
func (m *Metadata) guid(n uint32) (g GUID, err error) {
	if n == 0 || int64(n)*16 > m.guids.size {
		return g, outside("#GUID", -1, "has no entry %d in its %#x bytes", n, m.guids.size)
	}
	c := m.in.At(m.guids.off+int64(n-1)*16, 16, "#GUID")
	copy(g[:], c.Bytes(16))
	return g, c.Err()
}
