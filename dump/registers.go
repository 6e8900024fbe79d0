package dump

import "math/bits"

// Reg names one register slot of Registers. The meaning of a slot depends on
// the architecture: the first sixteen follow the processor's own numbering, so
// that register numbers in unwind codes and instructions index it directly.
type Reg uint8

// Register slots of AMD64 and, for the first eight and RIP, of x86 (EAX is
// RAX and so on).
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	RIP
	RegCS
	RegSS
	RegEFlags
	RegSSP // CET shadow stack pointer, from XSTATE component 11
)

// Register slots of ARM64. X0 to X28 are slots 0 to 28.
const (
	ARM64FP   Reg = 29
	ARM64LR   Reg = 30
	ARM64SP   Reg = 31
	ARM64PC   Reg = 32
	ARM64CPSR Reg = 33
)

// NumRegs is the number of slots in Registers.
const NumRegs = 34

// XMM is the value of one 128-bit vector register: low and high half.
type XMM [2]uint64

// Registers is a thread's register file as far as it is known. A register that
// was not recovered is unknown, which is never the same as zero: Get says so.
// The zero value knows nothing.
type Registers struct {
	Arch     Arch
	val      [NumRegs]uint64
	known    uint64
	xmm      [16]XMM
	xmmKnown uint16
}

// Get returns a register's value and whether it is known.
func (r *Registers) Get(reg Reg) (uint64, bool) {
	if reg >= NumRegs {
		return 0, false
	}
	return r.val[reg], r.known&(1<<reg) != 0
}

// Set makes a register known.
func (r *Registers) Set(reg Reg, v uint64) {
	if reg < NumRegs {
		r.val[reg] = v
		r.known |= 1 << reg
	}
}

// Forget makes a register unknown.
func (r *Registers) Forget(reg Reg) {
	if reg < NumRegs {
		r.val[reg] = 0
		r.known &^= 1 << reg
	}
}

// Known reports whether a register's value is known.
func (r *Registers) Known(reg Reg) bool { return reg < NumRegs && r.known&(1<<reg) != 0 }

// GetXMM returns an xmm register (0 to 15) and whether it is known.
func (r *Registers) GetXMM(n int) (XMM, bool) {
	if n < 0 || n > 15 {
		return XMM{}, false
	}
	return r.xmm[n], r.xmmKnown&(1<<n) != 0
}

// SetXMM makes an xmm register (0 to 15) known.
func (r *Registers) SetXMM(n int, v XMM) {
	if n >= 0 && n < 16 {
		r.xmm[n] = v
		r.xmmKnown |= 1 << n
	}
}

// ForgetXMM makes an xmm register unknown.
func (r *Registers) ForgetXMM(n int) {
	if n >= 0 && n < 16 {
		r.xmm[n] = XMM{}
		r.xmmKnown &^= 1 << n
	}
}

// ForgetVolatile makes every register unknown that a called function need not
// preserve by the platform's calling convention, so that a caller's frame
// shows only what is certain. The program counter, stack pointer and segment
// slots stay.
func (r *Registers) ForgetVolatile() {
	switch r.Arch {
	case AMD64:
		r.keep(1<<RBX | 1<<RSP | 1<<RBP | 1<<RSI | 1<<RDI | 1<<R12 | 1<<R13 | 1<<R14 | 1<<R15 | 1<<RIP | 1<<RegCS | 1<<RegSS)
		r.xmmKnown &^= 0x3f
		for i := range 6 {
			r.xmm[i] = XMM{}
		}
	case X86:
		r.keep(1<<RBX | 1<<RSP | 1<<RBP | 1<<RSI | 1<<RDI | 1<<RIP | 1<<RegCS | 1<<RegSS)
	case ARM64:
		var mask uint64
		for x := 19; x <= 28; x++ {
			mask |= 1 << x
		}
		r.keep(mask | 1<<ARM64FP | 1<<ARM64SP | 1<<ARM64PC)
	}
}

func (r *Registers) keep(mask uint64) {
	for forget := r.known &^ mask; forget != 0; forget &= forget - 1 {
		r.val[bits.TrailingZeros64(forget)] = 0
	}
	r.known &= mask
}

// PCReg is the architecture's program counter slot.
func (a Arch) PCReg() Reg {
	if a == ARM64 {
		return ARM64PC
	}
	return RIP
}

// SPReg is the architecture's stack pointer slot.
func (a Arch) SPReg() Reg {
	if a == ARM64 {
		return ARM64SP
	}
	return RSP
}

// FPReg is the architecture's customary frame pointer slot.
func (a Arch) FPReg() Reg {
	if a == ARM64 {
		return ARM64FP
	}
	return RBP
}

// PC returns the program counter.
func (r *Registers) PC() (uint64, bool) { return r.Get(r.Arch.PCReg()) }

// SP returns the stack pointer.
func (r *Registers) SP() (uint64, bool) { return r.Get(r.Arch.SPReg()) }

// SetPC sets the program counter.
func (r *Registers) SetPC(v uint64) { r.Set(r.Arch.PCReg(), v) }

// SetSP sets the stack pointer.
func (r *Registers) SetSP(v uint64) { r.Set(r.Arch.SPReg(), v) }

// Empty reports whether no register at all is known.
func (r *Registers) Empty() bool { return r.known == 0 && r.xmmKnown == 0 }

var amd64Names = [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip", "cs", "ss", "efl", "ssp"}
var x86Names = [...]string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "", "", "", "", "", "", "", "", "eip", "cs", "ss", "efl", "ssp"}
var arm64Names = [...]string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp", "pc", "cpsr"}

// RegName returns the register's usual lower-case name, or "" when the
// architecture has no register in that slot.
func (a Arch) RegName(reg Reg) string {
	var names []string
	switch a {
	case AMD64:
		names = amd64Names[:]
	case X86:
		names = x86Names[:]
	case ARM64:
		names = arm64Names[:]
	}
	if int(reg) >= len(names) {
		return ""
	}
	return names[reg]
}
