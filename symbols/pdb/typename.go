package pdb

import (
	"fmt"
	"strings"

	"dumptriage/internal/cursor"
)

// maxTypeDepth bounds how deep a type's text goes: types may refer in circles.
const maxTypeDepth = 32

// maxTypeText bounds the length of a type's text.
const maxTypeText = 4 << 10

// simpleTypes names the built-in types by the low byte of their number.
var simpleTypes = map[uint32]string{
	0x03: "void", 0x07: "<not translated>", 0x08: "HRESULT",
	0x10: "signed char", 0x20: "unsigned char", 0x70: "char", 0x71: "wchar_t", 0x7A: "char16_t", 0x7B: "char32_t", 0x7C: "char8_t",
	0x68: "__int8", 0x69: "unsigned __int8", 0x11: "short", 0x21: "unsigned short", 0x72: "__int16", 0x73: "unsigned __int16",
	0x12: "long", 0x22: "unsigned long", 0x74: "int", 0x75: "unsigned int",
	0x13: "__int64", 0x23: "unsigned __int64", 0x76: "__int64", 0x77: "unsigned __int64",
	0x14: "__int128", 0x24: "unsigned __int128", 0x78: "__int128", 0x79: "unsigned __int128",
	0x46: "__half", 0x40: "float", 0x41: "double", 0x42: "long double", 0x43: "__float128", 0x44: "__float48", 0x45: "float",
	0x50: "_Complex float", 0x51: "_Complex double", 0x52: "_Complex long double",
	0x30: "bool", 0x31: "__bool16", 0x32: "__bool32", 0x33: "__bool64",
}

// firstType is the lowest number of a type with a record; lower ones are built in.
const firstType = 0x1000

// typeNamer makes the text of types. Types may refer to each other so that the
// text of one visits others again and again: left bounds the records it reads.
type typeNamer struct {
	f    *File
	left int
}

// maxTypeSteps bounds the records that the text of one type takes.
const maxTypeSteps = 1 << 10

// TypeName returns a type as text, "" when the number leads nowhere.
func (f *File) TypeName(id uint32) string {
	n := &typeNamer{f, maxTypeSteps}
	return n.name(id, 0)
}

// find reads a type record while there are steps left.
func (n *typeNamer) find(id uint32) (typeKind, *cursor.Cursor, bool) {
	if n.left <= 0 {
		return 0, nil, false
	}
	n.left--
	return n.f.types().find(id)
}

func (n *typeNamer) name(id uint32, depth int) string {
	if id == 0 {
		return ""
	}
	if id < firstType {
		return simpleTypeName(id)
	}
	kind, c, ok := n.find(id)
	if !ok || depth > maxTypeDepth {
		return ""
	}
	if s := n.recordTypeName(kind, c, depth+1); len(s) <= maxTypeText {
		return s
	}
	return "..."
}

func simpleTypeName(id uint32) string {
	const nullptr = 0x103
	if id == nullptr {
		return "std::nullptr_t"
	}
	name, ok := simpleTypes[id&0xFF]
	if !ok {
		return fmt.Sprintf("<type %#x>", id)
	}
	if mode := id >> 8 & 0xF; mode != 0 {
		name += "*"
	}
	return name
}

func (n *typeNamer) recordTypeName(kind typeKind, c *cursor.Cursor, depth int) string {
	switch kind {
	case typeStructure, typeClass, typeUnion, typeInterface:
		u, _ := decodeUserType(kind, c)
		return u.name
	case typeEnum:
		c.Skip(2 + 2 + 4 + 4)
		return cstring(c)
	case typeModifier:
		return n.modifierName(c, depth)
	case typePointer:
		return n.pointerName(c, depth)
	case typeArray:
		return n.arrayName(c, depth)
	case typeBitField:
		return n.name(c.U32(), depth)
	case typeProcedure:
		result := n.name(c.U32(), depth)
		c.Skip(4)
		return result + " " + n.arguments(c.U32(), depth)
	case typeMemberFunc:
		result, class := n.name(c.U32(), depth), n.name(c.U32(), depth)
		c.Skip(8)
		return result + " " + class + "::" + n.arguments(c.U32(), depth)
	}
	return fmt.Sprintf("<type record %#x>", uint16(kind))
}

func (n *typeNamer) modifierName(c *cursor.Cursor, depth int) string {
	inner, flags := n.name(c.U32(), depth), c.U16()
	for i, word := range [...]string{"const ", "volatile ", "__unaligned "} {
		if flags>>i&1 != 0 {
			inner = word + inner
		}
	}
	return inner
}

func (n *typeNamer) pointerName(c *cursor.Cursor, depth int) string {
	inner, attr := n.name(c.U32(), depth), c.U32()
	const lvalue, memberData, memberFunction, rvalue = 1, 2, 3, 4
	switch attr >> 5 & 7 {
	case lvalue:
		inner += "&"
	case rvalue:
		inner += "&&"
	case memberData, memberFunction:
		inner += " " + n.name(c.U32(), depth) + "::*"
	default:
		inner += "*"
	}
	if attr>>10&1 != 0 {
		inner += " const"
	}
	return inner
}

func (n *typeNamer) arrayName(c *cursor.Cursor, depth int) string {
	element := c.U32()
	c.U32() // type of the index
	size, _ := numeric(c)
	name := n.name(element, depth)
	each := n.sizeOf(element, depth)
	if each == 0 {
		return fmt.Sprintf("%s[%d bytes]", name, size)
	}
	// An array of arrays is read outermost first: int[2][3].
	base, rest := name, ""
	if i := strings.IndexByte(name, '['); i >= 0 && strings.HasSuffix(name, "]") {
		base, rest = name[:i], name[i:]
	}
	return fmt.Sprintf("%s[%d]%s", base, size/each, rest)
}

func (n *typeNamer) arguments(id uint32, depth int) string {
	kind, c, ok := n.find(id)
	if !ok || kind != typeArgList {
		return "()"
	}
	count, _ := c.Count(uint64(c.U32()), 4)
	var out []string
	for total := 0; len(out) < count && n.left > 0 && total < maxTypeText; {
		a := n.name(c.U32(), depth)
		if a == "" {
			a = "..." // type 0 as the last argument
		}
		total += len(a) + 2
		out = append(out, a)
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// simpleSizes gives the size of built-in types by the low byte of their number.
var simpleSizes = map[uint32]uint64{
	0x08: 4, 0x10: 1, 0x20: 1, 0x70: 1, 0x71: 2, 0x7A: 2, 0x7B: 4, 0x7C: 1, 0x68: 1, 0x69: 1, 0x11: 2, 0x21: 2, 0x72: 2, 0x73: 2,
	0x12: 4, 0x22: 4, 0x74: 4, 0x75: 4, 0x13: 8, 0x23: 8, 0x76: 8, 0x77: 8, 0x14: 16, 0x24: 16, 0x78: 16, 0x79: 16,
	0x46: 2, 0x40: 4, 0x41: 8, 0x42: 10, 0x43: 16, 0x44: 6, 0x45: 4, 0x50: 8, 0x51: 16, 0x52: 20, 0x30: 1, 0x31: 2, 0x32: 4, 0x33: 8,
}

// pointerSizes gives the size of built-in pointers by the mode of their number.
var pointerSizes = map[uint32]uint64{1: 2, 2: 4, 3: 4, 4: 4, 5: 6, 6: 8, 7: 16}

// sizeOf returns a type's size in bytes, 0 when it is not known.
func (n *typeNamer) sizeOf(id uint32, depth int) uint64 {
	if id < firstType {
		if mode := id >> 8 & 0xF; mode != 0 {
			return pointerSizes[mode]
		}
		return simpleSizes[id&0xFF]
	}
	kind, c, ok := n.find(id)
	if !ok || depth > maxTypeDepth {
		return 0
	}
	switch kind {
	case typeStructure, typeClass, typeUnion, typeInterface:
		u, _ := decodeUserType(kind, c)
		if u.forward {
			return n.completeSize(u.name)
		}
		return u.size
	case typeModifier:
		return n.sizeOf(c.U32(), depth+1)
	case typePointer:
		c.U32()
		return uint64(c.U32() >> 13 & 0x3F)
	case typeEnum:
		c.Skip(4)
		return n.sizeOf(c.U32(), depth+1)
	case typeArray:
		c.Skip(8)
		size, _ := numeric(c)
		return size
	}
	return 0
}

// completeSize returns the size of the structure that a forward reference names.
func (n *typeNamer) completeSize(name string) uint64 {
	u, _ := n.f.complete(name)
	return u.size
}
