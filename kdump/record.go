package kdump

import (
	"iter"
	"strconv"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// record is a copy of a kernel structure. Offsets come from KDDEBUGGER_DATA64
// or a table, so each read is checked.
type record struct {
	va  uint64 // 0 when its address is not known
	off int64  // file offset, -1 when it was read by address
	b   []byte
	ptr int

	used  func(off, n int) // is told which bytes are used; nil when nobody watches
	names bool             // names of processes are used, too
}

// uint reads size bytes at off. Offset 0 means that nobody knows where the
// field is.
func (r *record) uint(off, size int) (uint64, bool) {
	if off <= 0 {
		return 0, false
	}
	return r.raw(off, size)
}

func (r *record) raw(off, size int) (v uint64, ok bool) {
	if off < 0 || size > len(r.b) || off > len(r.b)-size {
		return 0, false
	}
	r.use(off, size)
	c := cursor.New(r.b, "", -1)
	c.Seek(off)
	switch size {
	case 1:
		v = uint64(c.U8())
	case 2:
		v = uint64(c.U16())
	case 4:
		v = uint64(c.U32())
	case 8:
		v = c.U64()
	}
	return v, c.Err() == nil
}

func (r *record) pointer(off int) (uint64, bool) { return r.uint(off, r.ptr) }

// bytes returns n bytes at off, or nil.
func (r *record) bytes(off, n int) []byte {
	if off <= 0 {
		return nil
	}
	r.use(off, n)
	c := cursor.New(r.b, "", -1)
	c.Seek(off)
	return c.Bytes(n)
}

// kernelAddress reports whether va lies in the kernel's half of the address
// space. On 64-bit that half is taken as wide as five-level paging makes it.
func kernelAddress(ptr int, va uint64) bool {
	if ptr == 4 {
		return va >= 0x80000000 && va <= 0xffffffff
	}
	return va >= 0xff00000000000000
}

// DISPATCHER_HEADER.Type of the objects that are looked for.
const (
	objectProcess = 3
	objectThread  = 6
)

// dispatcherType returns the object type in the first byte of a kernel object.
// The top bit is a flag.
func (r *record) dispatcherType() uint8 {
	v, _ := r.raw(0, 1)
	return uint8(v) & 0x7f
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

// printable returns the bytes up to the first NUL with anything that is not
// printable ASCII replaced.
func printable(b []byte) string {
	s := []byte(cursor.CString(b))
	for i, ch := range s {
		if ch < 0x20 || ch > 0x7e {
			s[i] = '?'
		}
	}
	return string(s)
}

// recordAtOffset copies a structure of a given size from the file.
func (f *File) recordAtOffset(off uint32, size int, stream string) *record {
	if off == 0 || size <= 0 {
		return nil
	}
	var c *cursor.Cursor
	f.ahead(func() { c = cursor.At(f.r, f.size, int64(off), int64(size), stream) })
	if c.Len() < size {
		f.damage(&dump.Error{Code: dump.Truncated, Stream: stream, Offset: int64(off), Size: int64(size),
			Msg: "the structure runs beyond the end of the file"})
		if c.Len() == 0 {
			return nil
		}
	}
	return f.recordUse(&record{off: int64(off), b: c.Bytes(c.Len()), ptr: f.hdr.ptr})
}

// typeAt returns the object type in the first byte at va, 0xff when that is not
// in the dump.
func (f *File) typeAt(va uint64) uint8 {
	var b [1]byte
	if n, _ := f.mem.ReadAt(b[:], va); n == 0 {
		return 0xff
	}
	return b[0] & 0x7f
}

// recordAt copies a structure from the dump's memory; nil unless all of it is
// there.
func (f *File) recordAt(va uint64, size int) *record {
	if va == 0 || size <= 0 || size > maxStructure {
		return nil
	}
	b := make([]byte, size)
	var err error
	f.ahead(func() { _, err = f.mem.ReadAt(b, va) })
	if err != nil {
		return nil
	}
	return f.recordUse(&record{va: va, off: -1, b: b, ptr: f.hdr.ptr})
}

// blocksOfSize yields the data blocks that have the size of a structure. The live
// writer's table grows downwards, so it is read backwards there. Honest blocks do
// not lie over each other, so no more are yielded than the file can hold: that
// keeps many blocks over the same bytes from costing time and memory.
func (f *File) blocksOfSize(size int) iter.Seq[dump.Range] {
	return func(yield func(dump.Range) bool) {
		left := f.most(size)
		for i := range f.blocks {
			b := f.blocks[i]
			if f.live {
				b = f.blocks[len(f.blocks)-1-i]
			}
			if b.Size != uint64(size) {
				continue
			}
			if left--; left < 0 {
				f.damage(dump.Errorf(dump.Limit, blockStream, "more blocks of %#x bytes than the file can hold: the rest is left out", size))
				return
			}
			if !yield(b) {
				return
			}
		}
	}
}

// recordOfBlock copies the first size bytes of a block. They are read from the
// block and not by address: another block that lies over it, such as a stack, may
// have been captured at another time.
func (f *File) recordOfBlock(b dump.Range, size int) *record {
	var c *cursor.Cursor
	f.ahead(func() { c = cursor.At(f.r, f.size, b.Off, int64(size), blockStream) })
	if c.Len() != size || c.Err() != nil {
		return nil
	}
	return f.recordUse(&record{va: b.VA, off: b.Off, b: c.Bytes(size), ptr: f.hdr.ptr})
}

// most returns how many structures of a size the file can hold.
func (f *File) most(size int) int {
	if size <= 0 {
		return 0
	}
	return int(f.size / int64(size))
}

// maxStructure bounds every structure size that the file claims. The largest
// KPRCB known is 0xcf00 bytes.
const maxStructure = 0x20000
