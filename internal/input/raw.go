package input

import (
	"bytes"
	"io"
	"os"

	"dumptriage/dump"
)

// openRaw opens a path without looking at what it holds.
func openRaw(path string, opt Options) (source, error) {
	if path == "-" {
		return openStdin(opt)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, ioError("cannot be opened", err)
	}
	fi, err := f.Stat()
	if err == nil && fi.Mode().IsRegular() {
		return newDisk(f, fi.Size()), nil
	}
	defer f.Close()
	switch {
	case err != nil:
		return nil, ioError("cannot be opened", err)
	case fi.IsDir():
		return nil, dump.Errorf(dump.IO, "", "is a directory")
	}
	return readAll(f, opt)
}

// openStdin maps standard input when it is a file that nobody has read from.
func openStdin(opt Options) (source, error) {
	if fi, err := os.Stdin.Stat(); err == nil && fi.Mode().IsRegular() {
		if pos, err := os.Stdin.Seek(0, io.SeekCurrent); err == nil && pos == 0 {
			d := newDisk(os.Stdin, fi.Size())
			d.shared = true
			return d, nil
		}
	}
	return readAll(os.Stdin, opt)
}

// readAll takes in what can be read only once: a pipe or device. Where a dump is
// wanted, what does not begin like one is not read to its end, which it may
// not have; its beginning is enough to say what it is.
func readAll(r io.Reader, opt Options) (source, error) {
	s := newSpool(opt)
	head := make([]byte, headSize)
	n, err := io.ReadFull(r, head)
	head = head[:n]
	if err == nil && opt.Want == nil && !isDump(head) {
		if _, ok := container(head); !ok {
			r = bytes.NewReader(nil)
		}
	}
	switch err {
	case nil, io.EOF, io.ErrUnexpectedEOF:
		if _, err = s.Write(head); err == nil {
			err = s.copyFrom(r)
		}
	}
	if err != nil {
		s.discard()
		if s.err == nil {
			err = ioError("cannot be read", err)
		}
		return nil, err
	}
	return s.finish(), nil
}
