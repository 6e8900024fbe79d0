package cursor

import (
	"bytes"

	"dumptriage/dump"
)

// maxLEB128 is how many bytes a 64-bit number takes in LEB128.
const maxLEB128 = 10

// ULEB128 reads an unsigned number of up to 64 bits, seven to a byte.
func (c *Cursor) ULEB128() uint64 {
	v, _, _ := c.leb128()
	return v
}

// SLEB128 reads a signed number of up to 64 bits, seven to a byte.
func (c *Cursor) SLEB128() int64 {
	v, last, bits := c.leb128()
	if last&0x40 != 0 && bits < 64 {
		v |= ^uint64(0) << bits
	}
	return int64(v)
}

// leb128 returns the bits, the last byte, and how many bits were read. What does
// not fit into 64 bits is dropped.
func (c *Cursor) leb128() (v uint64, last byte, bits uint) {
	for n := 0; ; n++ {
		if n == maxLEB128 {
			c.Fail(dump.BadRecord, "LEB128 number of more than %d bytes", maxLEB128)
			return 0, 0, 0
		}
		last = c.U8()
		if c.err != nil {
			return 0, 0, 0
		}
		v |= uint64(last&0x7f) << bits
		bits += 7
		if last < 0x80 {
			return v, last, bits
		}
	}
}

// StringZ reads a string up to its NUL, and the NUL.
func (c *Cursor) StringZ() string {
	if c.err != nil {
		return ""
	}
	n := bytes.IndexByte(c.b[c.off:], 0)
	if n < 0 {
		c.Fail(dump.Truncated, "string without an end")
		return ""
	}
	s := string(c.b[c.off : c.off+n])
	c.off += n + 1
	return s
}

// SkipZ moves behind a string's NUL.
func (c *Cursor) SkipZ() {
	if c.err != nil {
		return
	}
	n := bytes.IndexByte(c.b[c.off:], 0)
	if n < 0 {
		c.Fail(dump.Truncated, "string without an end")
		return
	}
	c.off += n + 1
}
