package scrub

import "dumptriage/dump"

// Parts of a CONTEXT that ContextFlags announces (winnt.h).
const (
	partControl = 1
	partInteger = 2

	flagX86   = 0x10000
	flagAMD64 = 0x100000
	flagARM64 = 0x400000
)

// slot places a register in a CONTEXT.
type slot struct {
	reg       dump.Reg
	off, size int
}

// layout is a CONTEXT as far as registers of Registers are in it. Vector and
// floating-point registers are left zero and not announced: nothing is unwound by
// them, and they hold pieces of texts that were being copied.
type layout struct {
	size, flagsAt    int
	flag             uint32
	control, integer dump.Reg // known when the part is
	slots            []slot
}

var layouts = map[dump.Arch]*layout{
	dump.X86: {size: 0x2cc, flag: flagX86, control: dump.RIP, integer: dump.RAX, slots: []slot{
		{dump.RDI, 0x9c, 4}, {dump.RSI, 0xa0, 4}, {dump.RBX, 0xa4, 4}, {dump.RDX, 0xa8, 4}, {dump.RCX, 0xac, 4}, {dump.RAX, 0xb0, 4},
		{dump.RBP, 0xb4, 4}, {dump.RIP, 0xb8, 4}, {dump.RegCS, 0xbc, 4}, {dump.RegEFlags, 0xc0, 4}, {dump.RSP, 0xc4, 4}, {dump.RegSS, 0xc8, 4}}},
	dump.AMD64: {size: 0x4d0, flagsAt: 0x30, flag: flagAMD64, control: dump.RIP, integer: dump.RAX, slots: append([]slot{
		{dump.RegCS, 0x38, 2}, {dump.RegSS, 0x42, 2}, {dump.RegEFlags, 0x44, 4}, {dump.RIP, 0xf8, 8}}, slotsFrom(0x78, 16)...)},
	dump.ARM64: {size: 0x390, flag: flagARM64, control: dump.ARM64PC, integer: 0, slots: append([]slot{
		{dump.ARM64CPSR, 4, 4}}, slotsFrom(8, 33)...)},
}

// slotsFrom are registers 0 to n-1 of eight bytes each.
func slotsFrom(off, n int) []slot {
	out := make([]slot, n)
	for i := range out {
		out[i] = slot{dump.Reg(i), off + 8*i, 8}
	}
	return out
}

// pointsNowhere reports whether a register of an x64 processor is neither a small number
// nor an address, whatever the paging: then it is data, such as eight characters.
func pointsNowhere(v uint64) bool {
	const low, high = 1 << 47, 0xff << 56
	return v >= low && v < high
}

// withoutData returns registers in which 1 stands for what points nowhere.
func withoutData(r dump.Registers) *dump.Registers {
	l := layouts[r.Arch]
	if l == nil || r.Arch != dump.AMD64 { // ARM64 signs pointers in these bits
		return &r
	}
	for _, s := range l.slots {
		if v, ok := r.Get(s.reg); ok && s.size == registerSize && s.reg != r.Arch.PCReg() && s.reg != r.Arch.SPReg() && pointsNowhere(v) {
			r.Set(s.reg, 1)
		}
	}
	return &r
}

// reduceRegisters does so with saved registers of a kernel dump.
func (k *kernelFile) reduceRegisters() error {
	return k.eachWord(k.registers, registerSize, func(off int64, v uint64) {
		if pointsNowhere(v) {
			mark(k.zeros, off, registerSize)
			mark(k.ones, off, 1)
		}
	})
}

// context encodes registers as the CONTEXT of their architecture, nil when there are
// none.
func context(r *dump.Registers) []byte {
	l := layouts[r.Arch]
	if l == nil || r.Empty() {
		return nil
	}
	out := make(record, l.size)
	flags := l.flag
	if r.Known(l.control) {
		flags |= partControl
	}
	if r.Known(l.integer) {
		flags |= partInteger
	}
	out.put(l.flagsAt, 4, uint64(flags))
	for _, s := range l.slots {
		if v, ok := r.Get(s.reg); ok {
			out.put(s.off, s.size, v)
		}
	}
	return out
}
