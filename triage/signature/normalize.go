package signature

import (
	"regexp"
	"strings"
)

// What compilers put into names that another build, or another compiler, puts
// differently.
var decorations = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\[clone [^\]]*\]`), ""},
	{regexp.MustCompile(`(\.(cold|part|constprop|isra|lto_priv|llvm)(\.\d+)*)+$`), ""},
	{regexp.MustCompile(`::h[0-9a-f]{16}$`), ""},                             // Rust's hash of a crate's build
	{regexp.MustCompile(`(\$(?:filt|fin|catch|dtor|unwind))\$\d+$`), "$1"},   // handlers that are functions
	{regexp.MustCompile(`\?A0x[0-9a-fA-F]{1,8}`), "`anonymous namespace'"},   // numbered by the file's path
	{regexp.MustCompile(`\(anonymous namespace\)`), "`anonymous namespace'"}, // as GCC's names are written
	{regexp.MustCompile("`\\d+'"), "`N'"},                                    // a scope within a function
	{regexp.MustCompile(`lambda_[0-9a-f]{8,40}|lambda_\d+|lambda\(.*?\)#\d+`), "lambda"},
	{regexp.MustCompile(`\{lambda.*?#\d+\}`), "<lambda>"},
}

// maxNormalized bounds the work on one name: a hostile symbol file may hold
// names of any length.
const maxNormalized = 4096

// Normalize takes from a function's name what depends on the build and not on
// the source: numbers of lambdas and scopes, hashes, marks of code that was moved
// away from its function; and the arguments of templates, which are written <T>,
// since one fault shows in many instances.
func Normalize(name string) string {
	if len(name) > maxNormalized {
		name = cut(name, maxNormalized)
	}
	if strings.ContainsAny(name, ".`$?:{([") || strings.Contains(name, "lambda") {
		for i := range decorations {
			name = decorations[i].find.ReplaceAllString(name, decorations[i].with)
		}
	}
	return strings.TrimSpace(hideTemplateArguments(name))
}

// hideTemplateArguments writes <T> for the outermost arguments of templates. The
// operators made of angle brackets are not that, nor is a name in angle brackets
// that begins a part, such as <lambda>.
func hideTemplateArguments(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	var out strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		if depth == 0 && (i == 0 || !inName(s[i-1])) {
			if n := operatorLength(s[i:]); n > 0 {
				out.WriteString(s[i : i+n])
				i += n - 1
				continue
			}
		}
		switch c := s[i]; {
		case c == '<' && depth == 0 && beginsPart(s, i):
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				out.WriteString(s[i:])
				return out.String()
			}
			out.WriteString(s[i : i+end+1])
			i += end
		case c == '<':
			if depth == 0 {
				out.WriteString("<T")
			}
			depth++
		case c == '>' && depth > 0 && s[i-1] != '-': // -> is no bracket
			if depth--; depth == 0 {
				out.WriteByte('>')
			}
		case depth == 0:
			out.WriteByte(c)
		}
	}
	if depth > 0 {
		out.WriteByte('>')
	}
	return out.String()
}

// beginsPart reports whether the bracket at i follows no name.
func beginsPart(s string, i int) bool { return i == 0 || strings.IndexByte(":`'!( ", s[i-1]) >= 0 }

// inName reports whether a byte is one of an identifier's: the name of a function may
// end in "operator" and be none.
func inName(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// operatorLength is the length of an operator's name with angle brackets in it
// that s begins with, else 0.
func operatorLength(s string) int {
	const word = "operator"
	if !strings.HasPrefix(s, word) {
		return 0
	}
	for _, op := range []string{"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"} {
		if strings.HasPrefix(s[len(word):], op) {
			return len(word) + len(op)
		}
	}
	return 0
}
