package pdb

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Binary annotations of inline sites (cvinfo.h, BA_OP_*).
const (
	annotEnd                      = 0
	annotCodeOffset               = 1
	annotChangeCodeOffsetBase     = 2
	annotChangeCodeOffset         = 3
	annotChangeCodeLength         = 4
	annotChangeFile               = 5
	annotChangeLineOffset         = 6
	annotChangeLineEndDelta       = 7
	annotChangeRangeKind          = 8
	annotChangeColumnStart        = 9
	annotChangeColumnEndDelta     = 10
	annotChangeCodeAndLineOffset  = 11
	annotChangeCodeLengthAndStart = 12
	annotChangeColumnEnd          = 13
)

// annotationRow is a range of code that an inline site covers, with the line
// that it came from. Offsets count from the start of the chunk of code: the
// function's main part is chunk 0, separated parts follow.
type annotationRow struct {
	chunk      uint32
	start, end uint32
	line       int64  // relative to the inlinee's first line
	file       uint32 // offset in the checksums
	hasFile    bool   // false: the inlinee's own file
}

// openEnd is the end of a row that nothing has closed yet.
const openEnd = ^uint32(0)

// decodeAnnotations calls yield for each row until it returns false. A row ends
// where an explicit length says, or else where the next one begins; the last may
// stay open (openEnd). An opcode that is not known ends the walk with an error.
func decodeAnnotations(c *cursor.Cursor, yield func(annotationRow) bool) error {
	var row annotationRow
	open, more := false, true
	emit := func(end uint32) {
		if open && more && end > row.start {
			done := row
			done.end = end
			more = yield(done)
		}
		open = false
	}
	var at, chunk, file uint32
	var line int64
	var hasFile bool
	begin := func(delta uint32) {
		at += delta
		emit(at)
		row, open = annotationRow{chunk: chunk, start: at, line: line, file: file, hasFile: hasFile}, true
	}
	for more && c.Left() > 0 {
		op := annotationUint(c)
		if op == annotEnd {
			break // padding
		}
		a := annotationUint(c)
		if c.Err() != nil {
			break
		}
		switch op {
		case annotCodeOffset:
			at = a
		case annotChangeCodeOffsetBase:
			emit(openEnd)
			chunk, at = a, 0
		case annotChangeCodeOffset:
			begin(a)
		case annotChangeCodeLength:
			at += a
			emit(at)
		case annotChangeFile:
			file, hasFile = a, true
		case annotChangeLineOffset:
			line += int64(annotationInt(a))
		case annotChangeCodeAndLineOffset:
			line += int64(annotationInt(a >> 4))
			begin(a & 0xF)
		case annotChangeCodeLengthAndStart:
			begin(annotationUint(c))
			emit(at + a)
		case annotChangeLineEndDelta, annotChangeRangeKind, annotChangeColumnStart, annotChangeColumnEndDelta, annotChangeColumnEnd:
		default:
			c.Fail(dump.BadRecord, "binary annotation %d is not known", op)
		}
	}
	emit(openEnd)
	return c.Err()
}

// annotationUint reads a compressed number: one, two or four bytes, by the high
// bits of the first (ECMA-335's form).
func annotationUint(c *cursor.Cursor) uint32 {
	b := uint32(c.U8())
	switch {
	case b&0x80 == 0:
		return b
	case b&0xC0 == 0x80:
		return b&0x3F<<8 | uint32(c.U8())
	case b&0xE0 == 0xC0:
		v := b & 0x1F << 24
		v |= uint32(c.U8()) << 16
		v |= uint32(c.U8()) << 8
		return v | uint32(c.U8())
	}
	c.Fail(dump.BadRecord, "a compressed number begins with %#x", b)
	return 0
}

// annotationInt gives the sign that the low bit holds.
func annotationInt(v uint32) int32 {
	if v&1 != 0 {
		return -int32(v >> 1)
	}
	return int32(v >> 1)
}
