package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// maxTrapSearch bounds the search for a trap frame: an AMD64 kernel stack has 24 KB,
// an expanded one a few times that.
const maxTrapSearch = 0x20000

// StackTrapFrame searches the stack, from sp up to base, for the trap frame of a
// fault in the kernel at ip. AMD64 and x86.
func (f *File) StackTrapFrame(sp, base, ip uint64) (va uint64, regs dump.Registers, ok bool) {
	word := uint64(f.hdr.ptr)
	if sp%word != 0 || base <= sp || ip == 0 {
		return 0, regs, false
	}
	b, n := make([]byte, min(base-sp, maxTrapSearch)), 0
	f.ahead(func() { n, _ = f.mem.ReadAt(b, sp) })
	c := cursor.New(b[:n], trapStream, -1)
	switch f.hdr.arch {
	case dump.AMD64:
		return f.searchTrapAMD64(c, sp, ip)
	case dump.X86:
		return f.searchTrapX86(c, sp, ip)
	}
	return 0, regs, false
}

// searchTrapAMD64: what the processor pushed is the address, the kernel's code
// segment, the flags, and a stack pointer just behind.
func (f *File) searchTrapAMD64(c *cursor.Cursor, sp, ip uint64) (va uint64, regs dump.Registers, ok bool) {
	const (
		rip, word  = 0x168, 8
		machine    = 5 * word
		kernelCode = 0x10
	)
	for off := 0; off+machine <= c.Len(); off += word {
		c.Seek(off)
		if c.U64() != ip || c.U64()&0xffff != kernelCode {
			continue
		}
		c.Skip(word)
		at, old := sp+uint64(off), c.U64()
		// The processor aligns the stack to 16 bytes before it pushes.
		if old < at+machine || old-at-machine >= 2*word {
			continue
		}
		if regs, ok = f.kernelFrame(at - rip); ok {
			return at - rip, regs, true
		}
	}
	return 0, regs, false
}

// searchTrapX86: the kernel's code pushes the address a second time, for
// debuggers, at the frame's beginning.
func (f *File) searchTrapX86(c *cursor.Cursor, sp, ip uint64) (va uint64, regs dump.Registers, ok bool) {
	const (
		dbgEip, eip, word = 4, 0x68, 4
		kernelCode        = 0x08
	)
	for off := eip; off+2*word <= c.Len(); off += word {
		c.Seek(off)
		if uint64(c.U32()) != ip || c.U32()&0xffff != kernelCode {
			continue
		}
		at := sp + uint64(off-eip)
		c.Seek(off - eip + dbgEip)
		if uint64(c.U32()) != ip {
			continue
		}
		if regs, ok = f.kernelFrame(at); ok {
			return at, regs, true
		}
	}
	return 0, regs, false
}

// The 32-bit task state segment, as the processor's manual has it.
const (
	tssSize     = 0x68
	pcrTSS      = 0x40 // KPCR.TSS of x86
	tssStream   = "KTSS"
	trapsDouble = 8 // the trap number of a double fault
	bugTrap     = 0x7f

	bugException = 0x1e // KMODE_EXCEPTION_NOT_HANDLED: parameters 3 and 4 are the exception's first two
)

var tssSlots = [...]trapSlot{
	{0x20, 4, dump.RIP}, {0x24, 4, dump.RegEFlags}, {0x28, 4, dump.RAX}, {0x2c, 4, dump.RCX}, {0x30, 4, dump.RDX}, {0x34, 4, dump.RBX},
	{0x38, 4, dump.RSP}, {0x3c, 4, dump.RBP}, {0x40, 4, dump.RSI}, {0x44, 4, dump.RDI}, {0x4c, 2, dump.RegCS}, {0x50, 2, dump.RegSS},
}

// doubleFault returns the registers that a double fault interrupted, and where they
// come from. The processor changes to another task for it on x86, and leaves them in
// the task state segment of the one before; its address is parameter 2, and that of
// KPCR.TSS. On AMD64 there is a trap frame, on a stack of its own.
func (f *File) doubleFault(code uint32) (regs dump.Registers, source dump.ContextSource, parameter int, ok bool) {
	if code != bugTrap || f.hdr.params[0] != trapsDouble {
		return dump.Registers{}, dump.ContextNone, -1, false
	}
	switch f.hdr.arch {
	case dump.X86:
		regs, parameter, ok = f.doubleFaultX86()
		return regs, dump.ContextTask, parameter, ok
	case dump.AMD64:
		regs, ok = f.doubleFaultAMD64()
		return regs, dump.ContextTrapFrame, 1, ok
	}
	return dump.Registers{}, dump.ContextNone, -1, false
}

// doubleFaultAMD64 reads the trap frame that parameter 2 of Windows 8 and later
// points to. That is not documented, but published debugger transcripts agree: the
// frame's stack pointer is parameter 3 and its program counter parameter 4, which
// proves it. Before, parameters 2 and 3 are CR0 and CR4.
func (f *File) doubleFaultAMD64() (dump.Registers, bool) {
	regs, ok := f.kernelFrame(f.hdr.params[1])
	if !ok {
		return dump.Registers{}, false
	}
	sp, _ := regs.SP()
	pc, _ := regs.PC()
	return regs, sp == f.hdr.params[2] && pc == f.hdr.params[3]
}

func (f *File) doubleFaultX86() (dump.Registers, int, bool) {
	const parameter = 1
	if regs, ok := f.taskState(f.hdr.params[parameter]); ok {
		return regs, parameter, true
	}
	if p := f.crashedProcessor(); p != nil {
		regs, ok := f.taskState(f.taskSegment(p))
		return regs, -1, ok
	}
	return dump.Registers{}, -1, false
}

// taskSegment reads KPCR.TSS of a processor, 0 when it is not known.
func (f *File) taskSegment(p *processor) uint64 {
	contained := uint64(f.kd.prcb.contained)
	if f.hdr.arch != dump.X86 || contained == 0 || p.va <= contained {
		return 0
	}
	va, err := dump.ReadPointer(f.mem, f.hdr.arch, p.va-contained+pcrTSS)
	if err != nil || !kernelAddress(f.hdr.ptr, va) {
		return 0
	}
	return va
}

// taskState reads the registers that a task switch left in a task state segment:
// those of kernel code, with the flags that are always so; none when they are not.
func (f *File) taskState(va uint64) (dump.Registers, bool) {
	r := f.recordAt(va, tssSize)
	if r == nil {
		return dump.Registers{}, false
	}
	regs := dump.Registers{Arch: dump.X86}
	for _, s := range tssSlots {
		v, _ := r.raw(s.off, s.size)
		regs.Set(s.reg, v)
	}
	const kernelCode, one = 0x08, 0x2
	cs, _ := regs.Get(dump.RegCS)
	flags, _ := regs.Get(dump.RegEFlags)
	sp, _ := regs.SP()
	pc, _ := regs.PC()
	if pc == 0 || cs != kernelCode || flags&one == 0 || !kernelAddress(f.hdr.ptr, sp) || !believable(&regs) {
		return dump.Registers{}, false
	}
	return regs, true
}
