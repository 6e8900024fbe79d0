package minidump

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// input is the file that a reader reads and what was wrong with it.
type input struct {
	r    io.ReaderAt
	size int64
	name string

	mu     sync.Mutex
	damage []*dump.Error
}

// Size returns the size of the file in bytes.
func (f *input) Size() int64 { return f.size }

// note adds to the file's damage.
func (f *input) note(err *dump.Error) {
	err.File = f.name
	f.mu.Lock()
	f.damage = append(f.damage, err)
	f.mu.Unlock()
}

// Damage implements dump.Source: what could not be read so far, ordered by
// place, so that it does not depend on the order of use.
func (f *input) Damage() []*dump.Error {
	f.mu.Lock()
	out := slices.Clone(f.damage)
	f.mu.Unlock()
	slices.SortStableFunc(out, func(a, b *dump.Error) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), strings.Compare(a.Stream, b.Stream), strings.Compare(a.Msg, b.Msg))
	})
	return out
}

// outside describes how a location reaches beyond the end of the file, or
// returns nil when it does not.
func (f *input) outside(stream string, offset, size int64) *dump.Error {
	if size == 0 || offset <= f.size && size <= f.size-offset {
		return nil
	}
	msg := fmt.Sprintf("begins beyond the end of the file (%#x bytes)", f.size)
	if offset < f.size {
		msg = fmt.Sprintf("its last %d of %d bytes lie beyond the end of the file (%#x bytes)", size-(f.size-offset), size, f.size)
	}
	return &dump.Error{Code: dump.Truncated, File: f.name, Stream: stream, Offset: offset, Size: size, Msg: msg}
}

// asError turns an error of the cursor or a context into the one error type.
func asError(err error) *dump.Error {
	if err == nil {
		return nil
	}
	var e *dump.Error
	if errors.As(err, &e) {
		return e
	}
	return &dump.Error{Code: dump.IO, Offset: -1, Size: -1, Msg: "cannot be read", Err: err}
}

// faults collects what is wrong with one stream. A hostile stream can be wrong
// in every record, so only the first few are listed and the rest counted.
type faults struct {
	f      *input
	stream string
	first  *dump.Error // first that is not a warning
	n      int
}

func (f *input) faults(stream string) *faults { return &faults{f: f, stream: stream} }

func (fs *faults) add(err error) {
	e := asError(err)
	if e == nil {
		return
	}
	if e.Stream == "" {
		e.Stream = fs.stream
	}
	e.File = fs.f.name
	if fs.first == nil && !e.Warning {
		fs.first = e
	}
	if fs.n++; fs.n <= maxFaultsListed {
		fs.f.note(e)
	}
}

// full reports whether further errors are only counted.
func (fs *faults) full() bool { return fs.n >= maxFaultsListed && fs.first != nil }

// addAt adds a copy of an error with what was wanted before its message.
func (fs *faults) addAt(err *dump.Error, what string) {
	if fs.full() {
		fs.n++
		return
	}
	e := *err
	e.Msg = what + ": " + e.Msg
	e.Stream = fs.stream
	fs.add(&e)
}

func (fs *faults) errorf(code dump.Code, offset int64, format string, args ...any) {
	if fs.full() {
		fs.n++
		return
	}
	fs.add(&dump.Error{Code: code, Stream: fs.stream, Offset: offset, Size: -1, Msg: fmt.Sprintf(format, args...)})
}

// done closes the collection and returns the first error.
func (fs *faults) done() *dump.Error {
	if more := fs.n - maxFaultsListed; more > 0 {
		fs.f.note(&dump.Error{Code: fs.code(), Stream: fs.stream, Offset: -1, Size: -1, Msg: fmt.Sprintf("%d more faults in this stream", more)})
	}
	return fs.first
}

func (fs *faults) code() dump.Code {
	if fs.first != nil {
		return fs.first.Code
	}
	return dump.BadRecord
}

// count clamps a record count to the bytes that are left and to a limit of
// ours, noting either.
func (fs *faults) count(c *cursor.Cursor, n uint64, size, limit int) int {
	k, err := c.Count(n, size)
	fs.add(err)
	if k > limit {
		fs.errorf(dump.Limit, c.FileOffset(), "%d records, of which the first %d are read", n, limit)
		k = limit
	}
	return k
}

// table positions c at the first record of a stream that carries the sizes of
// its own header and records. Both may be larger than documented, never
// smaller than what is read of them.
func (fs *faults) table(c *cursor.Cursor, headerSize, recordSize uint32, minHeader, minRecord int, n uint64, limit int) int {
	if c.Err() != nil {
		fs.add(c.Err())
		return 0
	}
	if headerSize < uint32(minHeader) || n > 0 && recordSize < uint32(minRecord) || headerSize > uint32(c.Len()) || recordSize > 1<<20 {
		fs.errorf(dump.BadRecord, c.FileOffset(), "header of %d and records of %d bytes, at least %d and %d expected in a stream of %d", headerSize, recordSize, minHeader, minRecord, c.Len())
		return 0
	}
	c.Seek(int(headerSize))
	if n == 0 {
		return 0
	}
	return fs.count(c, n, int(recordSize), limit)
}
