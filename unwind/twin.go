package unwind

import "dumptriage/dump"

// A process on ARM64 may run x64 code, emulated, and ARM64EC code, which calls it
// and is called by it. Both are on one stack, so that a walk crosses between
// them wherever a return address leads from one to the other. A frame of the other
// machine's code is unwound by a second Walker of that machine, with the registers
// that the ARM64EC calling convention has each other's stand for.

// hybridTable is a Table that says which machine's code is at an RVA.
// *pdata.Image is one.
type hybridTable interface {
	CodeArch(rva uint32) dump.Arch
}

// disputedTable is one that had to choose, at some places, which machine's code is there.
// *pdata.Image is one.
type disputedTable interface {
	CodeDisputed(rva uint32) bool
}

const disputedDetail = "the image's code map has x64 and ARM64 code there: by the function table that knows it"

const (
	twinDetailAMD64 = "x64 code in an ARM64 process"
	twinDetailARM64 = "ARM64EC code, unwound with the ARM64 registers that x64's stand for"
)

// otherCode reports whether a site of an image is code of the other machine, of
// the two that an ARM64 process may run.
func (w *Walker) otherCode(s *site) bool {
	return s.arch != w.arch && (s.arch == dump.AMD64 || s.arch == dump.ARM64) && (w.arch == dump.AMD64 || w.arch == dump.ARM64)
}

// codeArch returns the architecture of the code at a place in an image, and whether
// that had to be chosen.
func (w *Walker) codeArch(im Table, rva uint32) (arch dump.Arch, disputed bool) {
	arch = w.arch
	if t, ok := im.(hybridTable); ok {
		if a := t.CodeArch(rva); a != dump.ArchUnknown {
			arch = a
		}
	}
	t, ok := im.(disputedTable)
	return arch, ok && t.CodeDisputed(rva)
}

// otherMachine returns the Walker of the other machine's code.
func (w *Walker) otherMachine() *Walker {
	if w.twin == nil {
		arch := dump.ARM64
		if w.arch == dump.ARM64 {
			arch = dump.AMD64
		}
		w.twin = newWalker(w.space, arch, w.find)
		w.twin.stack, w.twin.frame = w.stack, nil
	}
	return w.twin
}

// stepOther unwinds a frame of the other machine's code.
func (w *Walker) stepOther(regs *dump.Registers, f *Frame, opt *Options) (Stop, bool) {
	t := w.otherMachine()
	t.trace, t.unproven, t.effort = w.trace, w.unproven, w.effort
	detail := twinDetailAMD64
	if t.arch == dump.ARM64 {
		detail = twinDetailARM64
	}
	mapped, next := mapRegisters(regs, t.arch), *f
	stop, ok := t.Step(&mapped, &next, opt)
	w.unproven, w.effort = t.unproven, t.effort
	if !ok {
		if stop.Reason == StopTrapFrame {
			w.seam = t.seam
			*regs = mapRegisters(&mapped, w.arch)
		}
		return stop, false
	}
	next.Detail = joinDetail(detail, next.Detail)
	*regs, *f = mapRegisters(&mapped, w.arch), next
	return Stop{}, true
}

func joinDetail(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// callLength is what to look a caller up before its return address: part of an
// instruction of the code there.
func (w *Walker) callLength(ip uint64) uint64 {
	if w.site(ip-1).arch == dump.ARM64 {
		return arm64Word
	}
	return 1
}

// twinRegisters are the general registers that stand for each other, by the ARM64EC
// calling convention. ARM64's others have no counterpart and are not preserved.
var twinRegisters = []struct{ amd64, arm64 dump.Reg }{
	{dump.RAX, 8}, {dump.RCX, 0}, {dump.RDX, 1}, {dump.RBX, 27}, {dump.RSP, dump.ARM64SP}, {dump.RBP, dump.ARM64FP}, {dump.RSI, 25}, {dump.RDI, 26},
	{dump.R8, 2}, {dump.R9, 3}, {dump.R10, 4}, {dump.R11, 5}, {dump.R12, 19}, {dump.R13, 20}, {dump.R14, 21}, {dump.R15, 22}, {dump.RIP, dump.ARM64PC},
}

// mapRegisters returns the registers as the other machine has them. Vector
// registers, which ARM64 unwinding does not follow, are not known afterwards.
func mapRegisters(regs *dump.Registers, to dump.Arch) dump.Registers {
	out := dump.Registers{Arch: to}
	for _, r := range twinRegisters {
		from, dst := r.amd64, r.arm64
		if to == dump.AMD64 {
			from, dst = r.arm64, r.amd64
		}
		if v, ok := regs.Get(from); ok {
			out.Set(dst, v)
		}
	}
	return out
}
