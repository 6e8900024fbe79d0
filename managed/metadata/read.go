package metadata

import (
	"sync/atomic"

	"dumptriage/internal/cursor"
)

// Reads are of a few bytes and cluster: rows of a search, names of one type. They go
// through a small cache of chunks.
const (
	chunkSize  = 1024
	cachedMost = 256 // 256 KiB for each metadata in use
)

// chunk is a whole chunk that could be read. It is never changed.
type chunk struct {
	number int64
	bytes  []byte
}

type chunkCache [cachedMost]atomic.Pointer[chunk]

// at returns a cursor at off of the metadata, to read up to n bytes there. What is
// in a chunk with missing bytes is read by itself, so that a missing page costs no
// more than what lies in it.
func (m *Metadata) at(off, n int64, stream string) *cursor.Cursor {
	if c := m.cached(off, n, stream); c != nil {
		return c
	}
	return cursor.At(m.r, m.size, off, n, stream)
}

// upTo returns the bytes that are there from off on, n at most, and when they are
// fewer a cursor's error that says why.
func (m *Metadata) upTo(off, n int64, stream string) ([]byte, error) {
	if c := m.cached(off, n, stream); c != nil {
		return c.Bytes(int(n)), nil
	}
	b := make([]byte, max(0, min(n, m.size-off)))
	got, _ := m.r.ReadAt(b, off)
	if int64(got) == n {
		return b, nil
	}
	c := cursor.At(m.r, m.size, off+int64(got), n-int64(got), stream)
	c.Skip(int(n) - got)
	return b[:got], c.Err()
}

// cached returns a cursor at off when n bytes there lie in one whole chunk.
func (m *Metadata) cached(off, n int64, stream string) *cursor.Cursor {
	k := off / chunkSize
	if off < 0 || n < 1 || n > chunkSize || off > m.size-n || k != (off+n-1)/chunkSize {
		return nil
	}
	b, ok := m.chunk(k)
	if !ok {
		return nil
	}
	c := cursor.New(b, stream, k*chunkSize)
	c.Seek(int(off - k*chunkSize))
	return c
}

// chunk returns a chunk's bytes; false when some are missing.
func (m *Metadata) chunk(k int64) ([]byte, bool) {
	slot := &m.cache[k%cachedMost]
	if c := slot.Load(); c != nil && c.number == k {
		return c.bytes, c.bytes != nil
	}
	b := make([]byte, min(chunkSize, m.size-k*chunkSize))
	if n, _ := m.r.ReadAt(b, k*chunkSize); n < len(b) {
		b = nil // remembered, so that it is not tried for each row
	}
	slot.Store(&chunk{k, b})
	return b, b != nil
}
