package pdb

import (
	"hash/maphash"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Struct is the layout of a structure, class or union.
type Struct struct {
	Name   string
	Kind   string // "struct", "class", "union", "interface"
	Size   uint64 // bytes
	Fields []Field
}

// Field is a data member or a base class, in the order of declaration.
type Field struct {
	Name     string // "" for a base class
	Offset   uint64 // bytes from the start
	Type     string // as text, such as "_LIST_ENTRY", "char[15]", "void*"
	Base     bool   // a base class, of type Type
	Bits     uint8  // width of a bit field, 0 when it is none
	BitStart uint8  // lowest bit of a bit field
}

// Limits of a structure's walk.
const (
	maxFields     = 1 << 16
	maxFieldLists = 1 << 10 // continuation records
	// Records read for the text of all fields' types.
	maxLayoutSteps = 1 << 16
)

// nameHash is an entry of the index of structures by name.
type nameHash struct {
	hash uint32
	id   uint32
}

// structIndex finds complete structures by the hash of their name.
type structIndex struct {
	seed maphash.Seed
	list []nameHash
}

// indexStructs walks the type stream once, when a structure is first asked for.
func (f *File) indexStructs() *structIndex {
	x := &structIndex{seed: maphash.MakeSeed()}
	f.types().scan(func(id uint32, _ int64, kind typeKind, body *cursor.Cursor) bool {
		if kind.isUser() {
			if u, ok := decodeUserType(kind, body); ok && !u.forward {
				x.list = append(x.list, nameHash{x.hash(u.name), id})
			}
		}
		return true
	})
	sortByHash(x.list)
	return x
}

func (x *structIndex) hash(name string) uint32 { return uint32(maphash.String(x.seed, name)) }

// Struct returns the layout of the structure of that name, such as "_ETHREAD" or
// "std::string". Where several types have the name, the first is taken.
func (f *File) Struct(name string) (*Struct, error) {
	if u, ok := f.complete(name); ok {
		return f.layout(u)
	}
	msg := "no structure is named %q"
	if f.info.Stripped {
		msg = "no structure is named %q: the PDB is stripped of private types"
	}
	return nil, f.withName(dump.Errorf(dump.OutOfRange, "TPI", msg, name))
}

// complete finds the definition of a structure by name.
func (f *File) complete(name string) (userType, bool) {
	x := f.structs()
	h := x.hash(name)
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].hash >= h })
	for ; i < len(x.list) && x.list[i].hash == h; i++ {
		kind, c, ok := f.types().find(x.list[i].id)
		if !ok || !kind.isUser() {
			continue
		}
		if u, ok := decodeUserType(kind, c); ok && u.name == name {
			return u, true
		}
	}
	return userType{}, false
}

var userKinds = map[typeKind]string{typeStructure: "struct", typeClass: "class", typeUnion: "union", typeInterface: "interface"}

// layout lists the fields. On damage it returns those that could be read, too.
func (f *File) layout(u userType) (*Struct, error) {
	s := &Struct{Name: u.name, Kind: userKinds[u.kind], Size: u.size}
	names := &typeNamer{f, maxLayoutSteps}
	next := u.fields
	for n := 0; next != 0; n++ {
		if n >= maxFieldLists {
			return s, f.withName(dump.Errorf(dump.Limit, "TPI", "%s has more than %d field lists", u.name, maxFieldLists))
		}
		kind, c, ok := f.types().find(next)
		if !ok || kind != typeFieldList {
			return s, f.withName(dump.Errorf(dump.BadRecord, "TPI", "type %#x is not the field list of %s", next, u.name))
		}
		next = names.appendFields(s, c)
		if err := c.Err(); err != nil {
			return s, f.withName(err)
		}
	}
	return s, nil
}

// appendFields reads one field list and returns the number of the list that
// continues it, or 0.
func (n *typeNamer) appendFields(s *Struct, c *cursor.Cursor) uint32 {
	for c.Left() >= 2 && len(s.Fields) < maxFields {
		switch kind := typeKind(c.U16()); kind {
		case typeMember:
			c.U16()
			t := c.U32()
			off, _ := numeric(c)
			s.Fields = append(s.Fields, n.field(t, off, cstring(c)))
		case typeBaseClass:
			c.U16()
			t := c.U32()
			off, _ := numeric(c)
			s.Fields = append(s.Fields, Field{Offset: off, Type: n.name(t, 0), Base: true})
		case typeIndex:
			c.U16()
			return c.U32()
		default:
			skipField(kind, c)
		}
		skipPadding(c)
		if c.Err() != nil {
			break
		}
	}
	return 0
}

func (n *typeNamer) field(t uint32, off uint64, name string) Field {
	out := Field{Name: name, Offset: off}
	if kind, c, ok := n.find(t); ok && kind == typeBitField {
		t = c.U32()
		out.Bits, out.BitStart = c.U8(), c.U8()
	}
	out.Type = n.name(t, 0)
	return out
}

// skipField moves past a member that takes no place in the structure.
func skipField(kind typeKind, c *cursor.Cursor) {
	switch kind {
	case typeVirtBase, typeIndirBase:
		c.Skip(2 + 4 + 4)
		numeric(c)
		numeric(c)
	case typeVFuncTab:
		c.Skip(2 + 4)
	case typeEnumerate:
		c.U16()
		numeric(c)
		cstring(c)
	case typeStatic, typeMethod, typeNested, typeNestedEx:
		c.Skip(2 + 4)
		cstring(c)
	case typeOneMethod:
		const introducing, pureIntroducing = 4, 6 // methods that add a virtual table slot
		property := c.U16() >> 2 & 7
		c.U32()
		if property == introducing || property == pureIntroducing {
			c.U32()
		}
		cstring(c)
	default:
		c.Fail(dump.UnsupportedFormat, "member record %#x is not known", uint16(kind))
	}
}

// skipPadding moves past the bytes 0xF1 to 0xFF that align members: the low four
// bits count them.
func skipPadding(c *cursor.Cursor) {
	if c.Left() == 0 {
		return
	}
	at := c.Offset()
	if b := c.U8(); b >= 0xF0 {
		c.Seek(at)
		c.Skip(min(max(int(b&0xF), 1), c.Left()))
		return
	}
	c.Seek(at)
}
