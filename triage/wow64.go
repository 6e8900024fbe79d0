package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
	"dumptriage/unwind"
)

// A 32-bit process on a 64-bit system has two stacks a thread: the program's
// own, and the one of the 64-bit code that carries its system calls out. Fields
// of the 64-bit TEB and the selector are measured and as public headers have
// them; that the saved registers begin 4 bytes behind what TlsSlots[1] points
// to (WOW64_CPURESERVED: flags, machine) is measured.
const (
	wow64CS         = 0x23   // code selector of 32-bit code
	teb64TlsSlot1   = 0x1488 // TEB64.TlsSlots[WOW64_TLS_CPURESERVED]
	teb32Distance   = 0x2000 // from the 64-bit TEB to the 32-bit one
	teb32StackBase  = 4
	teb32StackLimit = 8
	teb32Self       = 0x18
	reservedMachine = 2 // in WOW64_CPURESERVED
	reservedContext = 4
	wow64Context    = 0xcc // bytes of WOW64_CONTEXT that are needed
)

// Emulation is how a process runs that was made for another architecture than
// its system's.
type Emulation struct {
	Guest, Host dump.Arch
	Module      string // whose presence tells
}

// emulators are the modules that run code of other architectures, the telling
// ones first. All processes under WoW64 hold wow64.dll.
var emulators = []struct {
	name        string
	guest, host dump.Arch
}{
	{"xtajit64.dll", dump.AMD64, dump.ARM64},
	{"xtajit64se.dll", dump.AMD64, dump.ARM64},
	{"xtajit.dll", dump.X86, dump.ARM64},
	{"xtac.dll", dump.X86, dump.ARM64},
	{"wowarmhw.dll", dump.ARM, dump.ARM64},
	{"wow64cpu.dll", dump.X86, dump.AMD64},
}

// emulation recognises by its modules a process that runs emulated.
func emulation(mods []*Module) *Emulation {
	loaded := map[string]bool{}
	for _, m := range mods {
		loaded[strings.ToLower(m.Name())] = true
	}
	for _, e := range emulators {
		if loaded[e.name] {
			return &Emulation{Guest: e.guest, Host: e.host, Module: e.name}
		}
	}
	return nil
}

// halves walks what user-mode registers lead to. In a 32-bit process of a
// 64-bit dump user is the 32-bit stack and wow64 the 64-bit one, each nil when
// its registers are not in the dump; otherwise wow64 is nil.
func (w *walker) halves(t *Thread, regs dump.Registers, opt unwind.Options) (user, wow64 *Half) {
	if regs.Empty() {
		return nil, nil
	}
	w.start = t.StartAddress
	defer func() { w.start = 0 }()
	regs32, opt32, ok := w.wow64Registers(t, &regs, opt)
	if !ok {
		user, _ = w.walk(regs, opt)
		return user, nil
	}
	narrow := w.narrow()
	narrow.start = t.StartAddress
	user, _ = narrow.walk(regs32, opt32)
	if !inWow64Code(&regs) { // else what the registers hold of the 64-bit stack is no place in code
		wow64, _ = w.walk(regs, opt)
	}
	return user, wow64
}

// wow64Registers returns the registers of a thread's 32-bit code: those at hand
// when it was running, else those that were saved when it left for 64-bit code.
func (w *walker) wow64Registers(t *Thread, regs *dump.Registers, opt unwind.Options) (dump.Registers, unwind.Options, bool) {
	opt32 := unwind.Options{First: opt.First}
	if regs.Arch == dump.X86 || w.space.arch.PointerSize() != 8 {
		return dump.Registers{}, opt, false
	}
	opt32.StackLimit, opt32.StackBase = w.teb32Bounds(t.TEB)
	if inWow64Code(regs) {
		return as32(regs), opt32, true
	}
	if opt32.StackBase == 0 { // not a 32-bit process, or its TEB is not in the dump
		return dump.Registers{}, opt, false
	}
	saved, ok := w.savedWow64(t.TEB)
	sp, known := saved.SP()
	if !ok || !known || sp < opt32.StackLimit || sp >= opt32.StackBase {
		return dump.Registers{}, opt, false
	}
	if opt32.First == unwind.MethodException { // the exception was the 64-bit code's
		opt32.First = unwind.MethodContext
	}
	return saved, opt32, true
}

// inWow64Code reports whether registers of a 64-bit dump are those of 32-bit
// code.
func inWow64Code(r *dump.Registers) bool {
	cs, ok := r.Get(dump.RegCS)
	return ok && r.Arch == dump.AMD64 && cs == wow64CS
}

// as32 is what 32-bit code sees of the registers.
func as32(r *dump.Registers) dump.Registers {
	out := dump.Registers{Arch: dump.X86}
	for reg := range dump.Reg(dump.NumRegs) {
		if v, ok := r.Get(reg); ok && dump.X86.RegName(reg) != "" {
			out.Set(reg, v&0xffffffff)
		}
	}
	return out
}

// teb32Bounds returns the bounds of the 32-bit stack. The first field of the
// 64-bit TEB points to the 32-bit one, which lies behind it at a fixed distance;
// it must point to itself to be believed.
func (w *walker) teb32Bounds(teb uint64) (limit, base uint64) {
	_, limit, base = w.findTEB32(teb)
	return limit, base
}

// teb32 is where the 32-bit TEB of a thread lies, 0 when it is not in the dump.
func (w *walker) teb32(teb uint64) uint64 {
	at, _, _ := w.findTEB32(teb)
	return at
}

func (w *walker) findTEB32(teb uint64) (at, limit, base uint64) {
	if teb == 0 {
		return 0, 0, 0
	}
	candidates := [2]uint64{0, teb + teb32Distance}
	candidates[0], _ = dump.ReadUint64(w.space.mem, teb)
	for _, at := range candidates {
		if at == 0 || at > 0xffffffff {
			continue
		}
		self, err1 := dump.ReadUint32(w.space.mem, at+teb32Self)
		b, err2 := dump.ReadUint32(w.space.mem, at+teb32StackBase)
		l, err3 := dump.ReadUint32(w.space.mem, at+teb32StackLimit)
		if err1 == nil && err2 == nil && err3 == nil && uint64(self) == at && l < b {
			return at, uint64(l), uint64(b)
		}
	}
	return 0, 0, 0
}

// savedWow64 reads the WOW64_CONTEXT that TlsSlots[1] points to.
func (w *walker) savedWow64(teb uint64) (dump.Registers, bool) {
	at, err := dump.ReadUint64(w.space.mem, teb+teb64TlsSlot1)
	if err != nil || at == 0 || at+reservedContext < at {
		return dump.Registers{}, false
	}
	head, err := dump.ReadUint32(w.space.mem, at)
	if err != nil {
		return dump.Registers{}, false
	}
	// Older systems leave the machine empty.
	if m := uint16(head >> (8 * reservedMachine)); m != 0 && dump.ArchOfMachine(m) != dump.X86 {
		return dump.Registers{}, false
	}
	var b [wow64Context]byte
	if _, err := w.space.mem.ReadAt(b[:], at+reservedContext); err != nil {
		return dump.Registers{}, false
	}
	regs, err := threadcontext.Parse(dump.X86, b[:], -1)
	pc, ok := regs.PC()
	return regs, err == nil && ok && pc != 0
}

// narrow returns the walker of the same memory's 32-bit stacks.
func (w *walker) narrow() *walker {
	if w.wow64 == nil {
		sp := *w.space // the look-ups it shares are maps and slices
		sp.arch = dump.X86
		w.wow64 = newWalker(&sp, w.unloaded, w.frames, w.budget)
	}
	return w.wow64
}
