package pdb

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Kinds of records in the TPI stream.
const (
	typeModifier   typeKind = 0x1001
	typePointer    typeKind = 0x1002
	typeProcedure  typeKind = 0x1008
	typeMemberFunc typeKind = 0x1009
	typeArgList    typeKind = 0x1201
	typeFieldList  typeKind = 0x1203
	typeBitField   typeKind = 0x1205
	typeBaseClass  typeKind = 0x1400
	typeVirtBase   typeKind = 0x1401
	typeIndirBase  typeKind = 0x1402
	typeIndex      typeKind = 0x1404
	typeVFuncTab   typeKind = 0x1409
	typeEnumerate  typeKind = 0x1502
	typeArray      typeKind = 0x1503
	typeClass      typeKind = 0x1504
	typeStructure  typeKind = 0x1505
	typeUnion      typeKind = 0x1506
	typeEnum       typeKind = 0x1507
	typeMember     typeKind = 0x150D
	typeStatic     typeKind = 0x150E
	typeMethod     typeKind = 0x150F
	typeNested     typeKind = 0x1510
	typeOneMethod  typeKind = 0x1511
	typeNestedEx   typeKind = 0x1512
	typeInterface  typeKind = 0x1519
)

// Property bits of structures.
const propForward = 1 << 7

// userType is a structure, class, interface or union.
type userType struct {
	kind    typeKind
	count   int
	forward bool
	fields  uint32
	size    uint64
	name    string
}

func (k typeKind) isUser() bool {
	return k == typeStructure || k == typeClass || k == typeUnion || k == typeInterface
}

func decodeUserType(kind typeKind, c *cursor.Cursor) (userType, bool) {
	u := userType{kind: kind, count: int(c.U16())}
	u.forward = c.U16()&propForward != 0
	u.fields = c.U32()
	if kind != typeUnion {
		c.Skip(8) // derived from, shape of the virtual table
	}
	u.size, _ = numeric(c)
	u.name = cstring(c)
	return u, c.Err() == nil
}

// Kinds of numeric leaves: below 0x8000 the number is the kind itself.
const (
	numChar   = 0x8000
	numShort  = 0x8001
	numUShort = 0x8002
	numLong   = 0x8003
	numULong  = 0x8004
	numQuad   = 0x8009
	numUQuad  = 0x800A
)

// numeric reads an embedded number. A negative one comes as its two's
// complement, with true.
func numeric(c *cursor.Cursor) (v uint64, negative bool) {
	k := c.U16()
	if k < numChar {
		return uint64(k), false
	}
	var s int64
	switch k {
	case numChar:
		s = int64(int8(c.U8()))
	case numShort:
		s = int64(int16(c.U16()))
	case numUShort:
		s = int64(c.U16())
	case numLong:
		s = int64(int32(c.U32()))
	case numULong:
		s = int64(c.U32())
	case numQuad:
		s = int64(c.U64())
	case numUQuad:
		return c.U64(), false
	default:
		c.Fail(dump.UnsupportedFormat, "numeric leaf %#x is not known", k)
	}
	return uint64(s), s < 0
}
