package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Facts of the x86 KTRAP_FRAME. Its tail, from ExceptionList on, is the same in
// all public symbols; its head holds a debugger's header and, at places that
// differ by version, the volatile registers.
const (
	TrapFrameSizeX86 = 0x8c
	// TrapFrameKernelX86 is the size of a frame of a trap in the kernel: the
	// processor pushes no stack pointer there, so that the interrupted stack goes
	// on where HardwareEsp would be.
	TrapFrameKernelX86 = 0x74
	// TrapFrameMarkX86 is DbgArgMark, with which the kernel makes a trap frame
	// look like a frame of the ebp chain.
	TrapFrameMarkX86 = 0xbadb0d00
	// FloatSaveX86 is the size of the floating point area that lies between
	// KTHREAD.InitialStack and the trap frame before Windows 8.
	FloatSaveX86 = 0x210

	kernelCodeX86, userCodeX86, userDataX86 = 0x08, 0x1b, 0x23
	kernelFSX86, userFSX86                  = 0x30, 0x3b
	eflagsVirtual                           = 1 << 17
	eflagsZero                              = 0xffc08028 // bits that read as 0
)

// TrapFrameX86 is a decoded x86 KTRAP_FRAME.
type TrapFrameX86 struct {
	DbgEbp, DbgEip, DbgArgMark  uint32 // Ebp and Eip again
	SegFs, Edi, Esi, Ebx, Ebp   uint32
	ErrCode, Eip, SegCs, EFlags uint32
	HardwareEsp, HardwareSS     uint32 // not of a trap in the kernel
	V86Es, V86Ds, V86Fs, V86Gs  uint32 // of virtual-8086 mode
	short                       bool   // without what follows EFlags
}

// TrapMode is the processor's mode that a trap frame was entered from.
type TrapMode uint8

// Modes. TrapNone is of bytes that are no trap frame.
const (
	TrapNone TrapMode = iota
	TrapKernel
	TrapUser
	TrapV86
)

// ParseTrapFrameX86 decodes a KTRAP_FRAME of x86. Of a trap in the kernel
// TrapFrameKernelX86 bytes are enough.
func ParseTrapFrameX86(b []byte) (TrapFrameX86, error) {
	c := cursor.New(b, "KTRAP_FRAME", -1)
	var t TrapFrameX86
	t.DbgEbp, t.DbgEip, t.DbgArgMark = c.U32(), c.U32(), c.U32()
	c.Seek(0x50)
	t.SegFs, t.Edi, t.Esi, t.Ebx, t.Ebp = c.U32(), c.U32(), c.U32(), c.U32(), c.U32()
	t.ErrCode, t.Eip, t.SegCs, t.EFlags = c.U32(), c.U32(), c.U32(), c.U32()
	if t.short = len(b) < TrapFrameSizeX86; !t.short {
		t.HardwareEsp, t.HardwareSS = c.U32(), c.U32()
		t.V86Es, t.V86Ds, t.V86Fs, t.V86Gs = c.U32(), c.U32(), c.U32(), c.U32()
	}
	return t, c.Err()
}

// Mode tells by selectors and flags what was interrupted, TrapNone when they
// cannot be those of a trap frame. Selectors are pushed as words of which the
// upper half has no meaning. A frame whose stack pointer a debugger edited, with
// the selector in TempSegCs, is not recognised.
func (t *TrapFrameX86) Mode() TrapMode {
	cs, ss := t.SegCs&0xffff, t.HardwareSS&0xffff
	if t.EFlags&eflagsReserved == 0 || t.EFlags&eflagsZero != 0 {
		return TrapNone
	}
	switch {
	case t.EFlags&eflagsVirtual != 0:
		if t.short || t.Eip > 0xffff {
			return TrapNone
		}
		return TrapV86
	case cs == kernelCodeX86:
		return TrapKernel
	case cs == userCodeX86 && ss == userDataX86 && !t.short && t.EFlags&eflagsInterrupt != 0 && t.inUser(t.Eip) && t.inUser(t.HardwareEsp):
		return TrapUser
	}
	return TrapNone
}

// inUser reports whether an address can be one of user mode. With the 3 GB switch
// that reaches further, which is believed of frames that prove themselves.
func (t *TrapFrameX86) inUser(va uint32) bool {
	const low, top, top3GB = 0x10000, 0x80000000, 0xc0000000
	if t.Proved() {
		return va < top3GB
	}
	return va >= low && va < top
}

// Proved reports whether the bytes are a trap frame beyond doubt: the debugger's
// header repeats the frame's own ebp and eip, and its mark or fs is right.
func (t *TrapFrameX86) Proved() bool {
	fs := t.SegFs & 0xffff
	return t.DbgEbp == t.Ebp && t.DbgEip == t.Eip && (t.DbgArgMark == TrapFrameMarkX86 || fs == kernelFSX86 || fs == userFSX86)
}

// Registers returns the interrupted registers that the frame at va proves on
// every version. They are the nonvolatile ones too.
func (t *TrapFrameX86) Registers(va uint64) dump.Registers {
	r := dump.Registers{Arch: dump.X86}
	set := func(reg dump.Reg, v uint32) { r.Set(reg, uint64(v)) }
	set(dump.RDI, t.Edi)
	set(dump.RSI, t.Esi)
	set(dump.RBX, t.Ebx)
	set(dump.RBP, t.Ebp)
	set(dump.RIP, t.Eip)
	set(dump.RegCS, t.SegCs&0xffff)
	set(dump.RegEFlags, t.EFlags)
	if t.Mode() == TrapKernel {
		r.SetSP(va + TrapFrameKernelX86)
		return r
	}
	set(dump.RSP, t.HardwareEsp)
	set(dump.RegSS, t.HardwareSS&0xffff)
	return r
}
