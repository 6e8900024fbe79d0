package metadata

import (
	"strings"
	"sync"

	"dumptriage/dump"
)

// Method is what metadata tells of a method.
type Method struct {
	Token     uint32 // as it was asked for
	TypeToken uint32 // of the type that has it; 0 when unknown
	Namespace string // of its outermost type; "" for none
	Type      string // nested types behind a '+', arity kept: "Box`1+Inner"; "<Module>" for global functions
	Assembly  string // simple name of the assembly of a MemberRef's type; "" for this one
	Name      string
	Params    []string // types as SOS shows them, without "this": "System.String", "Int32[]", "!0 ByRef"
	Returns   string   // likewise
	TypeArgs  []string // of a MethodSpec: what its generic parameters are
	Static    bool
	Arity     int    // generic parameters of the method itself
	RVA       uint32 // of the body in IL; 0 where it has none
	Signature error  // why Params, Returns, Static and Arity are unknown, or nil
}

// FullName returns "Namespace.Type.Name".
func (m Method) FullName() string { return join(join(m.Namespace, m.Type), m.Name) }

// String returns the full name and the parameters: "Ns.Type.Name(Int32, System.String)".
// Without a signature that could be read it is the full name alone.
func (m Method) String() string {
	if m.Signature != nil {
		return m.FullName()
	}
	return m.FullName() + "(" + strings.Join(m.Params, ", ") + ")"
}

// Method returns what a MethodDef (06), MemberRef (0A) or MethodSpec (2B) token
// names. With an error the fields that could be read are filled in; a signature that
// cannot be read is no error but said in Signature.
func (m *Metadata) Method(token uint32) (Method, error) {
	t, rid, _ := splitToken(token)
	switch t {
	case tMethodDef:
		return m.methodDef(rid)
	case tMemberRef:
		return m.memberRef(rid)
	case tMethodSpec:
		return m.methodSpec(rid)
	}
	return Method{Token: token}, dump.Errorf(dump.OutOfRange, tableStream, "token %#08x is no method's", token)
}

func (m *Metadata) methodDef(rid uint32) (Method, error) {
	out := Method{Token: tokenOf(tMethodDef, rid)}
	r, err := m.row(tMethodDef, rid)
	if err != nil {
		return out, err
	}
	out.RVA = r[0]
	if out.Name, err = m.text(r[3]); err != nil {
		return out, err
	}
	m.addSignature(&out, r[4])
	owner, err := m.owner(rid)
	if err != nil {
		return out, err
	}
	out.TypeToken = tokenOf(tTypeDef, owner)
	out.Namespace, out.Type, err = m.typeDef(owner)
	return out, err
}

func (m *Metadata) addSignature(out *Method, off uint32) {
	h, returns, params, err := m.shown(off)
	out.Static, out.Arity, out.Returns, out.Params, out.Signature = h.static, int(h.arity), returns, params, err
}

// owner returns the TypeDef that has a method: the last whose list of methods
// begins at the method or before it (II.22.37). With a MethodPtr table the lists are
// of its rows.
func (m *Metadata) owner(method uint32) (uint32, error) {
	at := method
	if m.tables[tMethodPtr].rows > 0 {
		var err error
		if at, err = m.scan(tMethodPtr, 0, method); err != nil {
			return 0, err
		}
	}
	if at == 0 {
		return 0, dump.Errorf(dump.BadRecord, "MethodPtr", "lists method %d nowhere", method)
	}
	owner, err := m.lastNotAbove(tTypeDef, 5, at)
	if err == nil && owner == 0 {
		err = dump.Errorf(dump.BadRecord, "TypeDef", "no type has method %d", method)
	}
	return owner, err
}

// memberRef returns a method of another module, or one of a constructed type.
func (m *Metadata) memberRef(rid uint32) (Method, error) {
	out := Method{Token: tokenOf(tMemberRef, rid)}
	r, err := m.row(tMemberRef, rid)
	if err != nil {
		return out, err
	}
	if out.Name, err = m.text(r[1]); err != nil {
		return out, err
	}
	m.addSignature(&out, r[2])
	parent, prid, err := m.ref(tMemberRef, rid, memberRefParent, r[0])
	if err != nil {
		return out, err
	}
	err = m.setParent(&out, parent, prid)
	return out, err
}

func (m *Metadata) setParent(out *Method, parent table, rid uint32) (err error) {
	switch parent {
	case tMethodDef: // of a vararg call: the method's own type
		rid, err = m.owner(rid)
		parent = tTypeDef
	case tModuleRef: // a global function of another module
		out.TypeToken, out.Type = tokenOf(parent, rid), "<Module>"
		out.Assembly, err = m.scopeName(parent, rid)
		return err
	}
	if err != nil {
		return err
	}
	out.TypeToken = tokenOf(parent, rid)
	name, err := m.Type(out.TypeToken)
	out.Namespace, out.Type, out.Assembly = name.Namespace, name.Name, name.Assembly
	return err
}

// methodSpec returns an instantiated generic method.
func (m *Metadata) methodSpec(rid uint32) (Method, error) {
	out := Method{Token: tokenOf(tMethodSpec, rid)}
	r, err := m.row(tMethodSpec, rid)
	if err != nil {
		return out, err
	}
	of, ofRID, err := m.ref(tMethodSpec, rid, methodDefOrRef, r[0])
	if err != nil {
		return out, err
	}
	if of == tMethodDef {
		out, err = m.methodDef(ofRID)
	} else {
		out, err = m.memberRef(ofRID)
	}
	out.Token = tokenOf(tMethodSpec, rid)
	if args, argErr := m.typeArgs(r[1]); argErr == nil {
		out.TypeArgs = args
	} else if out.Signature == nil {
		out.Signature = argErr
	}
	return out, err
}

// typeArgs returns the types of a MethodSpec's blob (II.23.2.15).
func (m *Metadata) typeArgs(off uint32) ([]string, error) {
	p := m.printer(m.blob(off))
	if k := p.c.U8(); k != sigSpec && p.c.Err() == nil {
		p.c.Fail(dump.BadRecord, "signature of kind %#x, which no MethodSpec has", k)
	}
	var args []string
	for i, n := uint32(0), compressed(p.c); i < n && p.err() == nil; i++ {
		p.typ(0)
		args = append(args, p.take())
	}
	return args, p.err()
}

// methodIndex finds methods by the RVA of their bodies. It is made when first used.
type methodIndex struct {
	once  sync.Once
	byRVA map[uint32]uint32
	err   error
}

// MethodByRVA returns the method whose body in IL begins at an RVA. Of methods that
// share one it is the first. Not found, it is an OutOfRange error.
func (m *Metadata) MethodByRVA(rva uint32) (Method, error) {
	m.methods.once.Do(m.indexMethods)
	rid, ok := m.methods.byRVA[rva]
	if !ok {
		e := dump.Errorf(dump.OutOfRange, "MethodDef", "no method begins at RVA %#x", rva)
		e.Err = m.methods.err // rows that could not be read may have it
		return Method{}, e
	}
	return m.methodDef(rid)
}

// indexMethods reads the RVAs of all methods that are there.
func (m *Metadata) indexMethods() {
	index := map[uint32]uint32{}
	there := m.there(tMethodDef)
	if there < m.tables[tMethodDef].rows {
		_, m.methods.err = m.cell(tMethodDef, there+1, 0)
	}
	for rid := uint32(1); rid <= there; rid++ {
		rva, err := m.cell(tMethodDef, rid, 0)
		if err != nil {
			if m.methods.err == nil {
				m.methods.err = err
			}
			continue
		}
		if _, taken := index[rva]; !taken && rva != 0 {
			index[rva] = rid
		}
	}
	m.methods.byRVA = index
}
