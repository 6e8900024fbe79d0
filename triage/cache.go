package triage

import (
	"fmt"

	"dumptriage/symbols"
)

// Cache keeps images and symbols open from one analysis to the next, for many
// dumps of the same programs. It is used by one goroutine, and serves one
// incident at a time: close that before the next analysis. What it holds is
// bounded: it starts anew when it has many files open, one of them has changed on disk,
// or the path is another.
// The zero value is ready for use.
type Cache struct {
	path  string // without the folders that dumps lie in
	all   string // with them
	kept  *symbols.Store
	asked int
}

const (
	cachedFiles = 64   // files held open
	cachedDumps = 4096 // analyses, after which what was missing is looked for anew
)

// Close closes what is open.
func (c *Cache) Close() error {
	if c.kept == nil {
		return nil
	}
	err := c.kept.Close()
	c.kept = nil
	return err
}

func (c *Cache) store(path symbols.Path, opt symbols.StoreOptions) *symbols.Store {
	name, all := fmt.Sprintf("%+v", path.Places()), fmt.Sprintf("%+v", path)
	if c.asked++; c.kept != nil && (name != c.path || c.kept.Opened() > cachedFiles || c.asked > cachedDumps || c.kept.Stale()) {
		c.Close()
	}
	if c.kept == nil {
		opt.Remember = true
		c.path, c.all, c.kept, c.asked = name, all, symbols.NewPathStore(path, opt), 0
	}
	if all != c.all { // a dump in another folder
		c.kept.LookBeside(path)
		c.all = all
	}
	return c.kept
}
