package undname

import (
	"fmt"
	"strings"
	"sync"
)

// Caps on what one name may ask for. The compiler itself stops at 4096 bytes.
const (
	maxInput  = 1 << 16
	maxDepth  = 256     // types in types, names in names
	maxOutput = 1 << 16 // bytes of text
	maxSteps  = 1 << 16 // nodes written, counted since a node may be empty
)

// Options choose what is written. The zero value is llvm-undname's.
type Options struct {
	// NameOnly leaves out return types, access, calling conventions and
	// arguments: a function or variable is then its qualified name with its
	// template arguments, as a stack shows it.
	NameOnly bool
}

// Error says why a name could not be demangled.
type Error struct {
	Offset int // in the name, where reading stopped
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("undname: offset %d: %s", e.Offset, e.Reason) }

// Reasons for giving up.
const (
	reasonNotMangled = "not a decorated C++ name"
	reasonMalformed  = "malformed or unknown encoding"
	reasonTooLong    = "name too long"
	reasonTooDeep    = "nested too deeply"
	reasonTooLarge   = "back-references expand beyond the limit"
)

// IsMangled reports whether a name looks decorated by the C++ compiler.
func IsMangled(name string) bool {
	return strings.HasPrefix(name, "?") || strings.HasPrefix(name, ".?")
}

// Demangle returns the declaration that a decorated name stands for. Names begin
// with "?"; those of type descriptors with ".?". What follows a whole name is
// ignored, as linkers append to it. The error is an *Error; the string is then
// empty.
func Demangle(name string, opt Options) (string, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	sym, err := p.parse(name)
	if err != nil {
		return "", err
	}
	return p.write(sym, opt)
}

// DemangleBoth is Demangle without and with NameOnly, for the work of little more
// than one: the name is read once.
func DemangleBoth(name string) (whole, short string, err error) {
	p := parsers.Get().(*parser)
	defer p.release()
	sym, err := p.parse(name)
	if err != nil {
		return "", "", err
	}
	if whole, err = p.write(sym, Options{}); err != nil {
		return "", "", err
	}
	if short, err = p.write(sym, Options{NameOnly: true}); err != nil {
		return "", "", err
	}
	return whole, short, nil
}

// parse reads a name. The symbol lasts until release. The error is nil or an *Error.
func (p *parser) parse(name string) (*symbol, error) {
	if !IsMangled(name) {
		return nil, &Error{0, reasonNotMangled}
	}
	if len(name) > maxInput {
		return nil, &Error{maxInput, reasonTooLong}
	}
	p.in, p.base = name, name
	sym := p.top()
	if p.reason != "" {
		return nil, &Error{p.failed, p.reason}
	}
	return sym, nil
}

// write writes a symbol of the name that was read.
func (p *parser) write(sym *symbol, opt Options) (string, error) {
	w := writer{out: p.out[:0], nameOnly: opt.NameOnly}
	w.symbol(sym)
	p.out = w.out
	if w.over() {
		return "", &Error{len(p.base), reasonTooLarge}
	}
	return string(w.out), nil
}

// parsers keeps the working memory of names between calls.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// Undecorate takes the decoration off a C name by its calling convention:
// "_name@8" (__stdcall), "@name@8" (__fastcall) and "name@@8" (__vectorcall)
// become "name", and so does the "_name" of __cdecl when x86 is set: only there
// do C names have an underscore in front. Other names are returned as they are.
func Undecorate(name string, x86 bool) string {
	if strings.HasPrefix(name, "?") {
		return name
	}
	if base, ok := cutSize(name, "@@"); ok && base != "" {
		return base
	}
	if base, ok := cutSize(name, "@"); ok && x86 && len(base) > 1 && (base[0] == '_' || base[0] == '@') {
		return base[1:]
	}
	if x86 && len(name) > 1 && name[0] == '_' {
		return name[1:]
	}
	return name
}

// cutSize cuts a separator and the decimal number of argument bytes off the end.
func cutSize(name, sep string) (string, bool) {
	base := strings.TrimRight(name, "0123456789")
	if base == name || !strings.HasSuffix(base, sep) {
		return name, false
	}
	return strings.TrimSuffix(base, sep), true
}
