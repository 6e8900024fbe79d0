package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// x86Control is where the control registers of an x86 CONTEXT end.
const x86Control = 0xcc

// parseX86 reads the x86 CONTEXT: ContextFlags at 0, integers from Edi at 0x9c,
// control registers Ebp 0xb4, Eip 0xb8, SegCs 0xbc, EFlags 0xc0, Esp 0xc4,
// SegSs 0xc8.
func parseX86(c *cursor.Cursor) dump.Registers {
	r := dump.Registers{Arch: dump.X86}
	flags := c.U32()
	checkFlags(c, flags, flagX86)
	if flags&flagArchs == 0 {
		flags |= partControl | partInteger
	}
	c.Seek(0x9c)
	if flags&partInteger != 0 {
		setAll(&r, c, 4, dump.RDI, dump.RSI, dump.RBX, dump.RDX, dump.RCX, dump.RAX)
	}
	c.Seek(0xb4)
	if flags&partControl != 0 {
		setAll(&r, c, 4, dump.RBP, dump.RIP, dump.RegCS, dump.RegEFlags, dump.RSP, dump.RegSS)
	}
	c.Seek(x86Control) // like the others, a record that ends before is refused, whatever its flags announce
	return r
}
