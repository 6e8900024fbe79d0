package cab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	blockSize  = 32768            // the most that a CFDATA unpacks to
	packedMost = blockSize + 6144 // the most that [MS-CAB] lets a CFDATA hold
	cfdataSize = 8                // CFDATA without its reserved area
)

// decoder unpacks the blocks of one folder in order. It carries the history
// that later blocks refer to.
type decoder interface {
	// decode unpacks one block into exactly len(dst) bytes. The error is a plain
	// description or a *dump.Error without a place.
	decode(dst, src []byte) error
}

// blockReader yields a folder's unpacked blocks in order.
type blockReader struct {
	c      *Cabinet
	f      folder
	off    int64 // of the next CFDATA
	n      int   // blocks read so far
	dec    decoder
	packed [packedMost]byte
	plain  [blockSize]byte
}

func (c *Cabinet) blocks(f folder) (*blockReader, error) {
	b := &blockReader{c: c, f: f, off: f.offset}
	switch f.method {
	case Stored:
		b.dec = storedDecoder{}
	case MSZIP:
		b.dec = new(mszipDecoder)
	case LZX:
		if f.window < lzxWindowMin || f.window > lzxWindowMax {
			return nil, dump.Errorf(dump.UnsupportedFormat, "CFFOLDER", "LZX window of 2^%d bytes; 2^%d to 2^%d are defined", f.window, lzxWindowMin, lzxWindowMax)
		}
		b.dec = newLZX(f.window, f.blocks)
	default:
		return nil, dump.Errorf(dump.UnsupportedFormat, "CFFOLDER", "compression %v is not supported", f.method)
	}
	return b, nil
}

// next returns the next unpacked block, valid until the following call, or
// io.EOF after the last.
func (b *blockReader) next() ([]byte, error) {
	if b.n >= b.f.blocks {
		return nil, io.EOF
	}
	at := cursor.At(b.c.r, b.c.size, b.off, int64(cfdataSize+b.c.reserve), "CFDATA")
	sum, packed, plain := at.U32(), int(at.U16()), int(at.U16())
	reserve := at.Bytes(b.c.reserve)
	if err := at.Err(); err != nil {
		return nil, err
	}
	switch {
	case plain == 0:
		return nil, b.errorf(dump.UnsupportedFormat, packed, "continues in another cabinet of the set%s", b.c.neighbours())
	case plain > blockSize || packed > packedMost:
		return nil, b.errorf(dump.BadRecord, packed, "claims %d bytes packed, %d unpacked; at most %d and %d are allowed", packed, plain, packedMost, blockSize)
	}
	src := b.packed[:packed]
	dataOff := b.off + cfdataSize + int64(b.c.reserve)
	if n, err := b.c.r.ReadAt(src, dataOff); n < packed {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, &dump.Error{Code: dump.IO, Stream: "CFDATA", Offset: dataOff, Size: int64(packed), Msg: "cannot be read", Err: err}
		}
		return nil, b.errorf(dump.Truncated, packed, "ends beyond the end of the file: needs %d bytes, %d left", packed, n)
	}
	if !checksumOK(sum, packed, plain, reserve, src) {
		return nil, b.errorf(dump.BadRecord, packed, "checksum mismatch: the data are damaged")
	}
	if err := b.dec.decode(b.plain[:plain], src); err != nil {
		return nil, b.wrap(err, packed)
	}
	b.off = dataOff + int64(packed)
	b.n++
	return b.plain[:plain], nil
}

func (b *blockReader) errorf(code dump.Code, size int, format string, args ...any) *dump.Error {
	return &dump.Error{Code: code, Stream: "CFDATA", Offset: b.off, Size: int64(size),
		Msg: fmt.Sprintf("block %d of %d ", b.n+1, b.f.blocks) + fmt.Sprintf(format, args...)}
}

func (b *blockReader) wrap(err error, size int) *dump.Error {
	e := b.errorf(dump.BadRecord, size, "cannot be unpacked (%v)", b.f.method)
	e.Err = err
	return e
}

// neighbours names the cabinets before and after this one, for messages.
func (c *Cabinet) neighbours() string {
	switch {
	case c.prev != "" && c.next != "":
		return fmt.Sprintf(" (%q before, %q after this one)", c.prev, c.next)
	case c.prev != "":
		return fmt.Sprintf(" (%q before this one)", c.prev)
	case c.next != "":
		return fmt.Sprintf(" (%q after this one)", c.next)
	}
	return ""
}

// checksumOK verifies CFDATA.csum, which covers the data and then the two
// sizes. Zero means that the maker did not compute it. Whether a block's
// reserved area, which lies between the two, counts has not been seen on a real
// cabinet (hardly any has such areas and checksums), so both readings pass: a
// wrong guess would refuse good data.
func checksumOK(sum uint32, packed, plain int, reserve, data []byte) bool {
	if sum == 0 {
		return true
	}
	sizes := binary.LittleEndian.AppendUint16(nil, uint16(packed))
	sizes = binary.LittleEndian.AppendUint16(sizes, uint16(plain))
	if checksum(sizes, checksum(data, 0)) == sum {
		return true
	}
	return len(reserve) > 0 && checksum(append(sizes, reserve...), checksum(data, 0)) == sum
}

// checksum is the cabinet checksum: the exclusive or of the little-endian
// 32-bit words, then of the one to three bytes left, first byte highest.
func checksum(p []byte, seed uint32) uint32 {
	for len(p) >= 4 {
		seed ^= binary.LittleEndian.Uint32(p)
		p = p[4:]
	}
	var rest uint32
	for _, b := range p {
		rest = rest<<8 | uint32(b)
	}
	return seed ^ rest
}

// storedDecoder is the method without compression.
type storedDecoder struct{}

func (storedDecoder) decode(dst, src []byte) error {
	if len(dst) != len(src) {
		return fmt.Errorf("stored block of %d bytes claims to unpack to %d", len(src), len(dst))
	}
	copy(dst, src)
	return nil
}
