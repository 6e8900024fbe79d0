package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// parseARM64 reads the ARM64 CONTEXT: ContextFlags 0, Cpsr 4, X0 at 8, Fp 0xf0,
// Lr 0xf8, Sp 0x100, Pc 0x108.
func parseARM64(c *cursor.Cursor) dump.Registers {
	r := dump.Registers{Arch: dump.ARM64}
	flags := c.U32()
	checkFlags(c, flags, flagARM64)
	if flags&flagArchs == 0 {
		flags |= partControl | partInteger
	}
	cpsr := c.U32()
	var x [33]uint64
	for i := range x {
		x[i] = c.U64()
	}
	if c.Err() != nil {
		return r
	}
	if flags&partInteger != 0 {
		for i := range 29 {
			r.Set(dump.Reg(i), x[i])
		}
	}
	if flags&partControl != 0 {
		r.Set(dump.ARM64CPSR, uint64(cpsr))
		for i := 29; i < 33; i++ {
			r.Set(dump.Reg(i), x[i])
		}
	}
	return r
}
