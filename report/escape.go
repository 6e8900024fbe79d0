package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
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

// Message makes a message of an error or a warning safe to print, as all texts are: names
// of files and texts from databases stand in it. It may have several lines.
func Message(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// printable rewrites JSON text so that it holds only printable characters and
// means the same: encoding/json leaves C1 controls and direction marks as they
// are, and a terminal that shows the JSON acts on them.
func printable(text []byte) []byte {
	i := 0
	for i < len(text) && text[i] < 0x7f {
		i++
	}
	if i == len(text) {
		return text
	}
	out := append(make([]byte, 0, len(text)+16), text[:i]...)
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r < 0x7f || strconv.IsPrint(r):
			out = append(out, text[i:i+n]...)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		}
		i += n
	}
	return out
}
