package pdb

import (
	"sort"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Kinds of C13 subsections (cvinfo.h, DEBUG_S_*).
const (
	c13Lines        = 0xF2
	c13Checksums    = 0xF4
	c13InlineeLines = 0xF6
	c13Imports      = 0xF7
	c13Exports      = 0xF8
	c13Ignore       = 1 << 31 // the subsection is to be ignored
)

// Line numbers that stand for "no source line": the debugger is to step onto, or
// never to step into, such code.
const (
	lineAlwaysStep = 0xFEEFEE
	lineNeverStep  = 0xF00F00
)

const (
	linesHeader     = 12 // offset, section, flags, size of the code
	lineBlockHeader = 12 // file, number of lines, size in bytes
	lineSize        = 8  // offset, line and flags
	columnSize      = 4
	linesHasColumns = 1
)

// lineTable says where a module's C13 subsections are.
type lineTable struct {
	code      intervals // record is the offset of a lines subsection's header
	checksums part
	inlinees  []part
	imports   []part
	exports   []part
	inlinee   func() []inlineeLine
}

// position is a place in source text. Zero fields are not known.
type position struct {
	file   string
	line   uint32
	column uint16
}

// indexLines notes where each subsection of a module's line information is.
func (f *File) indexLines(m *module, name string) error {
	c := cursor.New(m.c13, "lines of "+name, -1)
	for c.Left() >= 8 {
		kind, size := c.U32(), int(c.U32())
		at := c.Offset()
		sub := c.Sub(size)
		if c.Err() != nil {
			break
		}
		p := part{int64(at), int64(size)}
		switch kind {
		case c13Lines:
			offset, section := sub.U32(), sub.U16()
			sub.U16()
			length := sub.U32()
			if rva, ok := f.sourceRVA(section, offset); ok && sub.Err() == nil && rva+length > rva {
				m.lines.code = append(m.lines.code, interval{start: rva, end: rva + length, record: uint32(at)})
			}
		case c13Checksums:
			m.lines.checksums = p
		case c13InlineeLines:
			m.lines.inlinees = append(m.lines.inlinees, p)
		case c13Imports:
			m.lines.imports = append(m.lines.imports, p)
		case c13Exports:
			m.lines.exports = append(m.lines.exports, p)
		}
		align4(c)
	}
	m.lines.code = sortIntervals(m.lines.code)
	m.lines.inlinee = sync.OnceValue(m.readInlineeLines)
	return c.Err()
}

// c13Part returns a cursor over a subsection.
func (m *module) c13Part(p part) *cursor.Cursor {
	c := cursor.New(m.c13, "lines", -1)
	c.Seek(int(p.off))
	return c.Sub(int(p.size))
}

// line returns the source position of an address of the image as linked.
func (f *File) line(m *module, rva uint32) (position, bool) {
	v, ok := m.lines.code.innermost(rva)
	if !ok {
		return position{}, false
	}
	c := cursor.New(m.c13, "lines", -1)
	c.Seek(int(v.record) - 4)
	size := c.U32()
	c = c.Sub(int(size))
	row, ok := findLine(c, rva-v.start)
	if !ok || row.line == 0 || row.line == lineAlwaysStep || row.line == lineNeverStep {
		return position{}, false
	}
	return position{f.fileName(m, row.file), row.line, row.column}, true
}

// lineRow is a row of a line table.
type lineRow struct {
	offset uint32 // from the start of the code that the subsection describes
	file   uint32 // offset in the checksums
	line   uint32
	column uint16
}

// findLine finds the last row at or below an offset in a lines subsection. Each
// block holds the rows of one file, by offset; blocks may interleave.
func findLine(c *cursor.Cursor, offset uint32) (lineRow, bool) {
	c.Skip(6)
	hasColumns := c.U16()&linesHasColumns != 0
	c.U32()
	var best lineRow
	found := false
	for c.Left() >= lineBlockHeader {
		file, count, size := c.U32(), c.U32(), c.U32()
		if size < lineBlockHeader {
			break
		}
		block := c.Sub(int(min(int64(size)-lineBlockHeader, int64(c.Left()))))
		row, ok := findLineInBlock(block, count, hasColumns, offset)
		if ok && (!found || row.offset >= best.offset) {
			row.file = file
			best, found = row, true
		}
	}
	return best, found
}

func findLineInBlock(c *cursor.Cursor, count uint32, hasColumns bool, offset uint32) (lineRow, bool) {
	each := lineSize
	if hasColumns {
		each += columnSize
	}
	n, _ := c.Count(uint64(count), each)
	at := func(i int) uint32 {
		c.Seek(i * lineSize)
		return c.U32()
	}
	i := sort.Search(n, func(i int) bool { return at(i) > offset }) - 1
	if i < 0 {
		return lineRow{}, false
	}
	row := lineRow{offset: at(i), line: c.U32() & 0xFFFFFF}
	if hasColumns {
		c.Seek(n*lineSize + i*columnSize)
		row.column = c.U16()
	}
	return row, c.Err() == nil
}

// fileName returns the name of a file by the offset of its checksum entry, ""
// when it is not known.
func (f *File) fileName(m *module, id uint32) string {
	c := m.c13Part(m.lines.checksums)
	if int64(id) >= int64(c.Len()) {
		return ""
	}
	c.Seek(int(id))
	off := c.U32()
	if c.Err() != nil {
		return ""
	}
	name, ok := f.names().at(off)
	if !ok {
		f.note(dump.Errorf(dump.OutOfRange, "/names", "has no file name at %#x", off))
	}
	return name
}
