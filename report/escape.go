package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// clean makes a string from a dump safe to print: whatever is not printable -
// control characters that a terminal acts on, direction marks that reorder a
// line, bytes that are not UTF-8 - comes out as an escape.
func clean(s string) string {
	safe := true
	for i := 0; i < len(s) && safe; i++ {
		safe = s[i] >= 0x20 && s[i] < 0x7f
	}
	if safe {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}
