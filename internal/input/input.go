// Package input opens the files that the readers read: dumps, images, PDB and
// symbol files, plain or compressed, on disk or from a pipe.
//
// A plain file is mapped into memory where that is possible and read in place;
// nothing of it is loaded until it is asked for. A compressed one, recognised
// by its first bytes and never by its name, is unpacked into memory or, beyond
// a few megabytes, into a temporary file: zstd (RFC 8878), gzip (RFC 1952), zip
// (APPNOTE.TXT) and cabinets (package cab). Only one level is unpacked, and
// only so far as Options.MaxSize allows, which is enforced while unpacking:
// what a file says of its own size is not relied on.
//
// Errors are *dump.Error. A compressed file that ends early or is damaged still
// opens with what came out before, and File.Damage says so.
package input

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"dumptriage/dump"
)

const (
	// DefaultMaxSize is the limit for unpacked and piped data when Options do
	// not set one: 8 GiB, more than all but the dumps of large servers.
	DefaultMaxSize = 8 << 30

	// inMemory is how much unpacked data is kept in memory before it goes to a
	// temporary file. Small dumps and most symbol files never touch the disk.
	inMemory = 16 << 20
)

// Options says how to open a file. The zero value is good for dumps.
type Options struct {
	// MaxSize limits the data that come out of a compressed file or a pipe, in
	// bytes; 0 means DefaultMaxSize. It does not apply to plain files, which
	// are read in place.
	MaxSize int64

	// Want chooses the member of an archive by its name: the first for which it
	// returns true is opened, whatever it holds. Nil means the first that
	// begins like a dump.
	Want func(name string) bool

	// TempDir is where large unpacked data go; "" means os.TempDir().
	TempDir string
}

func (o Options) maxSize() int64 {
	if o.MaxSize > 0 {
		return o.MaxSize
	}
	return DefaultMaxSize
}

// File is an opened file. Its methods are safe for concurrent use, except that
// Close must not be called while others run.
type File struct {
	content    source // what ReadAt reads
	raw        source // the file itself; the same as content when it is plain
	name       string
	container  string
	member     string
	members    []string
	candidates []string
	damage     []*dump.Error
}

// Open opens the file at path, or standard input when path is "-".
func Open(path string, opt Options) (*File, error) {
	raw, err := openRaw(path, opt)
	if err != nil {
		return nil, named(err, path)
	}
	return open(raw, path, opt)
}

// New opens a file that the caller reads, such as one inside another. The name
// is for messages. Close does not close r.
func New(r io.ReaderAt, size int64, name string, opt Options) (*File, error) {
	return open(&readerSource{r, size}, name, opt)
}

// open looks for a container around the content. It owns raw.
func open(raw source, name string, opt Options) (*File, error) {
	f := &File{raw: raw, content: raw, name: name}
	if err := f.unpack(opt); err != nil {
		f.Close()
		return nil, named(err, name)
	}
	return f, nil
}

// named puts the file's name into an error, and turns any other error into a
// *dump.Error.
func named(err error, name string) error {
	var e *dump.Error
	if !errors.As(err, &e) {
		e = ioError("cannot be read", err)
	}
	withName := *e
	withName.File = name
	return &withName
}

// ioError makes an error of what the operating system said, without the path
// that it repeats.
func ioError(msg string, err error) *dump.Error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &dump.Error{Code: dump.IO, Offset: -1, Size: -1, Msg: msg, Err: err}
}

// ReadAt implements io.ReaderAt over the unpacked content. Where the file can
// no longer be read, because it was cut short or its medium is gone, the error
// is a *dump.Error of code IO.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.content.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = named(err, f.name)
	}
	return n, err
}

// Unmapped returns a reader of the same bytes that goes by system calls. It is
// for users who keep what they read in a cache of their own: pages of a mapped
// file count as this process's memory, with many around each that is touched.
func (f *File) Unmapped() io.ReaderAt {
	if d, ok := f.content.(*disk); ok {
		return unmapped{d, f.name}
	}
	return f
}

type unmapped struct {
	d    *disk
	name string
}

func (u unmapped) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= u.d.size {
		return 0, outside(off)
	}
	n, err := u.d.pread(p, off)
	if err != nil && err != io.EOF {
		err = named(err, u.name)
	}
	return n, err
}

// Size returns the size of the unpacked content in bytes.
func (f *File) Size() int64 { return f.content.Size() }

// DiskSize returns the size of the file itself in bytes, compressed or not.
func (f *File) DiskSize() int64 { return f.raw.Size() }

// Name returns the path as it was given.
func (f *File) Name() string { return f.name }

// Container returns the kind of container that the content was unpacked from:
// "zstd", "gzip", "zip", "cab", or "" for a plain file.
func (f *File) Container() string { return f.container }

// Member returns the name of the content inside an archive, or "".
func (f *File) Member() string { return f.member }

// Members returns the names of all files of an archive, in its order.
func (f *File) Members() []string { return f.members }

// Candidates returns the names of those members that begin like a dump, when
// Options.Want did not choose. Of more than one, the first was opened.
func (f *File) Candidates() []string { return f.candidates }

// Damage returns what went wrong while unpacking: the content is what came out
// before it.
func (f *File) Damage() []*dump.Error { return f.damage }

// SHA256 returns the hash of the file as it is on disk, compressed or not, in
// hex. It reports false when the file has more than limit bytes (0: no limit)
// or cannot be read to its end. It uses ordinary reads, so that hashing a large
// dump does not fill memory with its pages.
func (f *File) SHA256(limit int64) (string, bool) {
	size := f.raw.Size()
	if limit > 0 && size > limit {
		return "", false
	}
	h := sha256.New()
	if n, err := io.CopyBuffer(onlyWriter{h}, onlyReader{f.raw.stream()}, make([]byte, copySize)); err != nil || n != size {
		return "", false
	}
	return hex.EncodeToString(h.Sum(nil)), true
}

// onlyReader and onlyWriter hide methods that would make io.CopyBuffer leave
// the buffer unused.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// Close releases the mapping and any temporary file. Reading afterwards fails.
func (f *File) Close() error {
	err := f.content.Close()
	if f.raw != f.content {
		err = errors.Join(err, f.raw.Close())
	}
	f.content, f.raw = closed{}, closed{}
	return err
}

// closed is what a closed file reads.
type closed struct{}

func (closed) ReadAt([]byte, int64) (int, error) {
	return 0, &dump.Error{Code: dump.IO, Offset: -1, Size: -1, Msg: "was closed", Err: os.ErrClosed}
}
func (closed) Size() int64         { return 0 }
func (closed) Close() error        { return nil }
func (c closed) stream() io.Reader { return io.NewSectionReader(c, 0, 1) }
