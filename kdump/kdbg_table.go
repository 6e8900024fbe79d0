package kdump

import (
	"dumptriage/dump"
)

// kernelShape holds what KDDEBUGGER_DATA64 would say of a kernel, from public
// symbols, for dumps in which the block is missing or cannot be decoded.
type kernelShape struct {
	buildLow, buildHigh    uint32
	ethread, eprocess      int // sizes
	parent, peb            int // EPROCESS
	beforeWindows8Kthreads bool
}

// kernelShapes are those of x64. Where updates changed a size within a build
// number, each stands here; the lists tell which it is.
var kernelShapes = [...]kernelShape{
	{7600, 7601, 0x4a8, 0x4f8, 0x290, 0x338, true},
	{7600, 7601, 0x498, 0x4d0, 0x290, 0x338, true},
	{9200, 9200, 0x4d0, 0x660, 0x3d0, 0x3e8, false},
	{9600, 9600, 0x778, 0x708, 0x3d0, 0x3e8, false},
	{10240, 10586, 0x7c0, 0x7a8, 0x3e0, 0x3f8, false},
	{14393, 14393, 0x7e0, 0x7d0, 0x3e0, 0x3f8, false},
	{15063, 15063, 0x810, 0x818, 0x3e0, 0x3f8, false},
	{16299, 17134, 0x818, 0x838, 0x3e0, 0x3f8, false},
	{17763, 17763, 0x810, 0x858, 0x3e0, 0x3f8, false},
	{18362, 18363, 0x820, 0x880, 0x3e8, 0x3f8, false},
	{19041, 19045, 0x898, 0xa40, 0x540, 0x550, false},
	{20348, 22000, 0x8f0, 0xb80, 0x540, 0x550, false},
	{22621, 22631, 0x900, 0xb80, 0x540, 0x550, false},
	{26100, 26200, 0x788, 0x840, 0x2d0, 0x2e0, false},
}

// guessKDBG takes the layout of the dump's build from the table when the first
// process of the list bears it out. Without the block there is no way to the
// processors and to the table of ids.
func (f *File) guessKDBG() bool {
	base := f.kernelBase()
	if f.hdr.arch != dump.AMD64 || base == 0 || !f.hdr.procs.ok {
		return false
	}
	first, err := dump.ReadPointer(f.mem, f.hdr.arch, f.hdr.procs.v)
	if err != nil {
		return false
	}
	for i := range kernelShapes {
		s := &kernelShapes[i]
		if f.hdr.build < s.buildLow || f.hdr.build > s.buildHigh {
			continue
		}
		f.kd = s.kdbg(base, f.hdr)
		row := f.offsets()
		va := first - uint64(row.pid+f.hdr.ptr)
		pid, err := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(row.pid))
		if row.pid != 0 && err == nil && pid == systemPID && f.isProcessAt(va) {
			f.kdbgHow = byTable
			f.damage(dump.Errorf(dump.BadRecord, kdbgStream,
				"not found, neither at the header's address nor in the kernel's image: the layout of build %d is taken instead, the processors are not known", f.hdr.build))
			return true
		}
	}
	f.kd = nil
	return false
}

func (s *kernelShape) kdbg(base uint64, h *header) *kdbg {
	k := &kdbg{kernBase: base, modules: h.modules.v, processHead: h.procs.v}
	k.thread.size, k.process.size = s.ethread, s.eprocess
	k.process.parent, k.process.peb, k.process.dirBase = s.parent, s.peb, 0x28
	t := &k.thread
	t.initialStack, t.stackLimit = 0x28, 0x30
	if s.beforeWindows8Kthreads {
		t.stackBase, t.kernelStack, t.apcProcess, t.teb, t.state, t.waitReason = 0x278, 0x38, 0x70, 0xb8, 0x164, 0x26b
		return k
	}
	t.stackBase, t.kernelStack, t.apcProcess, t.teb, t.state, t.waitReason = 0x38, 0x58, 0xb8, 0xf0, 0x184, 0x283
	return k
}

// findByStack finds the thread that stopped the system, where no processor tells,
// as the one whose stack holds the header's stack pointer.
func (f *File) findByStack() *record {
	regs, ok := f.HeaderContext()
	sp, _ := regs.SP()
	if !ok || f.kd == nil {
		return nil
	}
	for r := range f.allThreads() {
		if limit, base, ok := f.stackBounds(r); ok && sp >= limit && sp < base {
			return r
		}
	}
	return nil
}
