package report

import (
	"bytes"
	"strings"
	"testing"

	"dumptriage/dump"
)

// TestTableWidth keeps one name that is far too long from padding every row.
func TestTableWidth(t *testing.T) {
	var out bytes.Buffer
	x := newText(&out, Options{}, dump.AMD64)
	long := strings.Repeat("é", 32000)
	x.table([]string{"a", "b", "c"}, func(add func(...string)) {
		add(long, "", "1")
		for range 1000 {
			add("x", "", "1")
		}
	})
	if err := x.flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	pad := strings.Repeat(" ", widestCell+1)
	for i, want := range []string{"a" + pad + "c", long + "  1", "x" + pad + "1"} {
		if lines[i] != want {
			t.Errorf("line %d has %d bytes: %.100q", i, len(lines[i]), lines[i])
		}
	}
}
