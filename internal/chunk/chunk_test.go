package chunk

import (
	"bytes"
	"errors"
	"testing"

	"dumptriage/dump"
)

var errHole = errors.New("hole")

// holed is a file in which bytes from..to are missing; it counts reads.
type holed struct {
	bytes    []byte
	from, to int64
	reads    *int
}

func (h holed) ReadAt(p []byte, off int64) (int, error) {
	*h.reads++
	for i := range p {
		at := off + int64(i)
		if at >= int64(len(h.bytes)) || at >= h.from && at < h.to {
			return i, errHole
		}
		p[i] = h.bytes[at]
	}
	return len(p), nil
}

// ramp is bytes of which neighbours and chunks differ.
func ramp(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8*7)
	}
	return b
}

// Whatever is asked for comes as it lies in the file, and nothing behind it: within a
// chunk, across two, over many, and at the end.
func TestAt(t *testing.T) {
	file := ramp(3*Size + 100)
	d := New(bytes.NewReader(file), int64(len(file)))
	for _, tt := range []struct{ off, n int64 }{
		{0, 1}, {0, Size}, {5, 20}, {Size - 1, 1}, {Size - 1, 2}, {Size, 4}, {10, 2 * Size}, {3 * Size, 100}, {3*Size + 99, 1}, {0, int64(len(file))},
	} {
		for range 2 { // read, then from the cache
			c := d.At(tt.off, tt.n, "test")
			if got := c.Bytes(int(tt.n)); !bytes.Equal(got, file[tt.off:tt.off+tt.n]) || c.FileOffset() != tt.off+tt.n {
				t.Errorf("%+v: % .10x, %v, at %#x", tt, got, c.Err(), c.FileOffset())
			}
			if c.U8(); c.Err() == nil {
				t.Errorf("%+v: a byte more than was asked for", tt)
			}
		}
	}
	for _, tt := range []struct{ off, n int64 }{{-1, 4}, {int64(len(file)) + 1, 1}, {1 << 62, 4}} {
		if c := d.At(tt.off, tt.n, "test"); c.U8() != 0 || dump.AsError(c.Err()).Code != dump.OutOfRange {
			t.Errorf("%+v: %v", tt, c.Err())
		}
	}
	if c := d.At(int64(len(file))-2, 4, "test"); c.U16() == 0 || c.U8() != 0 || dump.AsError(c.Err()).Code != dump.Truncated {
		t.Errorf("end: %v", c.Err())
	}
}

// What lies beside a hole in the same chunk is read; what needs the hole says so.
func TestHole(t *testing.T) {
	file, reads := ramp(2*Size), 0
	d := New(holed{file, 100, 200, &reads}, int64(len(file)))
	for _, tt := range []struct {
		off, n int64
		there  int
	}{{0, 100, 100}, {200, 50, 50}, {90, 20, 10}, {100, 1, 0}, {Size, 10, 10}} {
		b, err := d.UpTo(tt.off, tt.n, "test")
		if !bytes.Equal(b, file[tt.off:tt.off+int64(tt.there)]) || (err == nil) != (int64(tt.there) == tt.n) {
			t.Errorf("%+v: %d bytes, %v", tt, len(b), err)
		}
		if err != nil && (!errors.Is(err, errHole) || dump.AsError(err).Offset != tt.off+int64(tt.there)) {
			t.Errorf("%+v: %v does not say where the hole is", tt, err)
		}
		if c := d.At(tt.off, tt.n, "test"); (c.Err() == nil) != (int64(tt.there) == tt.n) {
			t.Errorf("%+v: %v", tt, c.Err())
		}
	}
}

// A chunk is read once, also when it has a hole, which is not tried again as a whole.
func TestReads(t *testing.T) {
	file, reads := ramp(2*Size), 0
	d := New(holed{file, Size + 100, Size + 200, &reads}, int64(len(file)))
	for i := range int64(50) {
		d.At(i, 4, "test")
	}
	if reads != 1 {
		t.Errorf("%d reads of one chunk", reads)
	}
	reads = 0
	for i := range int64(50) {
		d.At(Size+i, 4, "test")
	}
	if reads != 51 {
		t.Errorf("%d reads; want one of the chunk, and one for each record beside its hole", reads)
	}
}
