package pdb

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// symbolKind is the kind of a CodeView symbol record (cvinfo.h, S_*).
type symbolKind uint16

const (
	symEnd            symbolKind = 0x0006
	symThunk          symbolKind = 0x1102
	symBlock          symbolKind = 0x1103
	symLabel          symbolKind = 0x1105
	symLocalData      symbolKind = 0x110C
	symGlobalData     symbolKind = 0x110D
	symPublic         symbolKind = 0x110E
	symLocalProc      symbolKind = 0x110F
	symGlobalProc     symbolKind = 0x1110
	symLocalThread    symbolKind = 0x1112
	symGlobalThread   symbolKind = 0x1113
	symTrampoline     symbolKind = 0x112C
	symSeparatedCode  symbolKind = 0x1132
	symLocalProcID    symbolKind = 0x1146
	symGlobalProcID   symbolKind = 0x1147
	symInlineSite     symbolKind = 0x114D
	symInlineSiteEnd  symbolKind = 0x114E
	symProcIDEnd      symbolKind = 0x114F
	symLocalProcDPC   symbolKind = 0x1155
	symLocalProcDPCID symbolKind = 0x1156
	symInlineSite2    symbolKind = 0x115D
)

// record is one CodeView symbol record: its kind and a cursor over its body.
type record struct {
	at   int // offset of the record in its stream
	kind symbolKind
	body cursor.Cursor
}

// nextRecord reads the record at the cursor and moves past it. False is the end,
// or damage in c.Err().
func nextRecord(c *cursor.Cursor, r *record) bool {
	return nextWanted(c, r, func(symbolKind) bool { return true })
}

// nextWanted is nextRecord that gives a body to records of wanted kinds only:
// most records of a module are of no interest to an index.
func nextWanted(c *cursor.Cursor, r *record, wanted func(symbolKind) bool) bool {
	if c.Left() < 4 {
		return false
	}
	r.at = c.Offset()
	n := int(c.U16())
	if n < 2 {
		c.Fail(dump.BadRecord, "a symbol record of %d bytes cannot hold its kind", n)
		return false
	}
	r.kind = symbolKind(c.U16())
	if wanted(r.kind) {
		r.body = *c.Sub(n - 2)
	} else {
		c.Skip(n - 2)
	}
	return c.Err() == nil
}

// namesCode reports whether decodeCode reads records of the kind.
func (k symbolKind) namesCode() bool {
	return k.isProc() || k == symThunk || k == symLabel || k == symSeparatedCode || k == symTrampoline
}

// isInlineSite reports whether records of the kind are inline sites.
func (k symbolKind) isInlineSite() bool { return k == symInlineSite || k == symInlineSite2 }

// opensScope reports whether records up to a matching end record are inside.
func (k symbolKind) opensScope() bool {
	return k.isProc() || k == symThunk || k == symBlock || k == symSeparatedCode || k.isInlineSite()
}

func (k symbolKind) closesScope() bool {
	return k == symEnd || k == symProcIDEnd || k == symInlineSiteEnd
}

func (k symbolKind) isProc() bool {
	switch k {
	case symLocalProc, symGlobalProc, symLocalProcID, symGlobalProcID, symLocalProcDPC, symLocalProcDPCID:
		return true
	}
	return false
}

// codeSymbol is what the records that name code have in common.
type codeSymbol struct {
	kind    symbolKind
	section uint16
	offset  uint32
	size    uint32 // 0 for a label
	end     uint32 // of a procedure: offset of the record that ends its scope
	parent  uint32 // separated code: offset of the function that it belongs to
	parentS uint16 // separated code: section of that function
	name    string
}

// decodeCode decodes a record that names code. The name is left out unless
// asked for: an index does not need it.
func decodeCode(r *record, withName bool) (codeSymbol, bool) {
	s := codeSymbol{kind: r.kind}
	c := &r.body
	switch {
	case r.kind.isProc():
		c.U32() // parent
		s.end = c.U32()
		c.U32() // next
		s.size = c.U32()
		c.Skip(12) // debug start, debug end, type
		s.offset, s.section = c.U32(), c.U16()
		c.U8() // flags
	case r.kind == symThunk:
		c.Skip(12)
		s.offset, s.section, s.size = c.U32(), c.U16(), uint32(c.U16())
		c.U8() // ordinal
	case r.kind == symLabel:
		s.offset, s.section = c.U32(), c.U16()
		c.U8()
	case r.kind == symSeparatedCode:
		c.Skip(8)
		s.size = c.U32()
		c.U32() // flags
		s.offset, s.parent, s.section, s.parentS = c.U32(), c.U32(), c.U16(), c.U16()
		return s, c.Err() == nil
	case r.kind == symTrampoline:
		c.U16() // 0: incremental linking, 1: branch island
		s.size, s.offset, s.parent = uint32(c.U16()), c.U32(), c.U32()
		s.section, s.parentS = c.U16(), c.U16()
		return s, c.Err() == nil
	default:
		return s, false
	}
	if withName {
		s.name = recordName(c)
	}
	return s, c.Err() == nil
}

// recordName reads a name that the end of its record may cut.
func recordName(c *cursor.Cursor) string { return cursor.CString(c.Bytes(c.Left())) }
