package cursor

import "testing"

// ASCII text takes a path of its own; it must end at the same places.
func TestUTF16(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"a":                             "", // half a character
		"a\x00b\x00":                    "ab",
		"a\x00b\x00c":                   "ab",
		"a\x00\x00\x00b\x00":            "a", // ends at the NUL
		"\x00\x00a\x00":                 "",
		"a\x00\xfc\x00":                 "aü", // above ASCII, in one byte
		"\x03\x26\x00\x00a\x00":         "☃",
		"\x3d\xd8\x00\xde":              "😀",
		"a\x00\x3d\xd8":                 "a\ufffd", // half a surrogate pair
		"a\x00\x00\x01":                 "aĀ",      // low byte zero is no NUL
		"x\x00\x00\x00\x3d\xd8\x00\xde": "x",
	} {
		if got := UTF16([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
