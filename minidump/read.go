package minidump

import (
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	windowSize = 8192
	// farSize is how much is read at a place far from the last one: records of a
	// hostile file can point anywhere, and a whole window each would cost dearly.
	farSize = 512
	// freeShared is what a shared string may have without being counted at each
	// use: the names of all kinds of objects are shorter.
	freeShared = 64
	// maxText bounds one string: a UNICODE_STRING holds at most 65,534 bytes.
	maxText = 0xffff
)

// locate returns a stream's directory entry, or nil when there is nothing to
// read; the faults then already hold the reason, if there is one.
func (f *File) locate(streamType uint32) (*StreamInfo, *faults) {
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
	return s, fs
}

// open reads a stream's bytes, at most limit of them. The cursor is nil when
// there is nothing to read.
func (f *File) open(streamType uint32, limit int64) (*cursor.Cursor, *faults) {
	s, fs := f.locate(streamType)
	if s == nil {
		return nil, fs
	}
	return cursor.At(f.r, f.size, s.Offset, min(s.Size, limit), s.Name), fs
}

// Limits for open. Structures of fixed size end long before fixedLimit; lists
// are as long as the directory says.
const (
	fixedLimit = 4096
	tableLimit = math.MaxInt64
)

// openList reads a MINIDUMP_*_LIST: a 32-bit count and that many records, of
// which it returns how many are there. Some writers align the records to 8
// bytes; the stream's size tells. No more is read than the records need.
func (f *File) openList(streamType uint32, size, limit int) (*cursor.Cursor, *faults, int) {
	s, fs := f.locate(streamType)
	if s == nil {
		return nil, fs, 0
	}
	head := cursor.At(f.r, f.size, s.Offset, min(s.Size, 4), s.Name)
	n := int64(head.U32())
	if head.Err() != nil {
		fs.add(head.Err())
		return nil, fs, 0
	}
	at := s.Offset + 4
	if s.Size == 8+n*int64(size) {
		at += 4
	}
	room := max(min(s.Offset+s.Size, f.size)-at, 0) / int64(size)
	if n > room {
		fs.errorf(dump.BadCount, at, "claims %d records of %d bytes, room for %d", n, size, room)
		n = room
	}
	if n > int64(limit) {
		fs.errorf(dump.Limit, at, "%d records, of which the first %d are read", n, limit)
		n = int64(limit)
	}
	return cursor.At(f.r, f.size, min(at, f.size), n*int64(size), s.Name), fs, int(n)
}

// window reads small pieces that lie near each other, such as the names of
// modules, with few reads of the file. It is used by one decoder at a time.
type window struct {
	f    *input
	fs   *faults
	base int64
	buf  []byte
	c    *cursor.Cursor // over what buf holds of the file from base on
}

// unlisted stands for an error that would only be counted, and so needs no
// message.
var unlisted = &dump.Error{Code: dump.Truncated, Offset: -1, Size: -1, Msg: "beyond the end of the file"}

// at returns a cursor over n bytes at a file offset, or over as many as the
// file holds together with the error that says so. The bytes are valid until
// the next call.
func (w *window) at(offset int64, n int) (*cursor.Cursor, *dump.Error) {
	if offset < 0 || offset > w.f.size {
		return cursor.New(nil, w.fs.stream, offset), w.outside(offset, n)
	}
	have := int(min(int64(n), w.f.size-offset))
	if w.c == nil || offset < w.base || offset-w.base+int64(have) > int64(w.c.Len()) {
		if e := w.load(offset, have); e != nil {
			return cursor.New(nil, w.fs.stream, offset), e
		}
	}
	w.c.Seek(int(offset - w.base))
	if have < n {
		return w.c.Sub(have), w.outside(offset, n)
	}
	return w.c.Sub(have), nil
}

func (w *window) outside(offset int64, n int) *dump.Error {
	if w.fs.full() {
		return unlisted
	}
	return w.f.outside(w.fs.stream, offset, int64(n))
}

// load fills the window from an offset on, with at least n bytes.
func (w *window) load(offset int64, n int) *dump.Error {
	size := farSize
	if ahead := offset - w.base; ahead >= 0 && ahead <= 2*windowSize {
		size = windowSize
	}
	size = int(min(int64(max(n, size)), w.f.size-offset))
	if size > cap(w.buf) {
		w.buf = make([]byte, max(size, windowSize))
	}
	got, err := w.f.r.ReadAt(w.buf[:size], offset)
	if got < n {
		w.c = nil
		return &dump.Error{Code: dump.IO, Stream: w.fs.stream, Offset: offset, Size: int64(n), Msg: "cannot be read", Err: err}
	}
	w.base, w.c = offset, cursor.New(w.buf[:got], w.fs.stream, offset)
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
	return &texts{w: window{f: f, fs: fs}, fs: fs, budget: f.size + maxText}
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
		// It costs no memory again, but every use is printed.
		if !t.spend(offset, max(0, len(s)-freeShared)) {
			return ""
		}
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

// fail notes an error of the window with what was wanted.
func (t *texts) fail(err *dump.Error, what string) { t.fs.addAt(err, what) }
