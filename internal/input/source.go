package input

import (
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/edsrzf/mmap-go"

	"dumptriage/dump"
)

// source is bytes that can be read anywhere.
type source interface {
	io.ReaderAt
	Size() int64
	Close() error
	// stream reads everything from the beginning without going through a
	// mapping.
	stream() io.Reader
}

// readerSource is a caller's reader.
type readerSource struct {
	r    io.ReaderAt
	size int64
}

func (s *readerSource) ReadAt(p []byte, off int64) (int, error) { return s.r.ReadAt(p, off) }
func (s *readerSource) Size() int64                             { return s.size }
func (s *readerSource) Close() error                            { return nil }
func (s *readerSource) stream() io.Reader                       { return io.NewSectionReader(s.r, 0, s.size) }

// memory is data held in memory, in pieces so that it grows without copying:
// outgrown copies would hold as much again until they are collected.
type memory struct {
	pieces [][]byte // all of pieceSize but the last
	size   int64
}

const pieceSize = 256 << 10

// append adds to the end of the data.
func (m *memory) append(p []byte) {
	m.size += int64(len(p))
	for len(p) > 0 {
		last := len(m.pieces) - 1
		if last < 0 || len(m.pieces[last]) == pieceSize {
			m.pieces = append(m.pieces, nil)
			last++
		}
		n := min(len(p), pieceSize-len(m.pieces[last]))
		m.pieces[last] = append(m.pieces[last], p[:n]...)
		p = p[n:]
	}
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= m.size {
		return 0, outside(off)
	}
	n := 0
	for i := off / pieceSize; n < len(p) && i < int64(len(m.pieces)); i++ {
		n += copy(p[n:], m.pieces[i][off+int64(n)-i*pieceSize:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
func (m *memory) Size() int64       { return m.size }
func (m *memory) Close() error      { return nil }
func (m *memory) stream() io.Reader { return io.NewSectionReader(m, 0, m.size) }

// outside is the error of a read that begins outside the data.
func outside(off int64) error {
	if off < 0 {
		return &dump.Error{Code: dump.OutOfRange, Offset: off, Size: -1, Msg: "read before the beginning of the file"}
	}
	return io.EOF
}

// mappedMost is the largest read that goes through the mapping. Larger ones
// are as fast by a system call, and that leaves the pages out of this process's
// resident memory: a scan over a large dump does not make it grow.
const mappedMost = 64 << 10

// disk is a regular file, mapped into memory when that could be done.
type disk struct {
	f      *os.File
	size   int64
	mapped mmap.MMap
	shared bool   // f belongs to others: standard input
	remove string // path to remove at close: a temporary file that could not be unlinked while open
}

// newDisk takes over a regular file of the given size.
func newDisk(f *os.File, size int64) *disk {
	d := &disk{f: f, size: size}
	if strconv.IntSize == 64 && size > 0 && size <= math.MaxInt {
		if m, err := mmap.MapRegion(f, int(size), mmap.RDONLY, 0, 0); err == nil {
			d.mapped = m
		} // else ordinary reads do: some file systems and devices cannot be mapped
	}
	return d
}

func (d *disk) Size() int64 { return d.size }

func (d *disk) stream() io.Reader { return io.NewSectionReader(d.f, 0, d.size) }

func (d *disk) Close() error {
	var err error
	if d.mapped != nil {
		err = d.mapped.Unmap()
	}
	if !d.shared {
		err = errors.Join(err, d.f.Close())
	}
	if d.remove != "" {
		err = errors.Join(err, os.Remove(d.remove))
	}
	return err
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= d.size {
		return 0, outside(off)
	}
	if d.mapped == nil || len(p) > mappedMost {
		return d.pread(p, off)
	}
	return d.copyMapped(p, off)
}

func (d *disk) pread(p []byte, off int64) (int, error) {
	want := min(int64(len(p)), d.size-off)
	n, err := d.f.ReadAt(p[:want], off)
	switch {
	case n == len(p):
		return n, nil
	case int64(n) == want:
		return n, io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, lost(off+int64(n), want-int64(n), err)
}

// copyMapped copies out of the mapping. A page that cannot be brought in, as
// when the file was cut short or a network drive is gone, faults; the fault is
// made a panic, and the panic an error.
func (d *disk) copyMapped(p []byte, off int64) (n int, err error) {
	before, whole := debug.SetPanicOnFault(true), false
	defer func() {
		debug.SetPanicOnFault(before)
		if !whole { // recover costs more than the copy: ask only when there is something
			err = faultError(recover(), off, len(p))
		}
	}()
	n = copy(p, d.mapped[off:])
	whole = true
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// faultError makes an error of a memory fault, and lets any other panic go on.
func faultError(r any, off int64, size int) error {
	if fault, ok := r.(interface {
		runtime.Error
		Addr() uintptr // only memory faults have one
	}); ok {
		return lost(off, int64(size), fault)
	}
	panic(r)
}

// lost is the error of data that were there when the file was opened.
func lost(off, size int64, err error) *dump.Error {
	return &dump.Error{Code: dump.IO, Offset: off, Size: size, Msg: "the file can no longer be read: was it cut short, or is its medium gone?", Err: err}
}
