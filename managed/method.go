package managed

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/managed/metadata"
)

// Source says what a name is by. Its text is part of the JSON contract.
type Source string

// The sources of names.
const (
	SourceContracts Source = "contracts" // the runtime's structures, by its own descriptor
	SourceImage     Source = "image"     // the tables of a ReadyToRun image
	SourceLayout    Source = "layout"    // structures whose layout is known of such versions
)

// Method is what is known of the method at an address. What is not known is empty.
type Method struct {
	Kind   Kind
	Source Source
	Start  uint64 // of its code, 0 unknown
	Module string // file name: "System.Console.dll"
	MVID   string // what tells one build of the module from another
	Token  uint32 // MethodDef, 0 none
	Type   string // with namespace: "ConsoleApp1.Box`1+Inner"
	Name   string
	// TypeArgs and Args are the generic arguments of the type and the method, as far as
	// the runtime tells: code that several types share has System.__Canon.
	TypeArgs, Args []string
	Params         []string // types, as in metadata
	HasParams      bool
	Note           string // why it has no name, or what is missing of it
}

// FullName is the type and the name, without arguments; "" when there is no name.
func (m *Method) FullName() string {
	switch {
	case m.Name == "":
		return ""
	case m.Type == "":
		return m.Name
	}
	return m.Type + "." + m.Name
}

// Declaration is the name with all arguments: "Ns.Box`1[System.Guid].Deep[System.Int32](!0)".
func (m *Method) Declaration() string {
	if m.Name == "" {
		return ""
	}
	s := m.Type + brackets(m.TypeArgs)
	if s != "" {
		s += "."
	}
	s += m.Name + brackets(m.Args)
	if m.HasParams {
		s += "(" + strings.Join(m.Params, ", ") + ")"
	}
	return s
}

func brackets(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return "[" + strings.Join(args, ",") + "]"
}

// MethodDesc.Flags, bits 0 to 2.
const (
	kindIL           = 0
	kindFCall        = 1
	kindPInvoke      = 2
	kindEEImpl       = 3
	kindArray        = 4
	kindInstantiated = 5
	kindCOM          = 6
	kindDynamic      = 7
)

const (
	maxMethodName = 512
	maxMethods    = 1 << 16 // remembered
	methodDef     = 0x06000000
	typeDef       = 0x02000000
)

// Method names the method of an address, nil when no managed code is there. An error
// says what is damaged or missing; the method is what could be told without.
func (r *Runtime) Method(ip uint64) (*Method, error) {
	if r == nil {
		return nil, nil
	}
	c, ok, err := r.Code(ip)
	if !ok {
		return nil, err
	}
	switch {
	case c.Kind == KindStub:
		return &Method{Kind: KindStub, Source: r.source(), Start: c.Start, Note: "code made by the runtime, of no method"}, nil
	case c.Kind == KindR2R:
		return r.aheadOfTime(c, ip)
	}
	m, err := r.describe(c.MethodDesc)
	out := *m
	out.Start = c.Start
	return &out, err
}

func (r *Runtime) source() Source {
	if r.Contracts {
		return SourceContracts
	}
	return SourceLayout
}

// describe names a MethodDesc, once.
func (r *Runtime) describe(md uint64) (*Method, error) {
	if m := r.methods[md]; m != nil {
		return m, nil
	}
	m := &Method{Kind: KindJIT, Source: r.source()}
	err := r.fill(m, md)
	if err != nil {
		m.Note = dump.AsError(err).Detail()
	}
	if len(r.methods) >= maxMethods {
		clear(r.methods)
	}
	r.methods[md] = m
	return m, err
}

func (r *Runtime) fill(m *Method, md uint64) error {
	a := r.access()
	kind := a.u16(md, "MethodDesc", "Flags") & 7
	if a.err != nil {
		return a.err
	}
	if kind == kindDynamic {
		m.Kind, m.Type = KindDynamic, "DynamicClass"
		m.Name = r.cString(a.ptr(md, "DynamicMethodDesc", "MethodName"), maxMethodName)
		if m.Name == "" {
			m.Type, m.Note = "", "the name of the dynamic method is not in the dump"
		}
		return a.err
	}
	chunk := md - uint64(a.u8(md, "MethodDesc", "ChunkIndex"))*r.l.number("MethodDescAlignment", 8) - a.size("MethodDescChunk", 24)
	mt := a.ptr(chunk, "MethodDescChunk", "MethodTable")
	bits := min(r.l.number("MethodDescTokenRemainderBitCount", 12), 23)
	high := uint32(a.u16(chunk, "MethodDescChunk", "FlagsAndTokenRange")) & (1<<(24-bits) - 1)
	low := uint32(a.u16(md, "MethodDesc", "Flags3AndTokenRemainder")) & (1<<bits - 1)
	if a.err != nil {
		return a.err
	}
	if rid := high<<bits | low; rid != 0 {
		m.Token = methodDef | rid
	}
	if err := r.fillType(m, a, mt, kind); err != nil {
		return err
	}
	if kind == kindInstantiated {
		m.Args = r.methodArgs(a, md)
	}
	return a.err
}

// fillType adds what the method's type and its module's metadata tell.
func (r *Runtime) fillType(m *Method, a *access, mt uint64, kind uint16) error {
	module := a.ptr(mt, "MethodTable", "Module")
	if a.err != nil {
		return a.err
	}
	if kind == kindArray {
		m.Token, m.Type = 0, r.typeName(mt, 0).String()
		m.Note = "a method that the runtime gives to arrays"
		return nil
	}
	mod, err := r.module(module)
	m.Module, m.MVID = mod.Name, mod.MVID
	if t := r.typeName(mt, 0); t.name != "" {
		m.TypeArgs = t.args
	}
	if err != nil {
		return err
	}
	return m.byMetadata(mod)
}

// byMetadata adds what the metadata of its module says of the method's token.
func (m *Method) byMetadata(mod *Module) error {
	if m.Token == 0 {
		m.Note = "it has no token"
		return nil
	}
	if mod.md == nil {
		return dump.Errorf(dump.OutOfRange, "metadata", "the metadata of %s is not in the dump", or(mod.Name, "the module"))
	}
	named, err := mod.md.Method(m.Token)
	m.take(&named)
	m.HasParams = m.HasParams && err == nil
	return err
}

// take adds the names that metadata gives.
func (m *Method) take(named *metadata.Method) {
	if m.Name = named.Name; m.Name != "" {
		m.Type = joinDot(named.Namespace, named.Type)
		m.Params, m.HasParams = named.Params, named.Signature == nil
	}
}

func joinDot(ns, name string) string {
	if ns == "" {
		return name
	}
	return ns + "." + name
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// methodArgs names the generic arguments of a method.
func (r *Runtime) methodArgs(a *access, md uint64) []string {
	n := a.u16(md, "InstantiatedMethodDesc", "NumGenericArgs")
	if n == 0 || a.err != nil {
		a.err = nil // without them the method is known all the same
		return nil
	}
	args := a.ptr(md, "InstantiatedMethodDesc", "PerInstInfo")
	out := r.typeArgs(a, args, int(n), 0)
	a.err = nil
	return out
}

// cString reads a NUL-terminated UTF-8 string. Whoever watches the memory is told of
// the text alone, not of what lies behind it.
func (r *Runtime) cString(va uint64, limit int) string {
	if va == 0 {
		return ""
	}
	b := make([]byte, limit)
	read := r.memory().ReadAt
	w := dump.WatcherOf(r.memory())
	if w != nil {
		read = w.ReadAhead
	}
	n, _ := read(b, va)
	s := cursor.CString(b[:n])
	if w != nil {
		w.Used(va, min(n, len(s)+1))
	}
	if len(s) == n && n < limit {
		return "" // cut off by the end of what the dump holds
	}
	return strings.ToValidUTF8(s, "?")
}

// aheadOfTime names code that was compiled ahead of time in an image that may be in
// no list of modules: by the tables of that image.
func (r *Runtime) aheadOfTime(c Code, ip uint64) (*Method, error) {
	m := &Method{Kind: KindR2R, Source: r.source()}
	mod, err := r.module(c.Module)
	m.Module, m.MVID = mod.Name, mod.MVID
	if err == nil && mod.Base == c.Base {
		var tables *Ahead
		if tables, err = mod.aheadOfTime(&r.ahead); err == nil {
			if named := tables.Method(ip); named != nil {
				return named, nil
			}
		}
	}
	m.Note = "the tables of the image do not tell the method"
	if err != nil {
		m.Note = dump.AsError(err).Detail()
	}
	return m, err
}
