package dwarf

import (
	"dumptriage/internal/cursor"
)

const maxLink = 4096

// Link returns what .gnu_debuglink says: the name of the file that holds the debug
// information, and the CRC-32 of its content.
func (f *File) Link() (name string, sum uint32, ok bool) {
	s := f.im.find(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	c := cursor.At(f.im.r, f.im.size, s.off, min(s.size, maxLink), s.name)
	name = c.StringZ()
	c.Seek((c.Offset() + 3) &^ 3)
	sum = c.U32()
	return name, sum, c.Err() == nil && name != ""
}
