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
	mask := area.U64()
	compaction := area.U64()
	if area.Err() != nil || mask&(1<<xstateCETUBit) == 0 || compaction&(1<<xsaveCompactBit) == 0 {
		return
	}
	off := xsaveHeader
	for bit := 2; bit < xstateCETUBit; bit++ {
		if compaction&(1<<bit) != 0 {
			size, align := xsaveComponent(bit)
			if size == 0 {
				return
			}
			if align {
				off = (off + 63) &^ 63
			}
			off += size
		}
	}
	area.Seek(off + 8)
	ssp := area.U64()
	if area.Err() == nil && ssp != 0 && ssp&7 == 0 {
		r.Set(dump.RegSSP, ssp)
	}
}

// xsaveComponent returns the size of an XSAVE component in the compacted format
// and whether it is aligned to 64 bytes; size 0 means not known here. Sizes are
// those of the processor manuals (AVX 256; MPX 64+64; AVX-512 64, 512, 1024;
// PT 128; PKRU 8; PASID 8).
func xsaveComponent(bit int) (size int, align bool) {
	switch bit {
	case 2:
		return 256, false
	case 3, 4:
		return 64, false
	case 5:
		return 64, false
	case 6:
		return 512, false
	case 7:
		return 1024, false
	case 8:
		return 128, false
	case 9:
		return 8, false
	case 10:
		return 8, false
	}
	return 0, false
}
