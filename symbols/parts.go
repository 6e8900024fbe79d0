package symbols

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// partPattern names files that are not yet whole. Nothing takes them for one.
	partPattern = ".dumptriage-*.part"
	// partAge is after what time a part must be one that a process left behind when
	// it was killed. No download takes nearly so long.
	partAge = 24 * time.Hour
)

// parts are the unfinished files of this process.
var parts struct {
	sync.Mutex
	names     map[string]bool
	abandoned bool
}

// newPart makes a file under a name that a part has, for endPart.
func newPart(dir string) (*os.File, error) {
	parts.Lock()
	defer parts.Unlock()
	if parts.abandoned {
		return nil, errors.New("interrupted")
	}
	f, err := os.CreateTemp(dir, partPattern)
	if err != nil {
		return nil, err
	}
	if parts.names == nil {
		parts.names = map[string]bool{}
	}
	parts.names[f.Name()] = true
	return f, nil
}

// endPart removes a part, unless it got its place under another name.
func endPart(name string) {
	os.Remove(name)
	parts.Lock()
	defer parts.Unlock()
	delete(parts.names, name)
}

// Abandon removes what downloads under way have written, and lets none begin. It is
// for a process that is about to end without returning from its calls.
func Abandon() {
	parts.Lock()
	defer parts.Unlock()
	parts.abandoned = true
	for name := range parts.names {
		os.Remove(name)
	}
	clear(parts.names)
}

// removeStale removes from a cache what processes left there that were killed.
func (s *Store) removeStale(dir string) {
	if s.swept[dir] {
		return
	}
	if s.swept == nil {
		s.swept = map[string]bool{}
	}
	s.swept[dir] = true
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(partPattern, e.Name()); !ok || !e.Type().IsRegular() {
			continue
		}
		if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > partAge {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
