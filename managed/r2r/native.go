package r2r

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
	"dumptriage/internal/cursor"
)

// table is a section of an image, read by offset from its start.
type table struct {
	in   *chunk.Reader // the image, by RVA
	rva  uint32
	size uint32
	name string // in errors
}

// at returns a cursor over up to n bytes of the table.
func (t table) at(off uint32, n int64) *cursor.Cursor {
	if off >= t.size {
		c := cursor.New(nil, t.name, int64(t.rva)+int64(off))
		c.Fail(dump.OutOfRange, "offset %#x is not in its %#x bytes", off, t.size)
		return c
	}
	n = min(n, int64(t.size-off))
	at := int64(t.rva) + int64(off)
	c := t.in.At(at, n, t.name)
	if c.Err() != nil { // what is there may be enough
		if b, _ := t.in.UpTo(at, n, t.name); len(b) > 0 {
			return cursor.New(b, t.name, at)
		}
	}
	return c
}

// maxInt is the most bytes that an integer of the native format has.
const maxInt = 5

// unsigned reads an unsigned integer of the native format.
func unsigned(c *cursor.Cursor) uint32 { v, _ := native(c); return v }

// signed reads a signed integer of the native format.
func signed(c *cursor.Cursor) int32 {
	v, bits := native(c)
	return int32(v<<(32-bits)) >> (32 - bits)
}

// native reads an integer and says how many bits of it were stored.
func native(c *cursor.Cursor) (v uint32, bits uint) {
	b := uint32(c.U8())
	switch {
	case b&1 == 0:
		return b >> 1, 7
	case b&2 == 0:
		return (b | uint32(c.U8())<<8) >> 2, 14
	case b&4 == 0:
		b |= uint32(c.U8()) << 8
		return (b | uint32(c.U8())<<16) >> 3, 21
	case b&8 == 0:
		b |= uint32(c.U8()) << 8
		b |= uint32(c.U8()) << 16
		return (b | uint32(c.U8())<<24) >> 4, 28
	}
	return c.U32(), 32
}

// integer reads one at an offset and returns where the next byte is.
func (t table) integer(off uint32) (v, next uint32, err error) {
	c := t.at(off, maxInt)
	start := c.Offset()
	v = unsigned(c)
	return v, off + uint32(c.Offset()-start), c.Err()
}

// cell reads a little-endian cell of 1, 2 or 4 bytes.
func (t table) cell(off uint32, size uint32) (uint32, error) {
	c := t.at(off, int64(size))
	switch size {
	case 1:
		return uint32(c.U8()), c.Err()
	case 2:
		return uint32(c.U16()), c.Err()
	}
	return c.U32(), c.Err()
}

// array is a sparse array: blocks of 16 elements, each a binary tree of four levels.
type array struct {
	table
	base  uint32 // behind the header: what offsets count from
	cells uint32 // bytes of an entry in the index of blocks
	count uint32 // elements, as claimed
}

func openArray(t table) (a array, err error) {
	head, base, err := t.integer(0)
	if err != nil {
		return a, err
	}
	a = array{table: t, base: base, cells: 1 << (head & 3), count: head >> 2}
	if a.cells > 4 {
		return a, bad(t, 0, "index of blocks has cells of kind 3")
	}
	return a, nil
}

const blockSize = 16

// find returns where the data of an element lies; false when it has none.
func (a array) find(index uint32) (off uint32, ok bool, err error) {
	cell, err := a.cell(a.base+index/blockSize*a.cells, a.cells)
	if err != nil {
		return 0, false, err
	}
	off = a.base + cell
	for bit := uint32(blockSize / 2); bit > 0; bit /= 2 {
		v, next, err := a.integer(off)
		switch {
		case err != nil:
			return 0, false, err
		case index&bit != 0 && v&2 != 0:
			off += v >> 2
		case index&bit == 0 && v&1 != 0:
			off = next
		case v&3 == 0 && v>>2 == index%blockSize: // the block's only element
			return next, true, nil
		default:
			return 0, false, nil
		}
	}
	return off, true, nil
}

// hashtable is a hash table, of which only its entries in their order are read.
type hashtable struct {
	table
	off, end uint32 // of the entries
}

func openHashtable(t table) (h hashtable, err error) {
	head, err := t.cell(0, 1)
	if err != nil {
		return h, err
	}
	cells, log := uint32(1)<<(head&3), head>>2
	if cells > 4 || log > 24 {
		return h, bad(t, 0, "header %#x of a hash table", head)
	}
	const base = 1 // offsets count from behind the header
	buckets := uint32(1) << log
	end, err := t.cell(base+buckets*cells, cells)
	if err != nil {
		return h, err
	}
	return hashtable{table: t, off: base + (buckets+1)*cells, end: min(base+end, t.size)}, nil
}

// next returns where the next entry's data lies, until there is none.
func (h *hashtable) next() (off uint32, ok bool, err error) {
	if h.off >= h.end {
		return 0, false, nil
	}
	c := h.at(h.off, 1+maxInt)
	start := c.Offset()
	c.U8() // low byte of the hash
	delta := signed(c)
	if c.Err() != nil {
		return 0, false, c.Err()
	}
	off = h.off + 1 + uint32(delta)
	h.off += uint32(c.Offset() - start)
	return off, true, nil
}

func bad(t table, off uint32, what string, args ...any) error {
	return &dump.Error{Code: dump.BadRecord, Stream: t.name, Offset: int64(t.rva) + int64(off), Size: -1, Msg: fmt.Sprintf(what, args...)}
}
