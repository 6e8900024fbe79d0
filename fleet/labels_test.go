package fleet

import (
	"io"
	"strings"
	"testing"
	"unicode/utf16"
)

// utf16LE is a text as Windows editors write it.
func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestReadLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Labels
		err  string // a part of it
	}{
		"tab and comma":     {"# people's words\n\na\tone\n b,c , two \n", Labels{"a": "one", "b,c": "two"}, ""},
		"UTF-16":            {utf16LE("a\tone\r\nb\tzwölf\r\n"), Labels{"a": "one", "b": "zwölf"}, ""},
		"said twice":        {"a\tone\na\tone\n", Labels{"a": "one"}, ""},
		"no fault":          {"a\tone\nb\n", nil, "F:2: wants"},
		"no key":            {"\tone\n,two", nil, "F:1: wants"},
		"two faults of one": {"a\tone\nb\ttwo\na\tthree\n", nil, `F:3: a is "three" here and "one" above`},
		"endless line":      {"a\tone\n" + strings.Repeat("x", maxLine+1), nil, "F:2: "},
	} {
		got, err := ReadLabels(strings.NewReader(tc.text), "F")
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
			continue
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		for k, v := range tc.want {
			if got[k] != v {
				t.Errorf("%s: %q is %q, want %q", name, k, got[k], v)
			}
		}
	}
	if _, err := ReadLabels(io.LimitReader(zeros{}, 1<<30), "F"); err == nil {
		t.Error("a line without end is no error")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
