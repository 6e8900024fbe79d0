package pdata

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// ARM64Op is what an ARM64 unwind code undoes. The names are those of the
// public "ARM64 exception handling" page, several codes of which do the same
// with other operands.
type ARM64Op uint8

// The operations.
const (
	ARM64Nop          ARM64Op = iota // nop: an instruction that changes nothing to undo
	ARM64Alloc                       // alloc_s, alloc_m, alloc_l: sp -= Value
	ARM64Save                        // save_reg, save_regp, save_fplr, save_any_reg: Count registers from Reg at sp+Value
	ARM64SavePre                     // save_*_x: the same at sp after sp -= Value
	ARM64SaveLRPair                  // save_lrpair: Reg and lr at sp+Value
	ARM64SaveD                       // save_freg, save_fregp, save_any_reg: d registers
	ARM64SaveDPre                    // save_freg_x, save_fregp_x
	ARM64SaveQ                       // save_any_reg: q registers
	ARM64SaveQPre                    //
	ARM64SetFP                       // set_fp: fp = sp
	ARM64AddFP                       // add_fp: fp = sp + Value
	ARM64SaveNext                    // save_next: one more pair belongs to the next code that saves a pair
	ARM64PACSignLR                   // pac_sign_lr: lr carries an authentication code
	ARM64TrapFrame                   // MSFT_OP_TRAP_FRAME: a KTRAP_FRAME at sp
	ARM64MachineFrame                // MSFT_OP_MACHINE_FRAME: sp and pc at sp
	ARM64Context                     // MSFT_OP_CONTEXT: a CONTEXT at sp
	ARM64ECContext                   // MSFT_OP_EC_CONTEXT: an AMD64-shaped CONTEXT at sp
	ARM64ClearUnwound                // MSFT_OP_CLEAR_UNWOUND_TO_CALL: pc is not behind a call
	ARM64EndC                        // end_c: what follows belongs to the function that this is a part of
	ARM64End                         // end
)

// ARM64Code is one decoded code.
type ARM64Code struct {
	Op    ARM64Op
	Reg   uint8  // first register: x, d or q number
	Count uint8  // registers saved: 1 or 2
	Value uint32 // bytes: allocation, offset, or what is subtracted from sp before the save
}

// instruction reports whether a code stands for an instruction of a prolog or
// epilog. The codes of frames that the system lays do not.
func (c ARM64Code) instruction() bool {
	return c.Op < ARM64TrapFrame || c.Op > ARM64ClearUnwound
}

const arm64LR = 30

// decodeARM64Codes appends the codes from the cursor up to the first end. When
// there is none the bytes' end is it, which is an error.
func decodeARM64Codes(dst []ARM64Code, c *cursor.Cursor) ([]ARM64Code, error) {
	for {
		code := decodeARM64Code(c)
		if c.Err() != nil {
			return dst, c.Err()
		}
		if code.Op == ARM64End {
			return dst, nil
		}
		dst = append(dst, code)
	}
}

// decodeARM64Code reads one code: operands are big-endian within it.
func decodeARM64Code(c *cursor.Cursor) ARM64Code {
	b := uint32(c.U8())
	switch {
	case b < 0x20:
		return ARM64Code{Op: ARM64Alloc, Value: b * 16}
	case b < 0x40:
		return pair(ARM64SavePre, 19, b&0x1f*8)
	case b < 0x80:
		return pair(ARM64Save, 29, b&0x3f*8)
	case b < 0xc0:
		return pair(ARM64SavePre, 29, (b&0x3f+1)*8)
	case b < 0xe0:
		return decodeARM64Two(b<<8|uint32(c.U8()), c)
	}
	switch b {
	case 0xe0:
		return ARM64Code{Op: ARM64Alloc, Value: (uint32(c.U8())<<16 | uint32(c.U8())<<8 | uint32(c.U8())) * 16}
	case 0xe1:
		return ARM64Code{Op: ARM64SetFP}
	case 0xe2:
		return ARM64Code{Op: ARM64AddFP, Value: uint32(c.U8()) * 8}
	case 0xe3:
		return ARM64Code{Op: ARM64Nop}
	case 0xe4:
		return ARM64Code{Op: ARM64End}
	case 0xe5:
		return ARM64Code{Op: ARM64EndC}
	case 0xe6:
		return ARM64Code{Op: ARM64SaveNext}
	case 0xe7:
		return decodeARM64Any(uint32(c.U8()), uint32(c.U8()), c)
	case 0xe8:
		return ARM64Code{Op: ARM64TrapFrame}
	case 0xe9:
		return ARM64Code{Op: ARM64MachineFrame}
	case 0xea:
		return ARM64Code{Op: ARM64Context}
	case 0xeb:
		return ARM64Code{Op: ARM64ECContext}
	case 0xec:
		return ARM64Code{Op: ARM64ClearUnwound}
	case 0xfc:
		return ARM64Code{Op: ARM64PACSignLR}
	}
	c.Fail(dump.BadRecord, "unwind code %#x is reserved", b)
	return ARM64Code{}
}

// decodeARM64Two decodes the codes of two bytes, 0xc0 to 0xdf.
func decodeARM64Two(v uint32, c *cursor.Cursor) ARM64Code {
	off := v & 0x3f * 8         // the usual offset
	pre := (v&0x3f + 1) * 8     // and with pre-decrement
	reg := uint8(19 + v>>6&0xf) // of integer registers
	dreg := uint8(8 + v>>6&0x7) // of floating-point registers
	switch top := v >> 8; {
	case top < 0xc8:
		return ARM64Code{Op: ARM64Alloc, Value: v & 0x7ff * 16}
	case top < 0xcc:
		return pair(ARM64Save, reg, off)
	case top < 0xd0:
		return pair(ARM64SavePre, reg, pre)
	case top < 0xd4:
		return ARM64Code{Op: ARM64Save, Reg: reg, Count: 1, Value: off}
	case top < 0xd6:
		return ARM64Code{Op: ARM64SavePre, Reg: uint8(19 + v>>5&0xf), Count: 1, Value: (v&0x1f + 1) * 8}
	case top < 0xd8:
		return ARM64Code{Op: ARM64SaveLRPair, Reg: uint8(19 + 2*(v>>6&0x7)), Count: 1, Value: off}
	case top < 0xda:
		return pair(ARM64SaveD, dreg, off)
	case top < 0xdc:
		return pair(ARM64SaveDPre, dreg, pre)
	case top < 0xde:
		return ARM64Code{Op: ARM64SaveD, Reg: dreg, Count: 1, Value: off}
	case top == 0xde:
		return ARM64Code{Op: ARM64SaveDPre, Reg: uint8(8 + v>>5&0x7), Count: 1, Value: (v&0x1f + 1) * 8}
	}
	c.Fail(dump.BadRecord, "unwind code %#x is reserved", v>>8)
	return ARM64Code{}
}

// decodeARM64Any decodes the operands of save_any_reg: 0pxrrrrr ffoooooo.
func decodeARM64Any(regs, rest uint32, c *cursor.Cursor) ARM64Code {
	twice, pre, file := regs&0x40 != 0, regs&0x20 != 0, rest>>6
	code := ARM64Code{Reg: uint8(regs & 0x1f), Count: 1, Value: rest & 0x3f * 8}
	if regs&0x80 != 0 || file == 3 {
		c.Fail(dump.BadRecord, "save_any_reg with reserved bits (%#x, %#x)", regs, rest)
		return ARM64Code{}
	}
	if twice {
		code.Count = 2
	}
	code.Op = [3]ARM64Op{ARM64Save, ARM64SaveD, ARM64SaveQ}[file]
	if pre {
		code.Op++
		code.Value = (rest&0x3f + 1) * 16
	} else if twice || file == 2 {
		code.Value = rest & 0x3f * 16
	}
	return code
}

func pair(op ARM64Op, reg uint8, value uint32) ARM64Code {
	return ARM64Code{Op: op, Reg: reg, Count: 2, Value: value}
}
