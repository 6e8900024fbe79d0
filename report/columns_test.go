package report

import (
	"strings"
	"testing"
)

// Widths by Unicode's EastAsianWidth.txt: W and F take two columns, marks none.
func TestColumns(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "über": 4, "日本語": 6, "한글": 4, "ＡＢ": 4, "ｱｲ": 2, "e\u0301": 1, "a\u200bb": 2, "😀": 2, "Пример": 6, "中a": 3,
	} {
		if got := columns(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if got := cut("日本語のパス", 5); got != "日本..." {
		t.Errorf("cut in the middle of a character: %q", got)
	}
	if got := cut("日本語", 6); got != "日本語" {
		t.Errorf("cut what fits: %q", got)
	}
	for _, line := range wrap(strings.Repeat("日本 ", 20), 12) {
		if columns(line) > 12 {
			t.Errorf("%q is wider than 12 columns", line)
		}
	}
}

// A table's columns line up where a cell has wide characters.
func TestWideCells(t *testing.T) {
	var b strings.Builder
	w := newText(&b, Options{}, 0)
	w.table([]string{"Name", "Size"}, func(add func(cells ...string)) { add("日本", "1"); add("abcdef", "2") })
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	at := -1
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, "\n")
		last := columns(line[:strings.LastIndex(line, " ")])
		if at >= 0 && last != at {
			t.Errorf("%q", b.String())
		}
		at = last
	}
}
