package managed

import (
	"errors"
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/pdata"
)

// Image is a module of the process with its image, from memory or from its file.
type Image struct {
	Name string
	Base uint64
	PE   *pdata.Image // nil when there is none
	File bool         // PE is a file, in which no pointer is relocated
}

// hostMemory is the process's memory, and where that lacks pages of the runtime's
// image, the image.
type hostMemory struct {
	mem dump.Memory
	im  Image
}

// bytes reads n bytes.
func (h *hostMemory) bytes(va uint64, n int) ([]byte, error) {
	b, _, err := h.read(va, n)
	return b, err
}

func (h *hostMemory) read(va uint64, n int) (b []byte, fromFile bool, err error) {
	b = make([]byte, n)
	got, err := h.mem.ReadAt(b, va)
	if got == n {
		return b, false, nil
	}
	if h.im.PE == nil || va < h.im.Base || va-h.im.Base > math.MaxUint32 {
		return nil, false, missing(descriptorStream, va, n, err)
	}
	if got, ferr := h.im.PE.ReadRVA(b, uint32(va-h.im.Base)); got < n {
		return nil, false, missing(descriptorStream, va, n, ferr)
	}
	return b, h.im.File, nil
}

// pointer reads a pointer, relocated when it comes from the file.
func (h *hostMemory) pointer(va uint64, size int) (uint64, error) {
	b, fromFile, err := h.read(va, size)
	if err != nil {
		return 0, err
	}
	v := cursor.New(b, descriptorStream, -1).Pointer(size)
	if fromFile && v != 0 {
		v += h.im.Base - h.im.PE.ImageBase()
	}
	return v, nil
}

func missing(what string, va uint64, n int, cause error) *dump.Error {
	e := dump.Errorf(dump.OutOfRange, what, "%d bytes at %#x are not in the dump", n, va)
	e.Size = int64(n)
	var gap *dump.MemoryError
	if !errors.As(cause, &gap) || gap.Err != nil {
		e.Err = cause
	}
	return e
}

// access reads fields of structures. After the first failure it reads zeros; err
// says what failed.
type access struct {
	mem  dump.Memory
	l    *layout
	left *int // reads that are allowed still, nil any number
	err  error
}

func (a *access) fail(code dump.Code, what, format string, args ...any) {
	if a.err == nil {
		a.err = dump.Errorf(code, what, format, args...)
	}
}

// at returns the address of a field.
func (a *access) at(va uint64, typ, field string) uint64 {
	off, ok := a.l.offset(typ, field)
	switch {
	case a.err != nil:
	case !ok:
		a.fail(dump.UnsupportedFormat, typ, "the layout of this runtime does not tell of the field %s", field)
	case va == 0 || va+off < va:
		a.fail(dump.OutOfRange, typ, "%s of the structure at %#x", field, va)
	default:
		return va + off
	}
	return 0
}

// number reads a little-endian number of size bytes at an address.
func (a *access) number(va uint64, size int, what string) uint64 {
	if a.err != nil {
		return 0
	}
	if a.left != nil {
		if *a.left == 0 {
			a.err = exhausted()
			return 0
		}
		*a.left--
	}
	var buf [8]byte
	b := buf[:min(size, 8)]
	if n, err := a.mem.ReadAt(b, va); n < len(b) {
		a.err = missing(what, va, size, err)
		return 0
	}
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func (a *access) field(va uint64, typ, field string, size int) uint64 {
	at := a.at(va, typ, field)
	return a.number(at, size, typ+"."+field)
}

func (a *access) ptr(va uint64, typ, field string) uint64 {
	return a.field(va, typ, field, a.l.pointer)
}

func (a *access) u32(va uint64, typ, field string) uint32 { return uint32(a.field(va, typ, field, 4)) }
func (a *access) u16(va uint64, typ, field string) uint16 { return uint16(a.field(va, typ, field, 2)) }
func (a *access) u8(va uint64, typ, field string) uint8   { return uint8(a.field(va, typ, field, 1)) }

// word reads a pointer at an address.
func (a *access) word(va uint64, what string) uint64 { return a.number(va, a.l.pointer, what) }

// variable reads the pointer variable that a global is the address of.
func (a *access) variable(name string) uint64 {
	g, ok := a.l.globals[name]
	if !ok || g.value == 0 {
		a.fail(dump.UnsupportedFormat, name, "the descriptor of this runtime has no such global")
		return 0
	}
	return a.word(g.value, name)
}

// size returns the size of a type.
func (a *access) size(typ string, otherwise uint64) uint64 {
	if n := a.l.types[typ].size; n != 0 {
		return n
	}
	return otherwise
}
