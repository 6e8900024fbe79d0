package input

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
)

// maxWindow is the largest zstd window that is accepted: what the zstd tool
// itself accepts unless told otherwise. A frame that claims one without filling
// it costs address space but hardly any resident memory.
const maxWindow = 128 << 20

// unpack recognises a container and replaces the content by what is in it.
func (f *File) unpack(opt Options) error {
	head, err := readHead(f.raw, headSize)
	if err != nil {
		return err
	}
	kind, ok := container(head)
	if !ok {
		return nil
	}
	if kind.open == nil {
		return dump.Errorf(dump.UnsupportedFormat, "", "is compressed or archived by %s, which is not supported: unpack it first", kind.name)
	}
	f.container = kind.name
	if err := kind.open(f, opt); err != nil {
		return err
	}
	return f.refuseNested()
}

// readHead reads up to n bytes from the beginning.
func readHead(r io.ReaderAt, n int) ([]byte, error) {
	head := make([]byte, n)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// refuseNested turns away a container within the container: one level is
// unpacked, so that a small file cannot unfold without end.
func (f *File) refuseNested() error {
	head, err := readHead(f.content, headSize)
	if err != nil {
		return err
	}
	if inner, ok := container(head); ok {
		what := "holds"
		if f.member != "" {
			what = fmt.Sprintf("holds %q, which is", f.member)
		}
		return dump.Errorf(dump.UnsupportedFormat, f.container, "%s %s data again: only one level is unpacked, unpack the outer one first", what, inner.name)
	}
	return nil
}

func (f *File) unpackGzip(opt Options) error {
	r, err := gzip.NewReader(f.packed())
	if err != nil {
		return f.unpackError(err)
	}
	return f.fill(opt, func(s *spool) error { return s.copyFrom(r) })
}

func (f *File) unpackZstd(opt Options) error {
	r, err := zstd.NewReader(f.packed(), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return f.unpackError(err)
	}
	defer r.Close()
	return f.fill(opt, func(s *spool) error { return s.copyFrom(r) })
}

// packed reads the compressed file from its beginning.
func (f *File) packed() io.Reader { return bufio.NewReaderSize(f.raw.stream(), copySize) }

// fill makes what unpack writes the content. When unpacking fails after it
// gave something, that is kept and the failure noted as damage.
func (f *File) fill(opt Options, unpack func(*spool) error) error {
	s := newSpool(opt)
	err := unpack(s)
	if s.err == nil && err != nil && s.size > 0 {
		e := f.unpackError(err)
		if e.Code != dump.Limit {
			e.Msg += fmt.Sprintf("; the %d bytes before that are used", s.size)
			f.damage = append(f.damage, e)
			err = nil
		}
	}
	if err != nil {
		s.discard()
		return f.unpackError(err)
	}
	f.content = s.finish()
	return nil
}

// unpackError makes a *dump.Error of what an unpacker said.
func (f *File) unpackError(err error) *dump.Error {
	var e *dump.Error
	switch {
	case errors.As(err, &e):
		copied := *e
		copied.File = f.name
		if copied.Stream == "" {
			copied.Stream = f.container
		}
		return &copied
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e = dump.Errorf(dump.Truncated, f.container, "the compressed data end early")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		e = dump.Errorf(dump.Limit, f.container, "needs a window of more than %d MiB to unpack", maxWindow>>20)
	default:
		e = dump.Errorf(dump.BadRecord, f.container, "the compressed data are damaged")
	}
	e.File = f.name
	if e.Code == dump.BadRecord {
		e.Err = err
	}
	return e
}
