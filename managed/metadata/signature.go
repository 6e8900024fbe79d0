package metadata

import (
	"fmt"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Element types (II.23.1.16).
const (
	etEnd         = 0x00
	etPtr         = 0x0f
	etByRef       = 0x10
	etValueType   = 0x11
	etClass       = 0x12
	etVar         = 0x13
	etArray       = 0x14
	etGenericInst = 0x15
	etFnPtr       = 0x1b
	etSzArray     = 0x1d
	etMVar        = 0x1e
	etCModReqd    = 0x1f
	etCModOpt     = 0x20
	etSentinel    = 0x41
	etPinned      = 0x45
)

// simple are the types that one byte names, as SOS shows them.
var simple = [...]string{
	0x01: "Void", 0x02: "Boolean", 0x03: "Char", 0x04: "SByte", 0x05: "Byte", 0x06: "Int16", 0x07: "UInt16",
	0x08: "Int32", 0x09: "UInt32", 0x0a: "Int64", 0x0b: "UInt64", 0x0c: "Single", 0x0d: "Double", 0x0e: "System.String",
	0x16: "TypedReference", 0x18: "IntPtr", 0x19: "UIntPtr", 0x1c: "System.Object",
}

// Bits of a signature's first byte (II.23.2.1).
const (
	sigKind    = 0x0f
	sigGeneric = 0x10
	sigHasThis = 0x20
	sigLast    = 0x05 // of the kinds that methods have: default, C ... vararg
	sigUnman   = 0x09 // unmanaged, with modifiers in the return type
	sigSpec    = 0x0a // of a MethodSpec
)

const (
	maxShown = 1 << 14 // bytes of one signature's text
	maxRank  = 32      // of an array; the runtime's own limit
)

// printer shows the types of a signature. Its error is the cursor's, or that of a
// name that could not be read.
type printer struct {
	m      *Metadata
	c      *cursor.Cursor
	b      strings.Builder
	failed error
	spent  int // bytes of text that earlier types of the signature took
}

func (m *Metadata) printer(c *cursor.Cursor) *printer { return &printer{m: m, c: c} }

func (p *printer) err() error {
	if p.failed != nil {
		return p.failed
	}
	return p.c.Err()
}

func (p *printer) text() string { return p.b.String() }

// take returns the text since the last take.
func (p *printer) take() string {
	s := p.b.String()
	p.spent += len(s)
	p.b.Reset()
	return s
}

func (p *printer) write(s string) {
	if p.spent+p.b.Len()+len(s) > maxShown {
		p.c.Fail(dump.Limit, "signature of more than %d characters", maxShown)
		return
	}
	p.b.WriteString(s)
}

// typ shows one type. Text of a suffix (*, [], ByRef) comes after its element type.
func (p *printer) typ(depth int) {
	if depth > maxNesting {
		p.c.Fail(dump.Limit, "signature is nested more than %d deep", maxNesting)
	}
	if p.err() != nil {
		return
	}
	kind := p.c.U8()
	if int(kind) < len(simple) && simple[kind] != "" {
		p.write(simple[kind])
		return
	}
	switch kind {
	case etClass, etValueType:
		p.named()
	case etPtr:
		p.typ(depth + 1)
		p.write("*")
	case etByRef:
		p.typ(depth + 1)
		p.write(" ByRef")
	case etSzArray:
		p.typ(depth + 1)
		p.write("[]")
	case etPinned, etSentinel:
		p.typ(depth + 1)
	case etCModReqd, etCModOpt:
		typeToken(p.c)
		p.typ(depth + 1)
	case etVar:
		p.write("!" + strconv.Itoa(int(compressed(p.c))))
	case etMVar:
		p.write("!!" + strconv.Itoa(int(compressed(p.c))))
	case etArray:
		p.typ(depth + 1)
		p.dimensions()
	case etGenericInst:
		p.instance(depth + 1)
	case etFnPtr:
		p.function(depth + 1)
	default:
		if p.c.Err() == nil {
			p.c.Fail(dump.BadRecord, "element type %#x in a signature", kind)
		}
	}
}

// named shows a class: a nested one, as SOS does, by the innermost name alone.
func (p *printer) named() {
	token, ok := typeToken(p.c)
	if !ok {
		p.c.Fail(dump.BadRecord, "signature refers to no table")
		return
	}
	name, err := p.m.ownName(token)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	p.write(name)
}

// ownName returns a TypeDef's or TypeRef's own namespace and name.
func (m *Metadata) ownName(token uint32) (string, error) {
	t, rid, _ := splitToken(token)
	if t != tTypeDef && t != tTypeRef {
		return "", dump.Errorf(dump.BadRecord, "#Blob", "signature names token %#08x, which is no class", token)
	}
	r, err := m.row(t, rid)
	if err != nil {
		return "", err
	}
	name, err := m.text(r[1])
	if err != nil {
		return "", err
	}
	namespace, err := m.text(r[2])
	return join(namespace, name), err
}

// dimensions shows the shape of an array (II.23.2.13) as commas; its sizes and
// bounds are skipped.
func (p *printer) dimensions() {
	rank := compressed(p.c)
	if rank == 0 || rank > maxRank {
		p.c.Fail(dump.BadRecord, "array of rank %d", rank)
		return
	}
	for range 2 { // sizes, then lower bounds
		for n := compressed(p.c); n > 0 && p.c.Err() == nil; n-- {
			compressed(p.c)
		}
	}
	if rank == 1 {
		p.write("[*]") // may not begin at 0, and so is not an Int32[]
		return
	}
	p.write("[" + strings.Repeat(",", int(rank)-1) + "]")
}

// instance shows an instantiated generic type: "System.Func`2<System.String,Int32>".
func (p *printer) instance(depth int) {
	if k := p.c.U8(); k != etClass && k != etValueType && p.c.Err() == nil {
		p.c.Fail(dump.BadRecord, "generic instance of element type %#x", k)
	}
	if p.c.Err() == nil {
		p.named()
	}
	p.arguments(depth)
}

func (p *printer) arguments(depth int) {
	p.write("<")
	for i, n := uint32(0), compressed(p.c); i < n && p.err() == nil; i++ {
		if i > 0 {
			p.write(",")
		}
		p.typ(depth)
	}
	p.write(">")
}

// function shows a function pointer as ILAsm writes it: "method Void *(Int32)".
func (p *printer) function(depth int) {
	_, n := p.head()
	p.write("method ")
	p.typ(depth)
	p.write(" *(")
	for i := uint32(0); i < n && p.err() == nil; i++ {
		if i > 0 {
			p.write(", ")
		}
		p.typ(depth)
	}
	p.write(")")
}

// sigHead is what a method's signature begins with.
type sigHead struct {
	static bool
	arity  uint32 // generic parameters of the method itself
}

// head reads the first byte and the counts of a method's signature.
func (p *printer) head() (h sigHead, params uint32) {
	b := p.c.U8()
	if k := b & sigKind; k > sigLast && k != sigUnman && p.c.Err() == nil {
		p.c.Fail(dump.BadRecord, "signature of kind %#x, which no method has", k)
	}
	h.static = b&sigHasThis == 0
	if b&sigGeneric != 0 {
		h.arity = compressed(p.c)
	}
	return h, compressed(p.c)
}

// typeToken reads a TypeDefOrRefOrSpecEncoded (II.23.2.8).
func typeToken(c *cursor.Cursor) (uint32, bool) {
	t, rid, ok := decode(typeDefOrRef, compressed(c))
	return tokenOf(t, rid), ok
}

// shown returns the return type and the parameters of a method's signature.
func (m *Metadata) shown(off uint32) (h sigHead, returns string, params []string, err error) {
	p := m.printer(m.blob(off))
	h, n := p.head()
	p.typ(0)
	returns = p.take()
	for i := uint32(0); i < n && p.err() == nil; i++ {
		p.typ(0)
		params = append(params, p.take())
	}
	if err := p.err(); err != nil {
		return h, "", nil, fmt.Errorf("signature: %w", err)
	}
	return h, returns, params, nil
}
