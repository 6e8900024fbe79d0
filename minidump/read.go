package minidump

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	windowSize = 8192
	// maxText bounds one string: a UNICODE_STRING holds at most 65,534 bytes.
	maxText = 0xffff
)

// open reads a stream's bytes. The cursor is nil when there is nothing to read;
// the faults then already hold the reason, if there is one.
func (f *File) open(streamType uint32) (*cursor.Cursor, *faults) {
	fs := f.faults(StreamName(streamType))
	i, ok := f.byType[streamType]
	if !ok || f.streams[i].Size == 0 {
		return nil, fs
	}
	s := &f.streams[i]
	fs.first = s.Err // noted when the directory was read
	if s.Offset >= f.size {
		return nil, fs
	}
	return cursor.At(f.r, f.size, s.Offset, s.Size, s.Name), fs
}

// window reads small pieces that lie near each other, such as the names of
// modules, with few reads of the file. It is used by one decoder at a time.
type window struct {
	f      *input
	stream string
	base   int64
	buf    []byte
	c      *cursor.Cursor // over what buf holds of the file from base on
}

// at returns a cursor over n bytes at a file offset, or over as many as the
// file holds together with the error that says so. The bytes are valid until
// the next call.
func (w *window) at(offset int64, n int) (*cursor.Cursor, *dump.Error) {
	err := w.f.outside(w.stream, offset, int64(n))
	if offset < 0 || offset >= w.f.size {
		return cursor.New(nil, w.stream, offset), err
	}
	n = int(min(int64(n), w.f.size-offset))
	if w.c == nil || offset < w.base || offset-w.base+int64(n) > int64(w.c.Len()) {
		if e := w.load(offset, n); e != nil {
			return cursor.New(nil, w.stream, offset), e
		}
	}
	w.c.Seek(int(offset - w.base))
	return w.c.Sub(n), err
}

// load fills the window from an offset on, with at least n bytes.
func (w *window) load(offset int64, n int) *dump.Error {
	size := int(min(int64(max(n, windowSize)), w.f.size-offset))
	if size > cap(w.buf) {
		w.buf = make([]byte, size)
	}
	got, err := w.f.r.ReadAt(w.buf[:size], offset)
	if got < n {
		w.c = nil
		return &dump.Error{Code: dump.IO, Stream: w.stream, Offset: offset, Size: int64(n), Msg: "cannot be read", Err: err}
	}
	w.base, w.c = offset, cursor.New(w.buf[:got], w.stream, offset)
	return nil
}

// texts reads the strings and other blobs that records point to. A hostile file
// can point many records at the same bytes, so what it returns in sum is
// limited to the size of the file.
type texts struct {
	w      window
	fs     *faults
	budget int64
	seen   map[int64]string // shared strings, when that is usual for the stream
}

func (f *input) texts(fs *faults) *texts {
	return &texts{w: window{f: f, stream: fs.stream}, fs: fs, budget: f.size + maxText}
}

// spend takes from the budget and reports whether there was enough.
func (t *texts) spend(offset int64, n int) bool {
	if int64(n) > t.budget {
		if t.budget >= 0 {
			t.fs.errorf(dump.Limit, offset, "its strings overlap and exceed the size of the file; the rest is left out")
		}
		t.budget = -1
		return false
	}
	t.budget -= int64(n)
	return true
}

// utf16 reads a MINIDUMP_STRING: a length in bytes, then UTF-16 text. Offset 0
// means that there is none.
func (t *texts) utf16(offset int64, what string) string {
	return t.text(offset, what, cursor.UTF16)
}

// utf8 reads Crashpad's MinidumpUTF8String: a length in bytes, then UTF-8.
func (t *texts) utf8(offset int64, what string) string {
	return t.text(offset, what, cursor.CString)
}

func (t *texts) text(offset int64, what string, decode func([]byte) string) string {
	if offset == 0 {
		return ""
	}
	if s, ok := t.seen[offset]; ok {
		return s
	}
	s := decode(t.sized(offset, what))
	if t.seen != nil {
		t.seen[offset] = s
	}
	return s
}

// sized reads a 32-bit length and that many bytes.
func (t *texts) sized(offset int64, what string) []byte {
	c, err := t.w.at(offset, 4)
	if err != nil {
		t.fail(err, what)
		return nil
	}
	n := c.U32()
	if n > maxText {
		t.fs.errorf(dump.BadRecord, offset, "%s claims %d bytes, more than any string has", what, n)
		return nil
	}
	return t.blob(offset+4, int(n), what)
}

// blob reads n bytes, or what the file holds of them. They are valid until the
// next read.
func (t *texts) blob(offset int64, n int, what string) []byte {
	if n == 0 || !t.spend(offset, n) {
		return nil
	}
	c, err := t.w.at(offset, n)
	if err != nil {
		t.fail(err, what)
	}
	return c.Bytes(c.Len())
}

func (t *texts) fail(err *dump.Error, what string) {
	e := *err
	e.Msg = fmt.Sprintf("%s: %s", what, e.Msg)
	t.fs.add(&e)
}
