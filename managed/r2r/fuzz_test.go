package r2r

import (
	"bytes"
	"errors"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
	"dumptriage/pdata"
)

func reader(b []byte) *chunk.Reader { return chunk.New(bytes.NewReader(b), int64(len(b))) }

// ask opens an image and asks for everything. Errors must be *dump.Error values with a stream.
func ask(t testing.TB, b []byte) {
	check := func(err error) {
		var e *dump.Error
		if err != nil && (!errors.As(err, &e) || e.Stream == "") {
			t.Errorf("error without a place: %v", err)
		}
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "r2r.dll")
	if err != nil {
		return
	}
	r, err := Open(im)
	check(err)
	if err != nil {
		return
	}
	entries, err := r.Entries()
	check(err)
	for i, e := range entries {
		if i == 100 {
			break
		}
		_, _, err := r.Lookup(e.Start + 1)
		check(err)
	}
	_, _, err = r.Lookup(base + 0x95)
	check(err)
	r.Owner()
	r.Compiler()
	for i := range len(r.Components()) + 2 {
		_, err := r.Metadata(i)
		check(err)
	}
}

func TestChangedBytes(t *testing.T) {
	whole := small().bytes()
	for i := 0x400; i < len(whole); i++ {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] = v
			ask(t, b)
		}
	}
	for n := range whole {
		ask(t, whole[:n])
	}
}

func FuzzReadyToRun(f *testing.F) {
	f.Add(small().bytes())
	w := newImage()
	w.section(secFunctions, functions(5))
	w.section(secComponents, le(4, 0, 0, base, 20, base, 72, base, 20))
	f.Add(w.bytes())
	f.Fuzz(func(t *testing.T, b []byte) { ask(t, b) })
}
