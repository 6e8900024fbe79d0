package symbols

import (
	"io"
	"os"
)

// openFile is a file that a store holds open, and what it was then.
type openFile struct {
	io.Closer
	path string
	was  os.FileInfo // nil: not known
}

// keepOpen holds a file open until the store is closed. Who calls has the lock.
func (s *Store) keepOpen(path string, f io.Closer) {
	o := openFile{Closer: f, path: path}
	if s.memory != nil {
		o.was, _ = os.Stat(path)
	}
	s.open = append(s.open, o)
}

// Opened returns how many files the store holds open.
func (s *Store) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Stale reports whether a file that a store which remembers holds open is no longer what
// it was: written over, replaced or gone. A file that is written over changes below whoever
// has it open, so what was proved of it says nothing any more. Such a store is of no use.
func (s *Store) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		if o.was == nil {
			continue
		}
		is, err := os.Stat(o.path)
		if err != nil || !os.SameFile(is, o.was) || is.Size() != o.was.Size() || !is.ModTime().Equal(o.was.ModTime()) {
			return true
		}
	}
	return false
}
