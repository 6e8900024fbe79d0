package crash

import (
	"encoding/binary"
	"slices"
	"strings"

	"dumptriage/internal/cursor"
	"dumptriage/report/codes"
	"dumptriage/symbols/undname"
)

// Thrown is the object of a language's exception, as far as its memory is in
// the dump.
type Thrown struct {
	Types   []string // its type and the types it can be caught as, "" none known
	Message string   // what() of a std::exception
	HResult uint32   // of a CLR exception
	HasHR   bool
	// ByHResult are the types that have HResult by default, where the object was not
	// read: it is of one of them, of one derived from them, or its code set HResult.
	ByHResult []string
	Address   uint64 // of the object, 0 unknown
	Again     bool   // raised again by "throw;": the object is that of a record on the stack
}

// Managed is a .NET exception as the runtime's own memory has it.
type Managed struct {
	Types   []string // its type and its bases, the type first
	Message string
	HResult uint32
	HasHR   bool
	Address uint64 // of the object, 0 unknown
}

// SetManaged puts what was read of the exception object in the place of what the
// exception record tells. It does nothing to a crash that is no .NET exception.
func (v *Verdict) SetManaged(m Managed) {
	if v == nil || v.Class != CLRException || len(m.Types) == 0 {
		return
	}
	t := &Thrown{Types: m.Types, Message: m.Message, HResult: m.HResult, HasHR: m.HasHR, Address: m.Address}
	if old := v.Thrown; old != nil && !t.HasHR {
		t.HResult, t.HasHR = old.HResult, old.HasHR
	}
	v.Thrown = t
}

const (
	maxCatchable = 16   // types that a thrown object can be caught as
	maxTypeName  = 1024 // bytes of a decorated name
	maxMessage   = 512
)

// thrown reads the object that a C++ or CLR exception carries.
func (j *judge) thrown() {
	switch c := j.crash; c.Code {
	case codeCxx:
		j.v.Thrown = j.msvcObject(c.Parameters)
	case codeGCC:
		j.v.Thrown = j.itaniumObject(c.Parameters)
	case codeCLR, codeCLROld:
		if len(c.Parameters) > 0 {
			hr := uint32(c.Parameters[0])
			j.v.Thrown = &Thrown{HResult: hr, HasHR: true, ByHResult: codes.CLRExceptions(hr)}
		}
		j.managedObject()
	}
	j.badAlloc()
}

// badAlloc tells a C++ exception that says that memory could not be had.
func (j *judge) badAlloc() {
	if t := j.v.Thrown; t != nil && j.v.Class == CxxException && slices.Contains(t.Types, "std::bad_alloc") {
		j.v.Class = OutOfMemory
	}
}

// managedObject takes what the runtime's memory has of a CLR exception, if it is of
// the HRESULT that was raised: else it is another that the thread had thrown before.
func (j *judge) managedObject() {
	if j.thread == nil || j.thread.Managed == nil || j.thread.Managed.Exception == nil {
		return
	}
	e := j.thread.Managed.Exception
	if t := j.v.Thrown; e.Type == "" || t != nil && e.HasHR && e.HResult != t.HResult {
		return
	}
	j.v.SetManaged(Managed{Types: append([]string{e.Type}, e.Bases...), Message: e.Message, HResult: e.HResult, HasHR: e.HasHR, Address: e.Address})
}

// msvcObject reads what _CxxThrowException passes: a magic number, the object,
// its ThrowInfo, and on 64-bit systems the base that ThrowInfo's fields are
// relative to.
func (j *judge) msvcObject(params []uint64) *Thrown {
	const magicLow, magicHigh = 0x19930520, 0x19930522
	if len(params) < 3 || params[0] < magicLow || params[0] > magicHigh {
		return nil
	}
	base := uint64(0)
	if j.arch.PointerSize() == 8 {
		if len(params) < 4 {
			return nil
		}
		base = params[3]
	}
	t := &Thrown{Address: j.arch.Narrow(params[1])}
	info, ok := j.words(j.arch.Narrow(params[2]), 4) // attributes, destructor, compatibility, types
	if !ok || info[3] == 0 {
		return t
	}
	array := base + uint64(info[3])
	count, ok := j.words(array, 1)
	if !ok {
		return t
	}
	n := min(int(count[0]), maxCatchable)
	for i := 0; i < n; i++ {
		at, ok := j.words(array+4+4*uint64(i), 1)
		if !ok {
			break
		}
		// properties, type, then where the part lies in the object: mdisp, pdisp, vdisp
		part, ok := j.words(base+uint64(at[0]), 3)
		if !ok {
			break
		}
		name := j.typeName(base + uint64(part[1]))
		if name == "" {
			continue
		}
		t.Types = append(t.Types, name)
		if name == "std::exception" {
			t.Message = j.what(t.Address + uint64(int64(int32(part[2]))))
		}
	}
	if len(t.Types) > 0 && (t.Types[0] == "char *" || t.Types[0] == "char const *") {
		t.Message = j.stringAt(t.Address)
	}
	return t
}

// words reads n 32-bit words of an image.
func (j *judge) words(va uint64, n int) ([]uint32, bool) {
	b := make([]byte, 4*n)
	if j.mem.Code(b, va) != len(b) {
		return nil, false
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out, true
}

// pointer reads a pointer from memory.
func (j *judge) pointer(va uint64) (uint64, bool) {
	b := make([]byte, j.arch.PointerSize())
	if n, _ := j.mem.ReadAt(b, va); n != len(b) {
		return 0, false
	}
	return cursor.New(b, "memory", 0).Pointer(len(b)), true
}

// typeName reads the name of a TypeDescriptor: two pointers, then the name.
func (j *judge) typeName(va uint64) string {
	return readableType(j.cString(va+2*uint64(j.arch.PointerSize()), maxTypeName))
}

// readableType takes the decoration off a type descriptor's name, ".?AVbad@@".
func readableType(name string) string {
	if !strings.HasPrefix(name, ".") {
		return ""
	}
	// As the type of a variable x it can be undecorated whatever it is.
	s, err := undname.Demangle("?x@@3"+variableType(name[1:])+"A", undname.Options{})
	if err != nil {
		return ""
	}
	s = strings.TrimSpace(strings.TrimSuffix(s, "x"))
	for _, kind := range []string{"class ", "struct ", "union ", "enum "} {
		s = strings.ReplaceAll(s, kind, "")
	}
	return s
}

// variableType drops the ?A in front of a class's name, which says "not const".
func variableType(s string) string { return strings.TrimPrefix(s, "?A") }

// what reads the message of a std::exception, which keeps it as a C string
// behind its table of virtual functions.
func (j *judge) what(object uint64) string {
	return j.stringAt(object + uint64(j.arch.PointerSize()))
}

// stringAt reads the string that the pointer at va points to.
func (j *judge) stringAt(va uint64) string {
	p, ok := j.pointer(va)
	if !ok || p < nullPage {
		return ""
	}
	return j.cString(p, maxMessage)
}

// cString reads a C string of memory or an image.
func (j *judge) cString(va uint64, limit int) string {
	b := make([]byte, limit)
	n := j.mem.Code(b, va)
	s := cursor.CString(b[:n])
	if len(s) == n && n < limit {
		return "" // cut off by the end of what the dump holds
	}
	return strings.ToValidUTF8(s, "?")
}

// itaniumObject reads what GCC's and Clang's runtimes throw on Windows: the
// first parameter points to the header of the exception. In front of it, the
// Itanium ABI puts the type; behind it lies the object.
func (j *judge) itaniumObject(params []uint64) *Thrown {
	if len(params) == 0 || j.arch.PointerSize() != 8 {
		return nil
	}
	const typeBefore, headerSize = 80, 64
	t := &Thrown{Address: params[0] + headerSize}
	info, ok := j.pointer(params[0] - typeBefore)
	if !ok {
		return t
	}
	name, ok := j.pointer(info + 8)
	if !ok {
		var b [8]byte
		if j.mem.Code(b[:], info+8) != len(b) {
			return t
		}
		name = binary.LittleEndian.Uint64(b[:])
	}
	if s := itaniumType(j.cString(name, maxTypeName)); s != "" {
		t.Types = []string{s}
		if strings.HasPrefix(s, "std::") {
			t.Message = j.what(t.Address)
		}
	}
	return t
}

// itaniumType reads the encodings of type names that exceptions have: plain,
// in std, or nested. Others are given as they are.
func itaniumType(s string) string {
	orig, prefix := s, ""
	if rest, ok := strings.CutPrefix(s, "St"); ok {
		s, prefix = rest, "std::"
	}
	if rest, ok := strings.CutPrefix(s, "N"); ok && strings.HasSuffix(rest, "E") {
		s = strings.TrimSuffix(rest, "E")
		if rest, ok := strings.CutPrefix(s, "St"); ok {
			s, prefix = rest, "std::"
		}
	}
	var parts []string
	for s != "" {
		n, i := 0, 0
		for i < len(s) && i < 4 && s[i] >= '0' && s[i] <= '9' {
			n = 10*n + int(s[i]-'0')
			i++
		}
		if n == 0 || i+n > len(s) {
			return orig
		}
		parts, s = append(parts, s[i:i+n]), s[i+n:]
	}
	return prefix + strings.Join(parts, "::")
}

// delayLoaded names the module and procedure that a delay load did not find,
// from the DelayLoadInfo that the first parameter points to.
func (j *judge) delayLoaded() string {
	c := j.crash
	if len(c.Parameters) == 0 {
		return ""
	}
	size := uint64(j.arch.PointerSize())
	at := j.arch.Narrow(c.Parameters[0])
	// size, descriptor, address of the function's pointer, module, by name, name
	dll, ok := j.pointer(at + 3*size)
	if !ok {
		return ""
	}
	detail := j.cString(dll, maxText)
	if c.Code == codeDelayProcedure {
		if byName, ok := j.pointer(at + 4*size); ok && uint32(byName) != 0 {
			if name, ok := j.pointer(at + 5*size); ok {
				detail += "!" + j.cString(name, maxText)
			}
		}
	}
	return detail
}
