package symbols

import (
	"os"
	"path/filepath"
	"time"

	"dumptriage/internal/temporary"
)

const (
	// partPattern names files that are not yet whole. Nothing takes them for one.
	partPattern = ".dumptriage-*.part"
	// partAge is after what time a part must be one that a process left behind when
	// it was killed. No download takes nearly so long.
	partAge = 24 * time.Hour
)

// newPart makes a file under a name that a part has, for endPart.
func newPart(dir string) (*os.File, error) { return temporary.File(dir, partPattern) }

// endPart removes a part, unless it got its place under another name.
func endPart(name string) { _ = temporary.Remove(name) } // what stays, removeStale finds

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
