package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Facts of the AMD64 KTRAP_FRAME, which has been the same from Windows 7 to
// Windows 11 in the public symbols.
const (
	TrapFrameSize = 0x190
	// TrapFrameReturnSlot is how far below the trap frame the return address
	// into the system service stub lies, and TrapFrameBodySP the stub's own
	// stack pointer; TrapFrameRBP is how far above it rbp points.
	TrapFrameReturnSlot = 0x78
	TrapFrameBodySP     = 0x70
	TrapFrameRBP        = 0x80

	// A system service frame's ExceptionActive; interrupts and exceptions have less.
	serviceFrame = 2
	wow64Code    = 0x23 // selector of 32-bit code

	eflagsReserved  = 0x2
	eflagsInterrupt = 0x200
)

// TrapFrame is a decoded AMD64 KTRAP_FRAME.
type TrapFrame struct {
	ExceptionActive uint8 // 0 interrupt, 1 exception, 2 system service
	GSBase          uint64
	Rbx, Rdi, Rsi   uint64
	Rbp             uint64
	Rip             uint64
	CS              uint16
	EFlags          uint32
	Rsp             uint64
	SS              uint16
}

// ParseTrapFrame decodes the 0x190 bytes of an AMD64 KTRAP_FRAME.
func ParseTrapFrame(b []byte) (TrapFrame, error) {
	c := cursor.New(b, "KTRAP_FRAME", -1)
	var t TrapFrame
	c.Seek(0x2b)
	t.ExceptionActive = c.U8()
	c.Seek(0x68)
	t.GSBase = c.U64()
	c.Seek(0x140)
	t.Rbx, t.Rdi, t.Rsi, t.Rbp = c.U64(), c.U64(), c.U64(), c.U64()
	c.Seek(0x168)
	t.Rip = c.U64()
	t.CS = c.U16()
	c.Seek(0x178)
	t.EFlags = c.U32()
	c.Seek(0x180)
	t.Rsp = c.U64()
	t.SS = c.U16()
	return t, c.Err()
}

// FromUser reports whether the frame can be an entry from user mode: ring 3
// selectors, and instruction and stack pointers in the user half of the address
// space. It is what tells a trap frame from other bytes at its place.
func (t *TrapFrame) FromUser() bool {
	const userTop = 0x00007fffffffffff
	if t.CS == wow64Code {
		return t.SS&3 == 3 && t.Rip >= 0x10000 && t.Rip <= 0xffffffff && t.Rsp >= 0x10000 && t.Rsp <= 0xffffffff && t.Rsp&3 == 0
	}
	return t.CS&3 == 3 && t.SS&3 == 3 && t.CS > 3 && // 3 is the null selector
		t.Rip >= 0x10000 && t.Rip <= userTop && t.Rsp >= 0x10000 && t.Rsp <= userTop && t.Rsp&7 == 0
}

// Registers returns the user-mode registers that the frame proves. In a system
// service frame rbx, rdi, rsi and rbp are stored by the stub of some builds
// only, so just the instruction and stack pointer are known from it; the rest
// come from the user dump or from unwinding the kernel half. Interrupts and
// exceptions store rbp too, on which 32-bit code depends.
func (t *TrapFrame) Registers() dump.Registers {
	r := dump.Registers{Arch: dump.AMD64}
	r.Set(dump.RIP, t.Rip)
	r.Set(dump.RSP, t.Rsp)
	r.Set(dump.RegCS, uint64(t.CS))
	r.Set(dump.RegSS, uint64(t.SS))
	if t.ExceptionActive < serviceFrame {
		r.Set(dump.RBP, t.Rbp)
	}
	if t.EFlags&eflagsReserved != 0 && t.EFlags&eflagsInterrupt != 0 {
		r.Set(dump.RegEFlags, uint64(t.EFlags))
	}
	return r
}
