package triage

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// A minidump of two comment streams alone: CommentA (10) and CommentW (11).
func TestComments(t *testing.T) {
	for _, c := range []struct {
		a, w string
		want []string
	}{
		{"", "", nil},
		{"*** tool\n", "", []string{"*** tool"}},
		{"same", "same", []string{"same"}},
		{"ansi", "wide \n", []string{"ansi", "wide"}},
	} {
		le := binary.LittleEndian
		b := append([]byte("MDMP"), 0x93, 0xa7, 0, 0)
		b = le.AppendUint32(b, 2)  // streams
		b = le.AppendUint32(b, 32) // directory
		b = append(b, make([]byte, 16)...)
		a := append([]byte(c.a), 0)
		var w []byte
		for _, r := range c.w + "\x00" {
			w = le.AppendUint16(w, uint16(r))
		}
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 10), uint32(len(a))), 56)
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 11), uint32(len(w))), uint32(56+len(a)))
		b = append(append(b, a...), w...)
		d := openBytes(t, "app.dmp", bytes.Clone(b))
		if got := d.Describe(0).Comments; !slices.Equal(got, c.want) {
			t.Errorf("%q, %q: %q, want %q", c.a, c.w, got, c.want)
		}
	}
}
