package symbols

import (
	"strings"

	"github.com/ianlancetaylor/demangle"

	"dumptriage/symbols/undname"
)

// Names of other compilers are handed to a parser without limits of its own on
// the input; what it may write is 1<<maxItanium bytes.
const (
	maxMangled = 8 << 10
	maxItanium = 16
)

// exportName is what an export is called: short, and whole when that says more.
func exportName(raw string) (short, full string) {
	if short, full, ok := demangled(raw); ok {
		return short, full
	}
	return raw, ""
}

// linkerName is exportName for a public symbol, which has the decoration that the
// calling convention of a C function gives it.
func linkerName(raw string, x86 bool) (short, full string) {
	if short, full, ok := demangled(raw); ok {
		return short, full
	}
	return undname.Undecorate(raw, x86), ""
}

// sourceName is what a function is called whose name may be mangled, or a
// declaration with its arguments, as debug information of some kinds has it.
func sourceName(raw string) (short, full string) {
	if short, full, ok := demangled(raw); ok {
		return short, full
	}
	return split(withoutArguments(raw), raw)
}

// split drops a whole name that says no more than the short one.
func split(short, full string) (string, string) {
	if short == full {
		full = ""
	}
	return short, full
}

// demangled reads the names of MSVC, and of compilers that follow the Itanium ABI
// or are Rust's.
func demangled(raw string) (short, full string, ok bool) {
	switch {
	case undname.IsMangled(raw):
		full, short, err := undname.DemangleBoth(raw)
		if err != nil {
			return "", "", false
		}
		short, full = split(short, full)
		return short, full, true
	case len(raw) > maxMangled:
		return "", "", false
	case strings.HasPrefix(raw, "__Z"): // x86 puts an underscore before every name
		raw = raw[1:]
	case !strings.HasPrefix(raw, "_Z") && !strings.HasPrefix(raw, "_R"):
		return "", "", false
	}
	full, err := demangle.ToString(raw, demangle.MaxLength(maxItanium))
	if err != nil {
		return "", "", false
	}
	short, err = demangle.ToString(raw, demangle.MaxLength(maxItanium), demangle.NoParams, demangle.NoEnclosingParams)
	if err != nil || short == "" || full == "" {
		return "", "", false
	}
	short, full = split(short, full)
	return short, full, true
}

// withoutArguments cuts the list of arguments off a declaration without a result
// type: "A::f(int) const" is "A::f". The parentheses of a name stay.
func withoutArguments(name string) string {
	decl := name
	for cut := true; cut; {
		cut = false
		for _, suffix := range []string{" const", " volatile", " &&", " &", " noexcept"} {
			if s, ok := strings.CutSuffix(decl, suffix); ok {
				decl, cut = s, true
			}
		}
	}
	if !strings.HasSuffix(decl, ")") {
		return name
	}
	depth := 0
	for i := len(decl) - 1; i > 0; i-- {
		switch decl[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if short := decl[:i]; !strings.HasSuffix(short, "operator") && !strings.HasSuffix(short, ":") {
					return short
				}
				return name
			}
		}
	}
	return name
}
