package report

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/report/codes"
)

// Exception codes whose parameters say more than the code does.
const (
	codeAccessViolation    = 0xc0000005
	codeInPageError        = 0xc0000006
	codeStackBufferOverrun = 0xc0000409
)

// accessKinds names the first parameter of an access violation or in-page
// error.
var accessKinds = map[uint64]string{0: "READ", 1: "WRITE", 8: "EXEC"}

// CrashType names an exception as rust-minidump's crash_info.type does:
// "EXCEPTION_ACCESS_VIOLATION_READ", "FAST_FAIL_FATAL_APP_EXIT",
// "unknown 0xe0001234".
func CrashType(e *dump.Exception) string {
	name := codes.Exception(e.Code)
	if name == "" {
		return fmt.Sprintf("unknown 0x%08x", e.Code)
	}
	if len(e.Parameters) == 0 {
		return name
	}
	switch e.Code {
	case codeAccessViolation, codeInPageError:
		kind := accessKinds[e.Parameters[0]]
		if kind == "" {
			return name
		}
		name += "_" + kind
		if e.Code == codeInPageError && len(e.Parameters) > 2 {
			name += " / " + statusName(uint32(e.Parameters[2]))
		}
	case codeStackBufferOverrun:
		if s := codes.FastFail(uint32(e.Parameters[0])); s != "" && e.Parameters[0] <= 0xffffffff {
			return s
		}
		return fmt.Sprintf("%s / unknown 0x%08x", name, e.Parameters[0])
	}
	return name
}

func statusName(status uint32) string {
	if s := codes.NTStatus(status); s != "" {
		return s
	}
	return fmt.Sprintf("0x%08x", status)
}

// CrashAddress is the address that an exception is about: the accessed address
// of an access violation or in-page error, else where it was raised. 32-bit
// addresses that a dump stores sign-extended come out as 32 bits.
func CrashAddress(e *dump.Exception, arch dump.Arch) uint64 {
	addr := e.Address
	if (e.Code == codeAccessViolation || e.Code == codeInPageError) && len(e.Parameters) > 1 {
		addr = e.Parameters[1]
	}
	return arch.Narrow(addr)
}
