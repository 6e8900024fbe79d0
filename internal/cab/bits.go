package cab

import (
	"errors"

	"dumptriage/internal/cursor"
)

// bitReader reads LZX's bit stream: little-endian 16-bit words, each from its
// highest bit down. Reading past the end gives zeros, so that decoders may
// look ahead; overrun tells whether any of those was consumed.
type bitReader struct {
	in  *cursor.Cursor
	acc uint64 // the next bits, left-aligned; what lies below n bits is zero
	n   uint   // number of bits in acc
	pad uint   // how many of those, at the end, the input did not hold
}

var errOverrun = errors.New("the compressed data end early")

func newBitReader(src []byte) bitReader { return bitReader{in: cursor.New(src, "LZX", -1)} }

// fill makes at least 49 bits available.
func (b *bitReader) fill() {
	for b.n <= 48 {
		var word uint16
		if b.in.Left() >= 2 {
			word = b.in.U16()
		} else {
			b.pad += 16
		}
		b.acc |= uint64(word) << (48 - b.n)
		b.n += 16
	}
}

// need makes at least 33 bits available: a code and the bits that follow it.
func (b *bitReader) need() {
	if b.n <= 32 {
		b.fill()
	}
}

// peek returns the next 16 bits, which must be available.
func (b *bitReader) peek() uint { return uint(b.acc >> 48) }

// drop moves past k available bits.
func (b *bitReader) drop(k uint) {
	b.acc <<= k
	b.n -= k
}

// take reads k bits, at most 32.
func (b *bitReader) take(k uint) uint32 {
	b.need()
	v := uint32(b.acc >> 1 >> (63 - k)) // in two steps: k may be 0
	b.drop(k)
	return v
}

// overrun reports whether bits past the end were consumed.
func (b *bitReader) overrun() bool { return b.n < b.pad }

// toBytes drops 1 to 16 bits up to a word boundary, as an uncompressed block
// begins, and leaves the cursor at the next byte.
func (b *bitReader) toBytes() {
	b.need()
	b.drop((b.n-1)%16 + 1)
	if !b.overrun() {
		b.in.Seek(b.in.Offset() - int(b.n-b.pad)/8)
		b.acc, b.n, b.pad = 0, 0, 0
	}
}
