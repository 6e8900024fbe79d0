package input

import (
	"bytes"
	"io"
	"testing"
)

// TestPieces reads data of several pieces, as written in odd portions, back at
// every kind of edge.
func TestPieces(t *testing.T) {
	want := make([]byte, 3*pieceSize+77)
	for i := range want {
		want[i] = byte(i*7 + i>>9)
	}
	m := &memory{}
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 100_003)
		m.append(rest[:n])
		rest = rest[n:]
	}
	if m.Size() != int64(len(want)) {
		t.Fatalf("%d bytes of %d", m.Size(), len(want))
	}
	for _, c := range []struct{ off, n int }{
		{0, len(want)}, {pieceSize - 1, 2}, {pieceSize, pieceSize}, {pieceSize + 5, 2 * pieceSize}, {3 * pieceSize, 77}, {len(want) - 1, 1},
	} {
		p := make([]byte, c.n)
		if n, err := m.ReadAt(p, int64(c.off)); n != c.n || err != nil || !bytes.Equal(p, want[c.off:c.off+c.n]) {
			t.Errorf("%d bytes at %d: %d, %v", c.n, c.off, n, err)
		}
	}
	p := make([]byte, 100)
	if n, err := m.ReadAt(p, int64(len(want)-10)); n != 10 || err != io.EOF || !bytes.Equal(p[:10], want[len(want)-10:]) {
		t.Errorf("past the end: %d, %v", n, err)
	}
	if got, err := io.ReadAll(m.stream()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the stream differs: %v", err)
	}
}
