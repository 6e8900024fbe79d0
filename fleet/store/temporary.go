package store

import (
	"errors"
	"os"
	"sync"
)

// temporaries are the folders with copies of databases that this process has made.
var temporaries struct {
	sync.Mutex
	names     map[string]bool
	abandoned bool
}

// newTemporary makes a folder for copies, for dropTemporary.
func newTemporary() (string, error) {
	temporaries.Lock()
	defer temporaries.Unlock()
	if temporaries.abandoned {
		return "", errors.New("interrupted")
	}
	dir, err := os.MkdirTemp("", "buckets-*")
	if err != nil {
		return "", err
	}
	if temporaries.names == nil {
		temporaries.names = map[string]bool{}
	}
	temporaries.names[dir] = true
	return dir, nil
}

// dropTemporary removes a folder with all in it.
func dropTemporary(dir string) error {
	temporaries.Lock()
	defer temporaries.Unlock()
	delete(temporaries.names, dir)
	return os.RemoveAll(dir)
}

// Abandon removes the copies that open databases are read from, and lets none be made. It
// is for a process that is about to end without returning from its calls.
func Abandon() {
	temporaries.Lock()
	defer temporaries.Unlock()
	temporaries.abandoned = true
	for dir := range temporaries.names {
		_ = os.RemoveAll(dir) // nobody is left to be told
	}
	clear(temporaries.names)
}
