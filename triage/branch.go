package triage

import (
	"cmp"
	"encoding/binary"
	"strings"

	"dumptriage/dump"
)

// follow finds where a call, jump or return leads whose target does not stand in the
// instruction: what its register or its operand in memory holds.
func (in *Instruction) follow(sp *space, regs *dump.Registers) {
	if in == nil {
		return
	}
	word, operand, _ := strings.Cut(in.Text, " ")
	switch word {
	case "call", "jmp", "br", "blr":
		if r, ok := namedRegister(regs.Arch, operand); ok {
			in.Target, in.HasTarget = regs.Get(r)
		} else if len(in.Accesses) == 1 && in.Accesses[0].Known {
			in.Target, in.HasTarget = readPointer(sp, regs.Arch, in.Accesses[0].Address)
		}
	case "ret":
		if regs.Arch == dump.ARM64 {
			if r, ok := namedRegister(regs.Arch, cmp.Or(operand, "x30")); ok {
				in.Target, in.HasTarget = regs.Get(r)
			}
		} else if at, ok := regs.SP(); ok {
			in.Target, in.HasTarget = readPointer(sp, regs.Arch, at)
		}
	}
}

// namedRegister is the general register of the architecture that has the name in the
// text of instructions.
func namedRegister(arch dump.Arch, name string) (dump.Reg, bool) {
	if alias, ok := map[string]string{"x29": "fp", "x30": "lr"}[name]; ok && arch == dump.ARM64 {
		name = alias
	}
	for r := range dump.Reg(32) {
		if name != "" && arch.RegName(r) == name {
			return r, true
		}
	}
	return 0, false
}

func readPointer(sp *space, arch dump.Arch, va uint64) (uint64, bool) {
	var b [8]byte
	n, _ := sp.ReadAt(b[:arch.PointerSize()], va)
	return binary.LittleEndian.Uint64(b[:]), n == arch.PointerSize()
}
