package kdump

import (
	"encoding/binary"
	"io"
	"iter"
	"math/bits"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	sigSDMP = 0x504d4453 // "SDMP"
	sigFDMP = 0x504d4446 // "FDMP"
	sigDUMP = 0x504d5544 // "DUMP"

	bitmapStream = "bitmap"
)

// bitmapHead is what stands before a bitmap.
type bitmapHead struct {
	firstPage int64  // file offset of the first page
	present   uint64 // pages in the file
	bits      uint64 // of the bitmap: one for each page frame
	off       int64  // file offset of the bitmap
}

// maxBits bounds a bitmap: 2^33 pages are 32 TB, more than Windows supports.
const maxBits = 1 << 33

// openBitmap reads the header behind DUMP_HEADER: "SDMP" or "FDMP", "DUMP",
// u64 FirstPage at 0x20, present pages at 0x28, bits at 0x30, the bitmap from
// 0x38 on, bit n of it (the lowest of a byte first) for page frame n. Before
// Windows 8 the fields were u32: FirstPage at 0xc, bits at 0x10, present pages
// at 0x14, and the bitmap behind an RTL_BITMAP; that form is not verified on a
// real file, so it is taken only when the bitmap bears it out.
func (f *File) openBitmap() pageMap {
	head := f.bitmapHead()
	if old := f.oldBitmapHead(); !head.fits(f.size) && old.fits(f.size) {
		if m, err := f.indexBitmap(old); err == nil && m.total == old.present {
			return m
		}
	}
	m, err := f.indexBitmap(head)
	if err != nil {
		f.damageErr(err)
		return nil
	}
	if m.total != head.present {
		f.damage(dump.Errorf(dump.BadCount, bitmapStream, "claims %d pages, its bits name %d", head.present, m.total))
	}
	if m.total == 0 {
		f.damage(dump.Errorf(dump.BadRecord, bitmapStream, "names no page: there is no memory to read"))
		return nil
	}
	return m
}

func (f *File) bitmapHead() bitmapHead {
	at := int64(f.hdr.size)
	c := cursor.At(f.r, f.size, at, 0x38, bitmapStream)
	c.Seek(0x20)
	h := bitmapHead{firstPage: int64(c.U64()), present: c.U64(), bits: c.U64(), off: at + 0x38}
	f.damageErr(c.Err())
	return h
}

func (f *File) oldBitmapHead() bitmapHead {
	at := int64(f.hdr.size)
	c := cursor.At(f.r, f.size, at, 0x28, bitmapStream)
	c.Seek(0xc)
	first, bits, present := c.U32(), c.U32(), c.U32()
	return bitmapHead{int64(first), uint64(present), uint64(bits), at + 0x18 + 2*int64(f.hdr.ptr)}
}

// fits reports whether the bitmap lies before the pages and in the file.
func (h *bitmapHead) fits(size int64) bool {
	return h.bits > 0 && h.bits <= maxBits && h.firstPage >= h.off+int64((h.bits+7)/8) && h.firstPage <= size
}

// A chunk is the unit of the index: 64 bytes of the bitmap, 512 pages.
const (
	chunkBytes = 64
	chunkPages = 8 * chunkBytes
)

// bitmapMap finds pages by counting bits. The bitmap stays in the file; the
// index has for each chunk how many pages come before it, an eighth of the
// bitmap's size: 2 MB for a machine of 512 GB.
type bitmapMap struct {
	r      io.ReaderAt
	head   bitmapHead
	before []uint64 // pages before each chunk
	total  uint64
	pool   sync.Pool // of *[chunkBytes]byte
}

// indexBitmap counts the bits of the bitmap once, as far as the file holds it.
func (f *File) indexBitmap(h bitmapHead) (*bitmapMap, error) {
	bad := func(code dump.Code, msg string) error {
		return &dump.Error{Code: code, Stream: bitmapStream, Offset: h.off, Size: -1, Msg: msg}
	}
	switch {
	case h.bits == 0 || h.bits > maxBits:
		return nil, bad(dump.BadCount, "its size "+hex(h.bits)+" is that of no machine")
	case h.firstPage < h.off+int64((h.bits+7)/8):
		return nil, bad(dump.BadRecord, "the first page at "+hex(uint64(h.firstPage))+" lies inside the bitmap")
	}
	size := int64((h.bits + 7) / 8)
	if left := f.size - h.off; size > left {
		f.damage(&dump.Error{Code: dump.Truncated, Stream: bitmapStream, Offset: h.off, Size: size, Msg: "the bitmap runs beyond the end of the file"})
		size = max(0, left)
		h.bits = uint64(size) * 8
	}
	m := &bitmapMap{r: f.r, head: h}
	m.pool.New = func() any { return new([chunkBytes]byte) }
	m.before = make([]uint64, 0, size/chunkBytes+1)
	window := make([]byte, min(size, 1024*chunkBytes))
	for at := int64(0); at < size; at += int64(len(window)) {
		b := window[:min(int64(len(window)), size-at)]
		if n, err := f.r.ReadAt(b, h.off+at); n < len(b) {
			return nil, &dump.Error{Code: dump.IO, Stream: bitmapStream, Offset: h.off + at, Size: int64(len(b)), Msg: "cannot be read", Err: err}
		}
		m.trim(b, uint64(at)*8)
		for len(b) > 0 {
			m.before = append(m.before, m.total)
			n := min(len(b), chunkBytes)
			m.total += onesIn(b[:n])
			b = b[n:]
		}
	}
	return m, nil
}

// trim clears the bits past the last page: the last byte may be garbage. First is
// the page of b's first bit.
func (m *bitmapMap) trim(b []byte, first uint64) {
	if end := first + uint64(len(b))*8; end > m.head.bits && len(b) > 0 {
		if extra := end - m.head.bits; extra < 8 {
			b[len(b)-1] &= 0xff >> extra
		}
	}
}

func onesIn(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, v := range b {
		n += uint64(bits.OnesCount8(v))
	}
	return n
}

// chunk reads the chunk i of the bitmap into buf.
func (m *bitmapMap) chunk(i uint64, buf *[chunkBytes]byte) []byte {
	size := min(chunkBytes, (m.head.bits+7)/8-i*chunkBytes)
	b := buf[:size]
	if n, _ := m.r.ReadAt(b, m.head.off+int64(i*chunkBytes)); n < len(b) {
		return nil
	}
	m.trim(b, i*chunkPages)
	return b
}

func (m *bitmapMap) locate(pfn uint64) (int64, bool) {
	i := pfn / chunkPages
	if pfn >= m.head.bits || i >= uint64(len(m.before)) {
		return 0, false
	}
	buf := m.pool.Get().(*[chunkBytes]byte)
	defer m.pool.Put(buf)
	b := m.chunk(i, buf)
	bit := pfn % chunkPages
	if bit/8 >= uint64(len(b)) || b[bit/8]>>(bit%8)&1 == 0 {
		return 0, false
	}
	n := m.before[i] + onesIn(b[:bit/8]) + uint64(bits.OnesCount8(b[bit/8]&(1<<(bit%8)-1)))
	return pageOffset(m.head.firstPage, n), true
}

func (m *bitmapMap) count() uint64 { return m.total }

func (m *bitmapMap) end() uint64 { return m.head.bits }

func (m *bitmapMap) first() int64 { return m.head.firstPage }

func (m *bitmapMap) beyond(size int64) uint64 {
	return m.total - min(m.total, pagesUntil(size, m.head.firstPage))
}

// runs yields the pages as runs; adjoining chunks are joined.
func (m *bitmapMap) runs() iter.Seq[pageRun] {
	return func(yield func(pageRun) bool) {
		var buf [chunkBytes]byte
		run := pageRun{off: m.head.firstPage}
		stored := uint64(0)
		for i := range uint64(len(m.before)) {
			next := m.total
			if i+1 < uint64(len(m.before)) {
				next = m.before[i+1]
			}
			if next == m.before[i] { // an empty chunk is not read again
				continue
			}
			for n, b := range m.chunk(i, &buf) {
				for b != 0 {
					zeros := bits.TrailingZeros8(b)
					ones := bits.TrailingZeros8(^(b >> zeros))
					pfn := i*chunkPages + uint64(n)*8 + uint64(zeros)
					if run.count > 0 && run.end() != pfn {
						if !yield(run) {
							return
						}
						run = pageRun{}
					}
					if run.count == 0 {
						run = pageRun{pfn: pfn, off: pageOffset(m.head.firstPage, stored)}
					}
					run.count += uint64(ones)
					stored += uint64(ones)
					b &^= (1<<ones - 1) << zeros
				}
			}
		}
		if run.count > 0 {
			yield(run)
		}
	}
}
