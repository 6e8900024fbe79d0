package input

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
	"dumptriage/internal/cab"
)

const (
	// headsMost is how many members of an archive are looked at for a dump.
	headsMost = 4096
	// namesShown is how many members an error names.
	namesShown = 10
)

// member is a file in an archive.
type member struct {
	name string
	head []byte // first magicSize bytes; nil when they could not be read
	// unpack writes the member to the spool, whose limit it may check early.
	unpack func(s *spool) error
}

// choose opens one member: the one wanted, or the first that is a dump. why
// says what went wrong when heads could not be read.
func (f *File) choose(all []member, why error, opt Options) error {
	chosen := -1
	for i, m := range all {
		f.members = append(f.members, m.name)
		hit := false
		if opt.Want != nil {
			hit = chosen < 0 && opt.Want(m.name)
		} else if hit = isDump(m.head); hit {
			f.candidates = append(f.candidates, m.name)
		}
		if hit && chosen < 0 {
			chosen = i
		}
	}
	if chosen < 0 {
		return f.noneChosen(all, why, opt)
	}
	f.member = all[chosen].name
	return f.fill(opt, all[chosen].unpack)
}

func (f *File) noneChosen(all []member, why error, opt Options) error {
	e := dump.Errorf(dump.UnsupportedFormat, f.container, "holds no file that is a dump")
	if opt.Want != nil {
		e.Msg = "holds no file of the name that is looked for"
	}
	if why != nil && opt.Want == nil {
		e.Code, e.Err = f.unpackError(why).Code, why
	}
	if len(all) == 0 {
		e.Msg = "is an empty archive"
		return e
	}
	var names []string
	for _, m := range all[:min(len(all), namesShown)] {
		name := fmt.Sprintf("%q", m.name)
		if inner, ok := container(m.head); ok {
			name += " (" + inner.name + ": only one level is unpacked)"
		}
		names = append(names, name)
	}
	e.Msg += ", only " + strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		e.Msg += fmt.Sprintf(" and %d more", more)
	}
	if len(all) > headsMost && opt.Want == nil {
		e.Msg += fmt.Sprintf("; the first %d were looked at", headsMost)
	}
	return e
}

func (f *File) unpackCab(opt Options) error {
	c, err := cab.Open(f.raw, f.raw.Size())
	if err != nil {
		return err
	}
	f.damage = append(f.damage, c.Damage()...)
	var heads [][]byte
	var why error
	if opt.Want == nil {
		heads, why = c.Heads(magicSize, opt.maxSize())
	}
	all := make([]member, len(c.Files()))
	for i, file := range c.Files() {
		all[i].name = file.Name
		all[i].unpack = func(s *spool) error {
			_, err := c.Extract(file, s, s.limit)
			return err
		}
		if heads != nil {
			all[i].head = heads[i]
		}
	}
	return f.choose(all, why, opt)
}

// zipZstd is the method number that APPNOTE.TXT 4.4.5 gives zstd.
const zipZstd = 93

func (f *File) unpackZip(opt Options) error {
	z, err := zip.NewReader(f.raw, f.raw.Size())
	switch {
	case errors.Is(err, zip.ErrFormat):
		return dump.Errorf(dump.Truncated, "zip", "its directory, which is at the end, is missing or damaged: was it cut short?")
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are never used as paths
		return f.unpackError(err)
	}
	z.RegisterDecompressor(zipZstd, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow)))
	var all []member
	var why error
	for _, file := range z.File {
		if file.FileInfo().IsDir() {
			continue
		}
		m := member{name: file.Name, unpack: func(s *spool) error { return unpackZipMember(file, s) }}
		if opt.Want == nil && len(all) < headsMost {
			if m.head, err = zipHead(file); err != nil && why == nil {
				why = err
			}
		}
		all = append(all, m)
	}
	return f.choose(all, why, opt)
}

func unpackZipMember(file *zip.File, s *spool) error {
	if file.UncompressedSize64 > uint64(s.limit) {
		return tooLarge(s.limit)
	}
	r, err := openZipMember(file)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.copyFrom(r)
}

func zipHead(file *zip.File) ([]byte, error) {
	r, err := openZipMember(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head := make([]byte, magicSize)
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && uint64(n) == file.UncompressedSize64 {
		err = nil // a short file, not a cut one
	}
	return head[:n], err
}

// encrypted is the bit of the flags that APPNOTE.TXT 4.4.4 gives encryption.
const encrypted = 1

func openZipMember(file *zip.File) (io.ReadCloser, error) {
	if file.Flags&encrypted != 0 {
		return nil, dump.Errorf(dump.UnsupportedFormat, "zip", "%q is encrypted: unpack it first", file.Name)
	}
	r, err := file.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, dump.Errorf(dump.UnsupportedFormat, "zip", "%q is packed by method %d, which is not supported", file.Name, file.Method)
	}
	return r, err
}
