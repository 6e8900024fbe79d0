package report

import (
	"slices"
	"testing"

	"dumptriage/report/codes"
)

// What this program says itself of bugchecks has nothing that redaction takes for a path
// or a name.
func TestRedactionKeepsOwnWords(t *testing.T) {
	keeps := func(code uint32, text string) {
		if got := NewRedactor().Text(text); got != text {
			t.Errorf("%#x: %q became %q", code, text, got)
		}
	}
	seen := 0
	for code := range uint32(0x3000) {
		text := codes.BugCheckTextOf(code, 0)
		for _, s := range append(slices.Clone(text.Steps), text.Summary) {
			keeps(code, s)
			seen++
		}
		for parameter := range 4 {
			for value := range uint64(0x40) {
				var values [4]uint64
				values[parameter] = value
				if v, ok := codes.BugCheckValueOf(code, parameter, values); ok {
					keeps(code, v.Text)
				}
			}
		}
		params, _ := codes.BugCheckParams(code, [4]uint64{})
		for _, p := range params {
			keeps(code, p.Meaning)
		}
	}
	if seen < 400 {
		t.Errorf("%d texts were looked at", seen)
	}
}
