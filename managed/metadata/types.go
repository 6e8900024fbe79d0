package metadata

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// maxNesting caps how deep types are nested in each other, and signatures in
// signatures. Compilers stay below ten.
const maxNesting = 64

// TypeName is the name of a type.
type TypeName struct {
	Token     uint32 // as it was asked for
	Namespace string // of the outermost type; "" for none
	Name      string // nested types behind a '+', arity kept: "Box`1+Inner"; a TypeSpec as SOS shows it, such as "Int32[]"
	Assembly  string // simple name of the assembly that a TypeRef is in; "" for this one
}

// String returns the namespace, a dot, and the name.
func (t TypeName) String() string { return join(t.Namespace, t.Name) }

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// Type returns the name of a TypeDef (02), TypeRef (01) or TypeSpec (1B) token.
func (m *Metadata) Type(token uint32) (TypeName, error) {
	t, rid, _ := splitToken(token)
	name := TypeName{Token: token}
	var err error
	switch t {
	case tTypeDef:
		name.Namespace, name.Name, err = m.typeDef(rid)
	case tTypeRef:
		name.Namespace, name.Name, name.Assembly, err = m.typeRef(rid)
	case tTypeSpec:
		name, err = m.typeSpec(rid)
		name.Token = token
	default:
		err = dump.Errorf(dump.OutOfRange, tableStream, "token %#08x is no type's", token)
	}
	return name, err
}

// typeDef returns the name of a type of this module, with those that it is nested in.
func (m *Metadata) typeDef(rid uint32) (namespace, name string, err error) {
	var names []string
	for range maxNesting {
		r, err := m.row(tTypeDef, rid)
		if err != nil {
			return "", "", err
		}
		own, err := m.text(r[1])
		if err != nil {
			return "", "", err
		}
		names = append(names, own)
		outer, err := m.encloser(rid, r[0])
		if err != nil {
			return "", "", err
		}
		if outer == 0 {
			if namespace, err = m.text(r[2]); err != nil {
				return "", "", err
			}
			name, err = nested("TypeDef", names)
			return namespace, name, err
		}
		rid = outer
	}
	return "", "", dump.Errorf(dump.Cycle, "NestedClass", "types are nested more than %d deep, or in themselves", maxNesting)
}

// encloser returns the TypeDef that a type is nested in, or 0. Most are not, and
// say so in their flags (II.23.1.15).
func (m *Metadata) encloser(rid, flags uint32) (uint32, error) {
	const visibility, nestedPublic = 7, 2
	if flags&visibility < nestedPublic {
		return 0, nil
	}
	row, err := m.find(tNestedClass, 0, rid)
	if row == 0 || err != nil {
		return 0, err
	}
	return m.cell(tNestedClass, row, 1)
}

// typeRef is typeDef for a type of another module.
func (m *Metadata) typeRef(rid uint32) (namespace, name, assembly string, err error) {
	var names []string
	for range maxNesting {
		r, err := m.row(tTypeRef, rid)
		if err != nil {
			return "", "", "", err
		}
		own, err := m.text(r[1])
		if err != nil {
			return "", "", "", err
		}
		names = append(names, own)
		scope, outer, err := m.ref(tTypeRef, rid, resolutionScope, r[0])
		if err != nil {
			return "", "", "", err
		}
		if scope == tTypeRef && outer != 0 {
			rid = outer
			continue
		}
		if namespace, err = m.text(r[2]); err != nil {
			return "", "", "", err
		}
		if name, err = nested("TypeRef", names); err != nil {
			return "", "", "", err
		}
		assembly, err = m.scopeName(scope, outer)
		return namespace, name, assembly, err
	}
	return "", "", "", dump.Errorf(dump.Cycle, "TypeRef", "types are nested more than %d deep, or in themselves", maxNesting)
}

// scopeName returns the assembly or module that a TypeRef is in; "" for this one.
func (m *Metadata) scopeName(scope table, rid uint32) (string, error) {
	col := 6
	switch scope {
	case tModuleRef:
		col = 0
	case tAssemblyRef:
	default:
		return "", nil
	}
	if rid == 0 {
		return "", nil
	}
	off, err := m.cell(scope, rid, col)
	if err != nil {
		return "", err
	}
	return m.text(off)
}

// nested joins names that were collected from the inside out. All together may be as
// long as one: rows may share the bytes of a name.
func nested(table string, names []string) (string, error) {
	if len(names) == 1 {
		return names[0], nil
	}
	size := len(names) - 1
	for _, name := range names {
		size += len(name)
	}
	if size > maxName {
		return "", dump.Errorf(dump.Limit, table, "the names of types in each other have %d bytes", size)
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteString(names[i])
		if i > 0 {
			b.WriteByte('+')
		}
	}
	return b.String(), nil
}

// typeSpec returns the name of a constructed type: of an instantiated generic type
// that of its definition, else how it is shown.
func (m *Metadata) typeSpec(rid uint32) (TypeName, error) {
	off, err := m.cell(tTypeSpec, rid, 0)
	if err != nil {
		return TypeName{}, err
	}
	c := m.blob(off)
	if token, ok := genericDefinition(c); ok {
		if t, _, _ := splitToken(token); t != tTypeSpec { // no TypeSpec of a TypeSpec
			return m.Type(token)
		}
	}
	p := m.printer(m.blob(off))
	p.typ(0)
	return TypeName{Name: p.text()}, p.err()
}

// genericDefinition returns the type that a GENERICINST is of.
func genericDefinition(c *cursor.Cursor) (token uint32, ok bool) {
	if c.U8() != etGenericInst {
		return 0, false
	}
	if k := c.U8(); k != etClass && k != etValueType {
		return 0, false
	}
	token, ok = typeToken(c)
	return token, ok && c.Err() == nil
}
