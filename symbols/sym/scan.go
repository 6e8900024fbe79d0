package sym

import (
	"bytes"
	"io"
	"sync"
)

const (
	// scanBlock is how much is read at a time, and the longest line that is read.
	// Reads of this size bypass the mapping of input files.
	scanBlock = 1 << 20
	// peekBlock is the first read of a record that is looked up.
	peekBlock = 4096
)

// scanner goes through the lines of a part of a file.
type scanner struct {
	r    io.ReaderAt
	off  int64 // of buf[0] in the file
	end  int64
	room []byte // a buffer to keep
	buf  []byte // what was read
	pos  int    // of the next line in buf
	skip bool   // the rest of a line that was too long
	long int    // lines that were too long
	err  error
}

// newScanner goes from off to the end of the file, reading block bytes first. The
// caller releases it.
func newScanner(r io.ReaderAt, off, end int64, block int) *scanner {
	s := scanners.Get().(*scanner)
	if cap(s.room) < block {
		s.room = make([]byte, block)
	}
	*s = scanner{r: r, off: off, end: end, room: s.room, buf: s.room[:0:block]}
	return s
}

// scanners keeps the buffers of look-ups.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) release() {
	if cap(s.room) <= peekBlock {
		*s = scanner{room: s.room}
		scanners.Put(s)
	}
}

// next returns the next line without its end, and its offset. The bytes are valid
// until the next call.
func (s *scanner) next() (line []byte, off int64, ok bool) {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			line, off = s.buf[s.pos:s.pos+i], s.off+int64(s.pos)
			s.pos += i + 1
			if s.skip {
				s.skip = false
				continue
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), off, true
		}
		if !s.fill() {
			break
		}
	}
	if s.pos == len(s.buf) || s.skip || s.err != nil {
		return nil, 0, false
	}
	line, off = s.buf[s.pos:], s.off+int64(s.pos)
	s.pos = len(s.buf)
	return bytes.TrimSuffix(line, []byte{'\r'}), off, true
}

// fill reads on, keeping the line begun. It reports whether there was more.
func (s *scanner) fill() bool {
	at := s.off + int64(len(s.buf))
	if at >= s.end || s.err != nil {
		return false
	}
	kept := len(s.buf) - s.pos
	if kept > 0 && kept >= scanBlock { // the line is too long to keep
		if !s.skip {
			s.skip = true
			s.long++
		}
		kept = 0
	}
	begun := s.buf[len(s.buf)-kept:]
	if kept == cap(s.buf) { // the line fills it: look further ahead
		s.buf = make([]byte, 0, min(4*int64(max(kept, 256)), s.end-at+int64(kept), scanBlock+peekBlock))
	}
	s.buf = s.buf[:cap(s.buf)]
	copy(s.buf, begun)
	n, err := s.r.ReadAt(s.buf[kept:min(int64(len(s.buf)), int64(kept)+s.end-at)], at)
	if err != nil && err != io.EOF {
		s.err = err
	}
	s.off, s.pos, s.buf = at-int64(kept), 0, s.buf[:kept+n]
	return n > 0
}
