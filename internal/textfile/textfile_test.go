package textfile

import (
	"io"
	"strings"
	"testing"
)

func TestUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"a\n":                           "a\n",
		"\xef\xbb\xbfa\n":               "a\n",         // UTF-8 with its mark, as Notepad wrote it
		"\xff\xfea\x00\n\x00":           "a\n",         // little-endian, as PowerShell writes it
		"\xfe\xff\x00a\x00\n":           "a\n",         // big-endian
		"\xff\xfe\x3d\xd8\x00\xdea\x00": "\U0001f600a", // a surrogate pair
		"\xff\xfe\x3d\xd8":              "\ufffd",      // half of one
		"\xff\xfea\x00b":                "a",           // an odd byte
	} {
		got, err := io.ReadAll(UTF8(strings.NewReader(in)))
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}
