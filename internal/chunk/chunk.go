// Package chunk reads small records out of something large through a small cache,
// and reads round bytes that are missing.
package chunk

import (
	"io"
	"sync/atomic"

	"dumptriage/internal/cursor"
)

// Reads are of a few bytes and cluster: rows of a search, names of one type.
const (
	Size       = 1024 // bytes of a chunk: what one read through the cache has at most
	cachedMost = 256  // 256 KiB for each reader in use
)

// chunk is a whole chunk that could be read. It is never changed.
type chunk struct {
	number int64
	bytes  []byte
}

// Reader reads a file of size bytes. It is safe for concurrent use.
type Reader struct {
	r     io.ReaderAt
	size  int64
	exact bool // nothing is read ahead
	cache [cachedMost]atomic.Pointer[chunk]
}

// New returns a reader of size bytes of r.
// Where somebody watches which bytes are used, as r's method Watched tells, nothing is
// read but what is asked for.
func New(r io.ReaderAt, size int64) *Reader {
	w, ok := r.(interface{ Watched() bool })
	return &Reader{r: r, size: size, exact: ok && w.Watched()}
}

// Size returns how many bytes there are to read, of which some may be missing.
func (d *Reader) Size() int64 { return d.size }

// At returns a cursor over n bytes from off on, fewer at the end of the file. What is
// in a chunk with missing bytes is read by itself, so that a missing page costs no
// more than what lies in it.
func (d *Reader) At(off, n int64, stream string) *cursor.Cursor {
	if c := d.cached(off, n, stream); c != nil {
		return c
	}
	return cursor.At(d.r, d.size, off, n, stream)
}

// UpTo returns the bytes that are there from off on, n at most, and when they are
// fewer a cursor's error that says why.
func (d *Reader) UpTo(off, n int64, stream string) ([]byte, error) {
	if c := d.cached(off, n, stream); c != nil {
		return c.Bytes(int(n)), nil
	}
	b := make([]byte, max(0, min(n, d.size-off)))
	got, _ := d.r.ReadAt(b, off)
	if int64(got) == n {
		return b, nil
	}
	c := cursor.At(d.r, d.size, off+int64(got), n-int64(got), stream)
	c.Skip(int(n) - got)
	return b[:got], c.Err()
}

// cached returns a cursor at off when n bytes there lie in one whole chunk.
func (d *Reader) cached(off, n int64, stream string) *cursor.Cursor {
	k := off / Size
	if d.exact || off < 0 || n < 1 || n > Size || off > d.size-n || k != (off+n-1)/Size {
		return nil
	}
	b, ok := d.chunk(k)
	if !ok {
		return nil
	}
	whole := cursor.New(b, stream, k*Size)
	whole.Seek(int(off - k*Size))
	return cursor.New(whole.Bytes(int(n)), stream, off)
}

// chunk returns a chunk's bytes; false when some are missing.
func (d *Reader) chunk(k int64) ([]byte, bool) {
	slot := &d.cache[k%cachedMost]
	if c := slot.Load(); c != nil && c.number == k {
		return c.bytes, c.bytes != nil
	}
	b := make([]byte, min(Size, d.size-k*Size))
	if n, _ := d.r.ReadAt(b, k*Size); n < len(b) {
		b = nil // remembered, so that it is not tried for each row
	}
	slot.Store(&chunk{k, b})
	return b, b != nil
}
