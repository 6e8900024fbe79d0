package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Memory is a virtual address space as far as a dump holds it.
type Memory interface {
	// ReadAt reads len(p) bytes at virtual address va. It returns how many
	// bytes from va on it could read; when that is fewer than len(p) the
	// error is a *MemoryError that says where the first missing byte is.
	// Reads do not wrap around the top of the address space.
	ReadAt(p []byte, va uint64) (n int, err error)
}

// MemoryError says that memory could not be read.
type MemoryError struct {
	VA   uint64 // first address that could not be read
	Size int    // bytes that were wanted from there on
	Err  error  // cause, nil when the range is simply not in the dump
}

// Error formats the address and the reason.
func (e *MemoryError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("memory at %#x (%d bytes): %v", e.VA, e.Size, e.Err)
	}
	return fmt.Sprintf("memory at %#x (%d bytes) is not in the dump", e.VA, e.Size)
}

// Unwrap returns the cause.
func (e *MemoryError) Unwrap() error { return e.Err }

// ReadUint64 reads a little-endian 64-bit value.
func ReadUint64(m Memory, va uint64) (uint64, error) {
	var b [8]byte
	if _, err := m.ReadAt(b[:], va); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// ReadUint32 reads a little-endian 32-bit value.
func ReadUint32(m Memory, va uint64) (uint32, error) {
	var b [4]byte
	if _, err := m.ReadAt(b[:], va); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

// ReadPointer reads a pointer of the architecture's size.
func ReadPointer(m Memory, arch Arch, va uint64) (uint64, error) {
	if arch.PointerSize() == 4 {
		v, err := ReadUint32(m, va)
		return uint64(v), err
	}
	return ReadUint64(m, va)
}

// Watcher is told which bytes of a memory are used, apart from those that are only
// read ahead of use.
type Watcher interface {
	// ReadAhead is ReadAt for bytes of which Used will tell the used ones.
	ReadAhead(p []byte, va uint64) (n int, err error)
	// Used says that n bytes at va were used.
	Used(va uint64, n int)
}

// PathWatcher is a Watcher that is told which of the bytes used are the folders of a
// path in UTF-16, of which only the file's name is wanted.
type PathWatcher interface {
	Watcher
	Folders(va uint64, n int)
}

// PresenceWatcher is a Watcher that is told which bytes have to be there, whatever they
// are.
type PresenceWatcher interface {
	Watcher
	Present(va uint64, n int)
}

// Watched is implemented by memories that may have a watcher.
type Watched interface {
	// Watcher returns who is to be told, or nil.
	Watcher() Watcher
}

// WatcherOf returns the watcher of a memory, or nil.
func WatcherOf(m Memory) Watcher {
	if w, ok := m.(Watched); ok {
		return w.Watcher()
	}
	return nil
}

// windowSize is how much a Window reads at once: one page, the unit in which
// dumps hold memory.
const windowSize = 4096

// Window reads small values through one buffered page, so that a walk up a
// stack costs one read of the memory below for many values. It is not safe for
// concurrent use. The zero Window is not usable; see NewWindow.
type Window struct {
	mem   Memory
	watch Watcher // nil when nobody watches
	base  uint64
	n     int
	buf   [windowSize]byte
}

// NewWindow returns a window over m.
func NewWindow(m Memory) *Window { return &Window{mem: m, watch: WatcherOf(m)} }

// Discard empties the window, for memory that has changed since it was read.
func (w *Window) Discard() { w.n = 0 }

// Why returns why the byte at va cannot be read, as far as memory says more than that
// the dump does not have it; else nil.
func (w *Window) Why(va uint64) error {
	var b [1]byte
	_, err := w.mem.ReadAt(b[:], va)
	var missing *MemoryError
	if errors.As(err, &missing) {
		return missing.Err
	}
	return nil
}

// view returns size bytes at va without copying, or nil when memory lacks any.
func (w *Window) view(va uint64, size int) []byte {
	if off := va - w.base; va >= w.base && off < uint64(w.n) && uint64(size) <= uint64(w.n)-off {
		if w.watch != nil {
			w.watch.Used(va, size)
		}
		return w.buf[off : off+uint64(size)]
	}
	w.base = va
	if w.watch != nil {
		w.n, _ = w.watch.ReadAhead(w.buf[:], va)
		w.watch.Used(va, min(size, w.n))
	} else {
		w.n, _ = w.mem.ReadAt(w.buf[:], va)
	}
	if w.n < size {
		return nil
	}
	return w.buf[:size]
}

// Uint64 reads a little-endian 64-bit value.
func (w *Window) Uint64(va uint64) (uint64, bool) {
	if b := w.view(va, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

// Uint32 reads a little-endian 32-bit value.
func (w *Window) Uint32(va uint64) (uint32, bool) {
	if b := w.view(va, 4); b != nil {
		return binary.LittleEndian.Uint32(b), true
	}
	return 0, false
}

// Bytes reads up to len(p) bytes and returns how many there were.
func (w *Window) Bytes(p []byte, va uint64) int {
	n, _ := w.mem.ReadAt(p, va)
	return n
}
