// Package temporary keeps account of the files and folders that this process will take
// away again, so that one that is interrupted leaves none of them behind: parts of
// downloads, copies of databases, dumps that are not yet whole.
package temporary

import (
	"errors"
	"os"
	"sync"
)

// kept are those that are there now.
var kept struct {
	sync.Mutex
	names     map[string]bool
	abandoned bool
}

var errInterrupted = errors.New("interrupted")

// File makes a file as os.CreateTemp does, for Remove.
func File(dir, pattern string) (*os.File, error) {
	var f *os.File
	err := add(func() (name string, err error) {
		if f, err = os.CreateTemp(dir, pattern); err != nil {
			return "", err
		}
		return f.Name(), nil
	})
	return f, err
}

// Dir makes a folder among the system's temporary ones as os.MkdirTemp does, for Remove.
func Dir(pattern string) (dir string, err error) {
	err = add(func() (string, error) {
		dir, err = os.MkdirTemp("", pattern)
		return dir, err
	})
	return dir, err
}

// add holds the account while something is made: Abandon never misses it.
func add(create func() (name string, err error)) error {
	kept.Lock()
	defer kept.Unlock()
	if kept.abandoned {
		return errInterrupted
	}
	name, err := create()
	if err != nil {
		return err
	}
	if kept.names == nil {
		kept.names = map[string]bool{}
	}
	kept.names[name] = true
	return nil
}

// Remove takes a file, or a folder with all in it, away. One that was given another name
// is not touched.
func Remove(name string) error {
	kept.Lock()
	defer kept.Unlock()
	delete(kept.names, name)
	return os.RemoveAll(name)
}

// Abandon takes all away, and lets none be made. It is for a process that is about to end
// without returning from its calls.
func Abandon() {
	kept.Lock()
	defer kept.Unlock()
	kept.abandoned = true
	for name := range kept.names {
		_ = os.RemoveAll(name) // nobody is left to be told
	}
	clear(kept.names)
}
