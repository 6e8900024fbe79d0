package dwarf

import (
	"debug/dwarf"
	"slices"
	"sort"
	"strings"
)

const (
	maxReferences = 8  // from an inlined call to the declaration are two or three
	maxScopes     = 64 // namespaces and classes around a function
)

// nameOf is what the function of an entry is called: its mangled name, or else its
// name with the namespaces and classes around its declaration.
func (f *File) nameOf(unit int32, b *body, i int32) string {
	named, namedIn, namedUnit := int32(none), b, unit
	for range maxReferences {
		e := &b.entries[i]
		if e.linkage.there() {
			if s := f.string(unit, e.linkage); s != "" {
				return s
			}
		}
		if e.name.there() {
			named, namedIn, namedUnit = i, b, unit
		}
		next, nb, ni, ok := f.follow(unit, b, e.ref)
		if !ok {
			break
		}
		unit, b, i = next, nb, ni
	}
	if named == none {
		return ""
	}
	return f.qualified(namedUnit, namedIn, named)
}

// follow goes to the entry that a reference leads to.
func (f *File) follow(unit int32, b *body, ref value) (int32, *body, int32, bool) {
	off := ref.u
	switch ref.form {
	case formRef4: // counts from the unit
		off += f.units[unit].off
	case formRefAddr:
		to, ok := f.unitAt(off)
		if !ok {
			return 0, nil, 0, false
		}
		if to != unit {
			unit, b = to, f.body(to)
		}
	default:
		return 0, nil, 0, false
	}
	i := sort.Search(len(b.entries), func(i int) bool { return b.entries[i].off >= off })
	if i == len(b.entries) || b.entries[i].off != off {
		return 0, nil, 0, false
	}
	return unit, b, int32(i), true
}

// qualified puts the scopes around an entry before its name.
func (f *File) qualified(unit int32, b *body, i int32) string {
	parts := []string{f.string(unit, b.entries[i].name)}
	for at := b.entries[i].parent; at != none && len(parts) < maxScopes; at = b.entries[at].parent {
		e := &b.entries[at]
		switch e.tag {
		case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagInterfaceType:
		default:
			continue
		}
		name := f.string(unit, e.name)
		if name == "" {
			name = "(anonymous class)"
			if e.tag == dwarf.TagNamespace {
				name = "(anonymous namespace)"
			}
		}
		parts = append(parts, name)
	}
	if f.crowded() { // a scope that was not read is not an anonymous one
		return ""
	}
	slices.Reverse(parts)
	return strings.Join(parts, "::")
}

// string resolves a string of a unit.
func (f *File) string(unit int32, v value) string {
	u := &f.units[unit]
	switch v.form {
	case formString: // counts from the unit
		return f.read(f.info, u.off+v.u)
	case formStrp:
		return f.read(f.str, v.u)
	case formLineStrp:
		return f.read(f.lineStr, v.u)
	case formStrx:
		off, ok := element(u.strBase, v.u, u.offsetSize())
		if !ok {
			return ""
		}
		c := f.strOffsets.from(off)
		at := u.offset(c)
		if c.Err() != nil {
			return ""
		}
		return f.read(f.str, at)
	}
	return ""
}
