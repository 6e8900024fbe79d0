package pdb

import (
	"bytes"
	"sync"

	"dumptriage/dump"
)

// stringTable is the "/names" stream: file names and frame data programs, by
// offset. It is read through the stream, never as a whole.
type stringTable struct {
	s     *Stream
	size  int64
	known knownNames
}

// knownNames keeps names that were read before. Frames of a dump come from few
// places, and their names are asked for again and again.
type knownNames struct {
	mu   sync.Mutex
	list map[uint32]string
}

// Bounds of the names that are kept: how many, and how long each.
const (
	maxKnown      = 1 << 10
	maxKnownBytes = 1 << 10
)

func (k *knownNames) get(id uint32) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.list[id]
	return s, ok
}

func (k *knownNames) put(id uint32, s string) {
	if len(s) > maxKnownBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil || len(k.list) >= maxKnown {
		k.list = map[uint32]string{}
	}
	k.list[id] = s
}

const (
	namesSignature = 0xEFFEEFFE
	namesHeader    = 12
	maxName        = 1 << 16 // longest name or program that is read
)

func openStringTable(s *Stream) (*stringTable, error) {
	c, err := s.cursor(0, min(namesHeader, s.size), "/names")
	if err != nil {
		return nil, err
	}
	sig, _, size := c.U32(), c.U32(), c.U32()
	if err := c.Err(); err != nil {
		return nil, err
	}
	if sig != namesSignature {
		return nil, dump.Errorf(dump.BadRecord, "/names", "signature %#x is not %#x", sig, uint32(namesSignature))
	}
	return &stringTable{s: s, size: min(int64(size), s.size-namesHeader)}, nil
}

// at returns the string at an offset, and false when there is none.
func (t *stringTable) at(off uint32) (string, bool) {
	if t == nil || int64(off) >= t.size {
		return "", false
	}
	if s, ok := t.known.get(off); ok {
		return s, true
	}
	s, ok := readCString(t.s, namesHeader+int64(off), namesHeader+t.size)
	if ok {
		t.known.put(off, s)
	}
	return s, ok
}

// readCString reads the NUL-terminated string at off, which ends before end.
func readCString(s *Stream, off, end int64) (string, bool) {
	var buf [128]byte
	var long []byte
	for len(long) < maxName {
		n, _ := s.ReadAt(buf[:min(int64(len(buf)), end-off)], off)
		if n == 0 {
			return "", false
		}
		if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
			return string(append(long, buf[:i]...)), true
		}
		long = append(long, buf[:n]...)
		off += int64(n)
	}
	return "", false
}
