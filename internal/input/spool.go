package input

import (
	"io"
	"os"

	"dumptriage/dump"
)

// copySize is how much is read or written at once.
const copySize = 128 << 10

// spool collects data up to a limit: in memory first, then in a temporary file
// that has no name where the system allows it, so that nothing is left behind
// by a crash.
type spool struct {
	limit  int64
	dir    string
	size   int64
	mem    *memory // until it is too much
	file   *os.File
	remove string
	err    error // why writing failed; sticky
}

func newSpool(opt Options) *spool {
	return &spool{limit: opt.maxSize(), dir: opt.TempDir, mem: &memory{}}
}

// Write implements io.Writer. Its errors are *dump.Error: of code Limit when p
// does not fit.
func (s *spool) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if int64(len(p)) > s.limit-s.size {
		s.err = tooLarge(s.limit)
		return 0, s.err
	}
	if s.file == nil && s.size+int64(len(p)) <= inMemory {
		s.mem.append(p)
	} else if err := s.writeFile(p); err != nil {
		s.err = ioError("its unpacked data cannot be stored in a temporary file", err)
		return 0, s.err
	}
	s.size += int64(len(p))
	return len(p), nil
}

func tooLarge(limit int64) *dump.Error {
	return dump.Errorf(dump.Limit, "", "holds more data than the limit of %d bytes for compressed or piped input", limit)
}

func (s *spool) writeFile(p []byte) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "dumptriage-*.tmp")
		if err != nil {
			return err
		}
		s.file = f
		if os.Remove(f.Name()) != nil { // Windows keeps the name of an open file
			s.remove = f.Name()
		}
		for _, piece := range s.mem.pieces {
			if _, err := f.Write(piece); err != nil {
				return err
			}
		}
		s.mem = nil
	}
	_, err := s.file.Write(p)
	return err
}

// copyFrom reads r to its end. The error is r's unless s.err is set.
func (s *spool) copyFrom(r io.Reader) error {
	buf := make([]byte, copySize)
	for idle := 0; idle < 100; {
		n, err := r.Read(buf)
		if n > 0 {
			idle = 0
			if _, err := s.Write(buf[:n]); err != nil {
				return err
			}
		} else {
			idle++
		}
		switch err {
		case nil:
		case io.EOF: // itself, as io.Reader demands: a wrapped one is a failure
			return nil
		default:
			return err
		}
	}
	return io.ErrNoProgress
}

// finish makes a source of the data.
func (s *spool) finish() source {
	if s.file == nil {
		return s.mem
	}
	d := newDisk(s.file, s.size)
	d.remove = s.remove
	return d
}

// discard drops the data.
func (s *spool) discard() {
	if s.file != nil {
		s.file.Close()
		if s.remove != "" {
			os.Remove(s.remove)
		}
	}
}
