package report

import (
	"testing"

	"dumptriage/dump"
)

// Names are those of rust-minidump's CrashReason and of the JSON contract.
func TestCrashType(t *testing.T) {
	for _, c := range []struct {
		code   uint32
		params []uint64
		want   string
	}{
		{0xc0000005, []uint64{0, 0}, "EXCEPTION_ACCESS_VIOLATION_READ"},
		{0xc0000005, []uint64{1, 0x45}, "EXCEPTION_ACCESS_VIOLATION_WRITE"},
		{0xc0000005, []uint64{8, 0}, "EXCEPTION_ACCESS_VIOLATION_EXEC"},
		{0xc0000005, []uint64{77, 0}, "EXCEPTION_ACCESS_VIOLATION"},
		{0xc0000005, nil, "EXCEPTION_ACCESS_VIOLATION"},
		{0xc0000006, []uint64{0, 0x10, 0xc000009c}, "EXCEPTION_IN_PAGE_ERROR_READ / STATUS_DEVICE_DATA_ERROR"},
		{0xc0000006, []uint64{0, 0x10, 0xffffffffc00000ff}, "EXCEPTION_IN_PAGE_ERROR_READ / STATUS_BAD_FUNCTION_TABLE"},
		{0xc0000006, []uint64{0, 0x10, 0xe0001111}, "EXCEPTION_IN_PAGE_ERROR_READ / 0xe0001111"},
		{0xc0000409, []uint64{7}, "FAST_FAIL_FATAL_APP_EXIT"},
		{0xc0000409, []uint64{2}, "FAST_FAIL_STACK_COOKIE_CHECK_FAILURE"},
		{0xc0000409, []uint64{0x1234}, "EXCEPTION_STACK_BUFFER_OVERRUN / unknown 0x00001234"},
		{0xc0000409, []uint64{1 << 32}, "EXCEPTION_STACK_BUFFER_OVERRUN / unknown 0x100000000"},
		{0xc0000409, nil, "EXCEPTION_STACK_BUFFER_OVERRUN"},
		{0xc00000fd, []uint64{1, 2}, "EXCEPTION_STACK_OVERFLOW"},
		{0x80000003, []uint64{0}, "EXCEPTION_BREAKPOINT"},
		{0xe06d7363, []uint64{0x19930520, 1, 2, 3}, "Unhandled C++ Exception"},
		{0xe0001234, nil, "unknown 0xe0001234"},
		{0, nil, "unknown 0x00000000"},
	} {
		if got := CrashType(&dump.Exception{Code: c.code, Parameters: c.params}); got != c.want {
			t.Errorf("%#x %v: %q, want %q", c.code, c.params, got, c.want)
		}
	}
}

func TestCrashAddress(t *testing.T) {
	for _, c := range []struct {
		name string
		arch dump.Arch
		code uint32
		addr uint64
		par  []uint64
		want uint64
	}{
		{"access violation: what was accessed", dump.AMD64, 0xc0000005, 0x7ff612345678, []uint64{1, 0x20}, 0x20},
		{"in-page error: what was accessed", dump.AMD64, 0xc0000006, 0x7ff612345678, []uint64{0, 0x30, 0}, 0x30},
		{"access to null", dump.AMD64, 0xc0000005, 0x7ff612345678, []uint64{0, 0}, 0},
		{"others: where it was raised", dump.AMD64, 0xc0000409, 0x7ff75355af42, []uint64{7}, 0x7ff75355af42},
		{"no parameters", dump.AMD64, 0xc0000005, 0x1000, nil, 0x1000},
		{"x86, sign-extended by a 64-bit writer", dump.X86, 0xc0000005, 0x401000, []uint64{0, 0xfffffffff0001000}, 0xf0001000},
		{"x86, raised above 2 GB", dump.X86, 0x80000003, 0xffffffff80401000, nil, 0x80401000},
		{"64-bit kernel addresses stay", dump.AMD64, 0xc0000005, 0x1000, []uint64{0, 0xffffffffffffffff}, 0xffffffffffffffff},
	} {
		e := dump.Exception{Code: c.code, Address: c.addr, Parameters: c.par}
		if got := CrashAddress(&e, c.arch); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}
