// Package threadcontext decodes CONTEXT records and kernel trap frames into
// registers, and EXCEPTION_RECORDs. Both readers need it, and so does anything that
// finds one of them in dumped memory.
//
// Sources: the public winnt.h layouts of CONTEXT (AMD64 0x4d0 bytes, x86 0x2cc,
// ARM64 0x390), CONTEXT_EX and the XSAVE area as documented for XSTATE. The
// bytes are untrusted: a record may be cut short or carry flags of another
// architecture.
package threadcontext

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Architecture bits of CONTEXT.ContextFlags.
const (
	flagX86   = 0x00010000
	flagAMD64 = 0x00100000
	flagARM   = 0x00200000
	flagARM64 = 0x00400000
	flagArchs = flagX86 | flagAMD64 | flagARM | flagARM64
)

// Parts of a CONTEXT that ContextFlags announces.
const (
	partControl = 0x01
	partInteger = 0x02
	partFloat   = 0x08
)

// Parse decodes a CONTEXT of the given architecture. It may be longer than the
// plain structure (XSTATE follows) and, as long as its control registers are
// there, shorter. Parts that ContextFlags does not announce stay unknown, and so
// does everything in a record that nobody filled. The error is a *dump.Error
// without file name.
func Parse(arch dump.Arch, b []byte, base int64) (dump.Registers, error) {
	c := cursor.New(b, "CONTEXT", base)
	var r dump.Registers
	switch arch {
	case dump.AMD64:
		r = parseAMD64(c)
	case dump.X86:
		r = parseX86(c)
	case dump.ARM64:
		r = parseARM64(c)
	default:
		c.Fail(dump.UnsupportedFormat, "a CONTEXT of architecture %s is not read", arch)
	}
	if c.Err() != nil || blank(&r) {
		return dump.Registers{Arch: arch}, c.Err()
	}
	return r, nil
}

// blank reports whether a record was never filled: no thread runs at address 0
// on a stack at 0, and its zeros are not register values.
func blank(r *dump.Registers) bool {
	pc, ok1 := r.PC()
	sp, ok2 := r.SP()
	return ok1 && ok2 && pc == 0 && sp == 0
}

// Size returns the size of the plain CONTEXT, without XSTATE, and 0 for an
// architecture that is not read.
func Size(arch dump.Arch) int {
	switch arch {
	case dump.AMD64:
		return amd64Size
	case dump.X86:
		return 0x2cc
	case dump.ARM64:
		return 0x390
	}
	return 0
}

// MinSize returns how many bytes of a CONTEXT must be there for Parse to
// recover the control and integer registers.
func MinSize(arch dump.Arch) int {
	switch arch {
	case dump.AMD64:
		return 0x100
	case dump.X86:
		return x86Control
	case dump.ARM64:
		return 0x110
	}
	return 0
}

// checkFlags refuses flags of another architecture, which mean that the record
// is not what its place says.
func checkFlags(c *cursor.Cursor, flags, want uint32) {
	if c.Err() == nil && flags&flagArchs != 0 && flags&flagArchs != want {
		c.Fail(dump.BadRecord, "ContextFlags %#x are of another architecture", flags)
	}
}

func setAll(r *dump.Registers, c *cursor.Cursor, size int, regs ...dump.Reg) {
	for _, reg := range regs {
		v := c.Pointer(size)
		if c.Err() == nil {
			r.Set(reg, v)
		}
	}
}
