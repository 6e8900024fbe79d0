package pdb

import (
	"encoding/binary"
	"errors"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Stream is one stream of a PDB. It implements io.ReaderAt, and may be used from
// several goroutines.
type Stream struct {
	name string
	size int64
	r    io.ReaderAt // never read outside the size
}

// Size returns the stream's size in bytes.
func (s *Stream) Size() int64 { return s.size }

// ReadAt reads from the stream.
func (s *Stream) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, dump.Errorf(dump.OutOfRange, s.name, "negative offset %d", off)
	}
	if off >= s.size {
		return 0, io.EOF
	}
	var eof error
	if int64(len(p)) > s.size-off {
		p, eof = p[:s.size-off], io.EOF
	}
	n, err := s.r.ReadAt(p, off)
	if err == nil {
		err = eof
	}
	return n, err
}

// blocks is a stream that is gathered from the blocks of an MSF file.
type blocks struct {
	msf  *MSF
	name string
	list []byte // block numbers, checked by newStream, four bytes each
}

func (s blocks) block(i int64) int64 {
	return int64(binary.LittleEndian.Uint32(s.list[i*4:]))
}

// ReadAt reads from the stream. Runs of neighbouring blocks are read at once.
func (s blocks) ReadAt(p []byte, off int64) (int, error) {
	bs := s.msf.blockSize
	done := 0
	for done < len(p) {
		i, in := off/bs, off%bs
		first, run := s.block(i), bs-in
		for run < int64(len(p)-done) && s.block(i+1) == s.block(i)+1 {
			i++
			run += bs
		}
		want := min(run, int64(len(p)-done))
		n, err := s.msf.r.ReadAt(p[done:done+int(want)], first*bs+in)
		done += n
		off += int64(n)
		if int64(n) < want {
			if err == nil || errors.Is(err, io.EOF) {
				return done, &dump.Error{Code: dump.Truncated, Stream: s.name, Offset: first*bs + in, Size: want, Msg: "the file ends inside the stream"}
			}
			return done, &dump.Error{Code: dump.IO, Stream: s.name, Offset: first*bs + in, Size: want, Msg: "cannot be read", Err: err}
		}
	}
	return done, nil
}

// bytes reads n bytes at off. It gives all of them or an error.
func (s *Stream) bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > s.size || n > s.size-off {
		return nil, dump.Errorf(dump.OutOfRange, s.name, "has no %d bytes at %#x: it has %#x", n, off, s.size)
	}
	p := make([]byte, n)
	if _, err := s.ReadAt(p, off); err != nil && err != io.EOF {
		return nil, err
	}
	return p, nil
}

// all reads the whole stream, which is never larger than the file, or than a
// compressed file may unfold to.
func (s *Stream) all() ([]byte, error) { return s.bytes(0, s.size) }

// cursor returns a cursor over a part of the stream; what names it in errors.
func (s *Stream) cursor(off, n int64, what string) (*cursor.Cursor, error) {
	b, err := s.bytes(off, n)
	if err != nil {
		return nil, err
	}
	return cursor.New(b, what, -1), nil
}
