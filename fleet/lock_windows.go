package fleet

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// Of the Windows SDK: LOCKFILE_FAIL_IMMEDIATELY | LOCKFILE_EXCLUSIVE_LOCK, and
// ERROR_LOCK_VIOLATION.
const (
	lockNow       = 3
	lockViolation = syscall.Errno(33)
)

// Lock keeps other runs from writing to a file until it is closed, also by the end of
// the process. It locks a byte that no file has: on Windows a lock keeps others from
// reading too.
func Lock(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: 0x7fffffff}
	ok, _, err := lockFileEx.Call(f.Fd(), lockNow, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok == 0 && errors.Is(err, lockViolation) {
		return errLocked(f)
	}
	return nil
}
