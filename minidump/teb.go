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

func (r *tebReader) pointer(va uint64) (uint64, bool) { return r.pointerOf(r.arch, va) }

func (r *tebReader) pointerOf(arch dump.Arch, va uint64) (uint64, bool) {
	if arch.PointerSize() == 4 {
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
	return r.bounds(t, t.TEB, l, r.arch) || r.wow64Bounds(t)
}

// bounds takes the stack bounds from the TEB at va, unless the thread's stack
// pointer is known to be on another stack.
func (r *tebReader) bounds(t *dump.Thread, va uint64, l *tebLayout, arch dump.Arch) bool {
	base, ok1 := r.pointerOf(arch, va+l.stackBase)
	limit, ok2 := r.pointerOf(arch, va+l.stackLimit)
	if !ok1 || !ok2 || limit >= base {
		return false
	}
	if sp, ok := t.Context.SP(); ok && arch != dump.X86 && isWow64Code(t) && (sp < limit || sp > base) {
		return false
	}
	t.StackBase, t.StackLimit = base, limit
	return true
}

// isWow64Code reports whether a thread of a 64-bit dump was running 32-bit code,
// for which Windows uses the code segment 0x23.
func isWow64Code(t *dump.Thread) bool {
	const wow64CS = 0x23
	cs, ok := t.Context.Get(dump.RegCS)
	return ok && t.Context.Arch == dump.AMD64 && cs == wow64CS
}

// wow64Bounds takes the bounds from the 32-bit TEB, to which the first field of
// a 64-bit one points in a 32-bit process.
func (r *tebReader) wow64Bounds(t *dump.Thread) bool {
	if !isWow64Code(t) {
		return false
	}
	teb, ok := r.pointer(t.TEB)
	if !ok {
		return false
	}
	self, ok := r.mem.Uint32(teb + teb32.self)
	return ok && uint64(self) == teb && r.bounds(t, teb, &teb32, dump.X86)
}
