package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	amd64Size       = 0x4d0
	amd64XMM        = 0x1a0
	xstateCETUBit   = 11
	xsaveHeader     = 64
	contextExXState = 0x10 // CONTEXT_CHUNK XState within CONTEXT_EX
	partXStateAMD64 = 0x40
	xsaveCompactBit = 63
)

// parseAMD64 reads the AMD64 CONTEXT. Segments: SegCs at 0x38, EFlags 0x44;
// integers from Rax at 0x78; Rip at 0xf8; Xmm0 at 0x1a0.
func parseAMD64(c *cursor.Cursor) dump.Registers {
	r := dump.Registers{Arch: dump.AMD64}
	c.Seek(0x30)
	flags := c.U32()
	checkFlags(c, flags, flagAMD64)
	if flags&flagArchs == 0 { // some writers leave the flags empty: the registers are there all the same
		flags |= partControl | partInteger | partFloat
	}
	c.Seek(0x38)
	cs := c.U16()
	c.Seek(0x42)
	ss := c.U16()
	eflags := c.U32()
	c.Seek(0x78)
	var regs [17]uint64
	for i := range regs {
		regs[i] = c.U64()
	}
	if c.Err() != nil {
		return r
	}
	if flags&partControl != 0 {
		r.Set(dump.RegCS, uint64(cs))
		r.Set(dump.RegSS, uint64(ss))
		r.Set(dump.RegEFlags, uint64(eflags))
		r.Set(dump.RSP, regs[dump.RSP])
		r.Set(dump.RIP, regs[16])
	}
	if flags&partInteger != 0 {
		for reg := dump.RAX; reg <= dump.R15; reg++ {
			if reg != dump.RSP {
				r.Set(reg, regs[reg])
			}
		}
	} else if flags&partControl != 0 {
		// The control part of AMD64 holds no rbp, but every writer stores it.
		r.Set(dump.RBP, regs[dump.RBP])
	}
	if flags&partFloat != 0 && c.Len() >= amd64XMM+256 {
		c.Seek(amd64XMM)
		for i := range 16 {
			lo, hi := c.U64(), c.U64()
			r.SetXMM(i, dump.XMM{lo, hi})
		}
	}
	if flags&partXStateAMD64 != 0 && c.Err() == nil {
		readSSP(&r, c)
	}
	return r
}

// readSSP takes the shadow stack pointer from XSAVE component 11 (CET_U: the
// MSR, then Ia32Pl3Ssp) when a CONTEXT_EX follows the CONTEXT. What is not
// there or makes no sense is left unknown: it never spoils the registers.
func readSSP(r *dump.Registers, c *cursor.Cursor) {
	c.Seek(0)
	all := c.Bytes(c.Len())
	x := cursor.New(all, "CONTEXT_EX", -1)
	x.Seek(amd64Size + contextExXState)
	offset, length := int32(x.U32()), x.U32()
	start := amd64Size + int(offset)
	x.Seek(start)
	area := x.Sub(min(int(length&0xffffff), x.Left()))
	// XState begins at the XSAVE header: the legacy area is inside CONTEXT.
	present, layout := area.U64(), area.U64()
	const cet, compacted = 1 << xstateCETUBit, 1 << xsaveCompactBit
	if area.Err() != nil || present&layout&cet == 0 || layout&compacted == 0 {
		return
	}
	off := xsaveHeader
	for bit := 2; bit < xstateCETUBit; bit++ {
		if layout&(1<<bit) != 0 {
			off += xsaveSizes[bit]
		}
	}
	area.Seek(off + 8)
	ssp := area.U64()
	if area.Err() == nil && ssp != 0 && ssp&7 == 0 {
		r.Set(dump.RegSSP, ssp)
	}
}

// xsaveSizes are the sizes of the XSAVE components before CET_U, by bit, as the
// processor manuals have them: AVX; MPX bounds and configuration; AVX-512
// masks, upper halves and upper registers; PT; PKRU; PASID. None of them is
// aligned in the compacted format.
var xsaveSizes = [xstateCETUBit]int{2: 256, 3: 64, 4: 64, 5: 64, 6: 512, 7: 1024, 8: 128, 9: 8, 10: 8}
