package managed

import (
	"strings"

	"dumptriage/dump"
)

// typeName is a type by its runtime's structures.
type typeName struct {
	name string   // "Ns.Box`1", "System.Int32[]"; "" unknown
	args []string // generic arguments
}

// String is the name with its arguments.
func (t typeName) String() string { return t.name + brackets(t.args) }

// argument is the name as it stands in another type's arguments. Forged types that are
// each other's arguments would make each level of names sixteen times as long.
func (t typeName) argument() string {
	size := len(t.name)
	for _, a := range t.args {
		size += len(a) + 1
	}
	switch {
	case t.name == "" || len(t.name) > maxTypeText:
		return unknownType
	case size > maxTypeText:
		return t.name + "[...]"
	}
	return t.String()
}

const (
	maxTypeDepth = 6    // arguments of arguments
	maxTypeArgs  = 16   // named; more are left out
	maxTypeText  = 1024 // bytes of an argument; of a longer one the arguments are left out
	maxTypes     = 1 << 14

	mtCategory      = 0x000f0000 // MethodTable.MTFlags
	mtArrayMask     = 0x000c0000
	mtArray         = 0x00080000
	mtSZArray       = 0x000a0000
	mtComponentSize = 0x80000000
	mtGenerics      = 0x00000030
)

const unknownType = "?"

// typeName names a MethodTable. What could not be told of it is "?", or without
// arguments.
func (r *Runtime) typeName(mt uint64, depth int) typeName {
	if t, ok := r.types[mt]; ok {
		return t
	}
	t := r.readType(mt, depth)
	if len(r.types) >= maxTypes {
		clear(r.types)
	}
	r.types[mt] = t
	return t
}

func (r *Runtime) readType(mt uint64, depth int) typeName {
	if mt == 0 || depth > maxTypeDepth {
		return typeName{}
	}
	a := r.access()
	flags := a.u32(mt, "MethodTable", "MTFlags")
	if a.err != nil {
		return typeName{}
	}
	if flags&mtArrayMask == mtArray {
		return r.arrayType(a, mt, flags, depth)
	}
	rid := a.u32(mt, "MethodTable", "MTFlags2") >> 8
	mod, err := r.module(a.ptr(mt, "MethodTable", "Module"))
	if a.err != nil || err != nil || mod.md == nil {
		return typeName{}
	}
	name, err := mod.md.Type(typeDef | rid)
	if err != nil {
		return typeName{}
	}
	t := typeName{name: name.String()}
	if flags&mtComponentSize == 0 && flags&mtGenerics != 0 {
		t.args = r.instantiation(a, mt, depth)
	}
	return t
}

// arrayType names an array by its element's type, which lies in the place of an
// instantiation.
func (r *Runtime) arrayType(a *access, mt uint64, flags uint32, depth int) typeName {
	element := r.handleName(a, a.ptr(mt, "MethodTable", "PerInstInfo"), depth+1)
	rank := uint32(1)
	if flags&mtCategory != mtSZArray {
		if class := a.ptr(mt, "MethodTable", "EEClassOrCanonMT"); class&1 == 0 {
			rank = uint32(a.u8(class, "ArrayClass", "Rank"))
		}
	}
	if a.err != nil || rank == 0 || rank > 32 {
		return typeName{name: element + "[]"}
	}
	return typeName{name: element + "[" + strings.Repeat(",", int(rank)-1) + "]"}
}

// instantiation names the generic arguments of a type.
func (r *Runtime) instantiation(a *access, mt uint64, depth int) []string {
	info := a.ptr(mt, "MethodTable", "PerInstInfo")
	head := info - a.size("GenericsDictInfo", 8)
	dicts := a.u16(head, "GenericsDictInfo", "NumDicts")
	n := a.u16(head, "GenericsDictInfo", "NumTypeArgs")
	if a.err != nil || dicts == 0 {
		return nil
	}
	args := a.word(info+uint64(r.l.pointer)*uint64(dicts-1), "PerInstInfo")
	return r.typeArgs(a, args, int(n), depth)
}

// typeArgs names n type handles at an address.
func (r *Runtime) typeArgs(a *access, va uint64, n, depth int) []string {
	var out []string
	for i := range min(n, maxTypeArgs) {
		h := a.word(va+uint64(i*r.l.pointer), "type arguments")
		if a.err != nil {
			return out
		}
		out = append(out, r.handleName(a, h, depth+1))
	}
	if n > maxTypeArgs {
		out = append(out, "...")
	}
	return out
}

// TypeDesc kinds: ELEMENT_TYPE_* of ECMA-335 II.23.1.16.
const (
	elementPtr    = 0x0f
	elementByRef  = 0x10
	elementVar    = 0x13
	elementMVar   = 0x1e
	elementFnPtr  = 0x1b
	typeDescFlag  = 2
	typeDescValue = 0xff
)

// handleName names a TypeHandle: a MethodTable, or with bit 1 set a TypeDesc.
func (r *Runtime) handleName(a *access, h uint64, depth int) string {
	if a.err != nil || h == 0 || depth > maxTypeDepth {
		return unknownType
	}
	if h&typeDescFlag == 0 {
		return r.typeName(h, depth).argument()
	}
	h &^= typeDescFlag
	d := r.access() // a type that is not understood does not spoil the rest
	switch d.u32(h, "TypeDesc", "TypeAndFlags") & typeDescValue {
	case elementPtr:
		return r.handleName(d, d.ptr(h, "ParamTypeDesc", "TypeArg"), depth+1) + "*"
	case elementByRef:
		return r.handleName(d, d.ptr(h, "ParamTypeDesc", "TypeArg"), depth+1) + "&"
	case elementVar:
		return "!"
	case elementMVar:
		return "!!"
	case elementFnPtr:
		return "FNPTR"
	}
	return unknownType
}

// objectType names the type of an object.
func (r *Runtime) objectType(a *access, object uint64) (mt uint64, t typeName) {
	mt = a.ptr(object, "Object", "m_pMethTab") &^ r.l.number("ObjectToMethodTableUnmask", 7)
	if a.err != nil {
		return 0, typeName{}
	}
	if t = r.typeName(mt, 0); t.name == "" {
		a.fail(dump.OutOfRange, "type", "the type at %#x of the object at %#x has no name in the dump", mt, object)
	}
	return mt, t
}
