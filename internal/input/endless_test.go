package input

import (
	"io"
	"strings"
	"testing"

	"dumptriage/dump"
)

// endless repeats a text for ever, as a device does.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.read%len(e.text)]
		e.read++
	}
	return len(p), nil
}

// TestEndless reads no more of what cannot be a dump than tells so, and of what
// can be one no more than the limit.
func TestEndless(t *testing.T) {
	zeros := &endless{text: "\x00"}
	s, err := readAll(zeros, Options{})
	if err != nil || s.Size() != headSize || zeros.read != headSize {
		t.Errorf("of zeros: %v, %d bytes read", err, zeros.read)
	}
	for _, text := range []string{"MDMPabcd", "\x1f\x8b\x08\x00"} {
		e := &endless{text: text}
		if _, err := readAll(e, Options{MaxSize: 1 << 20}); codeOf(err) != dump.Limit || e.read > 2<<20 {
			t.Errorf("of %q: %v, %d bytes read", text, err, e.read)
		}
	}
	// Where something else than a dump is wanted, everything is read.
	s, err = readAll(strings.NewReader(strings.Repeat("x", 1000)), Options{Want: func(string) bool { return true }})
	if err != nil || s.Size() != 1000 {
		t.Errorf("of a file that is wanted: %v", err)
	}
	if b, err := io.ReadAll(s.stream()); err != nil || len(b) != 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
