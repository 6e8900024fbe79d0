//go:build unix && !solaris && !illumos && !aix

package fleet

import (
	"errors"
	"os"
	"syscall"
)

// Lock keeps other runs from writing to a file until it is closed, also by the end of
// the process. Where the file system knows no locks there is none.
func Lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked(f)
	}
	return nil
}
