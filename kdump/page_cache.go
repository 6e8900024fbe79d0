package kdump

import (
	"errors"
	"io"
	"sync"
)

// pageCache keeps the pages of a file that were read last: page tables, the
// structures of lists and stacks are read a few bytes at a time. It is safe for
// concurrent use.
type pageCache struct {
	r     io.ReaderAt
	mu    sync.Mutex
	slots []filePage // direct-mapped, by page number
}

// filePage is a page of the file; the last one may be short.
type filePage struct {
	key int64 // page number + 1, 0 empty
	n   int
	b   *[pageSize]byte
}

const (
	filePages = 2048 // 8 MB
	// uncached is the size of reads from which on they go past the cache.
	uncached = 16 * pageSize
)

// ReadAt implements io.ReaderAt.
func (c *pageCache) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > uncached || off < 0 {
		return c.r.ReadAt(p, off)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for done < len(p) {
		at := off + int64(done)
		page, err := c.page(at >> pageShift)
		if err != nil {
			return done, err
		}
		skip := int(at & (pageSize - 1))
		if skip >= page.n {
			return done, io.EOF
		}
		n := copy(p[done:], page.b[skip:page.n])
		done += n
		if done < len(p) && skip+n < pageSize {
			return done, io.EOF
		}
	}
	return done, nil
}

// page returns a page of the file. The caller holds the lock.
func (c *pageCache) page(number int64) (*filePage, error) {
	if c.slots == nil {
		c.slots = make([]filePage, filePages)
	}
	slot := &c.slots[number%filePages]
	if slot.key == number+1 {
		return slot, nil
	}
	if slot.b == nil {
		slot.b = new([pageSize]byte)
	}
	slot.key = 0
	n, err := c.r.ReadAt(slot.b[:], number<<pageShift)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slot.key, slot.n = number+1, n
	return slot, nil
}
