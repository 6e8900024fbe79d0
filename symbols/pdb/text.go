package pdb

import (
	"bytes"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// cstring reads a NUL-terminated string and moves past it.
func cstring(c *cursor.Cursor) string {
	at := c.Offset()
	b := c.Bytes(c.Left())
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		c.Fail(dump.Truncated, "a string has no end")
		return ""
	}
	c.Seek(at + i + 1)
	return string(b[:i])
}

// align4 moves on to a multiple of four, or to the end.
func align4(c *cursor.Cursor) {
	c.Skip(min(-c.Offset()&3, c.Left()))
}
