package kdump

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// failing reads b up to where it fails.
type failing struct {
	b    []byte
	from int64
}

var errBroken = errors.New("broken")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from && f.from > 0 {
		return 0, errBroken
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

// TestPageCache gives the bytes and errors of the reader below, wherever a read
// begins and ends.
func TestPageCache(t *testing.T) {
	b := make([]byte, 5*pageSize+100)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	c := &pageCache{r: failing{b: b}}
	for _, size := range []int{0, 1, 8, 100, 101, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize, 6 * pageSize, 20 * pageSize} {
		for _, off := range []int64{0, 1, pageSize - 4, pageSize, 2*pageSize + 5, 5 * pageSize, 5*pageSize + 99, 5*pageSize + 100, 6 * pageSize, 1 << 40} {
			got, want := make([]byte, size), make([]byte, size)
			n, err := c.ReadAt(got, off)
			wantN, wantErr := bytes.NewReader(b).ReadAt(want, off)
			if size == 0 {
				wantN, wantErr = 0, nil
			}
			if n != wantN || (err == nil) != (wantErr == nil) || !bytes.Equal(got[:n], want[:n]) {
				t.Errorf("%d bytes at %#x: %d, %v; want %d, %v", size, off, n, err, wantN, wantErr)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %#x: %v", size, off, err)
			}
		}
	}
	c = &pageCache{r: failing{b, 2 * pageSize}}
	if n, err := c.ReadAt(make([]byte, 2*pageSize), pageSize); n != pageSize || !errors.Is(err, errBroken) {
		t.Errorf("up to the broken page: %d, %v", n, err)
	}
	if _, err := c.ReadAt(make([]byte, 1), 2*pageSize); !errors.Is(err, errBroken) {
		t.Errorf("in the broken page: %v", err)
	}
}
