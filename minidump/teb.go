package minidump

import "dumptriage/dump"

// tebLayout places fields of the TEB and PEB, which have been the same in every
// version of Windows NT (public winternl.h and symbols).
type tebLayout struct {
	stackBase, stackLimit, self, peb, lastError uint64
	pebImageBase, pebParameters                 uint64
	paramsCommandLine                           uint64 // UNICODE_STRING in RTL_USER_PROCESS_PARAMETERS
}

var (
	teb64 = tebLayout{stackBase: 0x08, stackLimit: 0x10, self: 0x30, peb: 0x60, lastError: 0x68, pebImageBase: 0x10, pebParameters: 0x20, paramsCommandLine: 0x70}
	teb32 = tebLayout{stackBase: 0x04, stackLimit: 0x08, self: 0x18, peb: 0x30, lastError: 0x34, pebImageBase: 0x08, pebParameters: 0x10, paramsCommandLine: 0x40}
)

func tebLayoutOf(a dump.Arch) *tebLayout {
	if a.PointerSize() == 4 {
		return &teb32
	}
	return &teb64
}

// tebReader reads thread environment blocks out of the dumped memory.
type tebReader struct {
	mem  *dump.Window
	arch dump.Arch
}

func (r *tebReader) pointer(va uint64) (uint64, bool) {
	if r.arch.PointerSize() == 4 {
		v, ok := r.mem.Uint32(va)
		return uint64(v), ok
	}
	return r.mem.Uint64(va)
}

// fill takes stack bounds and the last error from the thread's TEB and reports
// whether it found the bounds. A TEB must point to itself to be believed.
func (r *tebReader) fill(t *dump.Thread) bool {
	if t.TEB == 0 || r.arch == dump.ArchUnknown {
		return false
	}
	l := tebLayoutOf(r.arch)
	if self, ok := r.pointer(t.TEB + l.self); !ok || self != t.TEB {
		return false
	}
	if v, ok := r.mem.Uint32(t.TEB + l.lastError); ok {
		t.LastError, t.HasLastError = v, true
	}
	base, ok1 := r.pointer(t.TEB + l.stackBase)
	limit, ok2 := r.pointer(t.TEB + l.stackLimit)
	if !ok1 || !ok2 || limit >= base {
		return false
	}
	t.StackBase, t.StackLimit = base, limit
	return true
}
