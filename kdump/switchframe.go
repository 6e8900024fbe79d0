package kdump

import "dumptriage/dump"

// KSWITCH_FRAME at KTHREAD.KernelStack. It is in no public symbol file; the
// AMD64 one is measured, the x86 one believed.
const (
	amd64SwitchFrame = 0x40 // Rbp at 0x30, Return at 0x38
	x86SwitchFrame   = 0x0c // ExceptionList, flags, Return

	// On ARM64 it lies inside KTHREAD (Fp at 0x10, Return at 0x18), and the
	// frame record that Fp points to stands this far above KernelStack.
	arm64SwitchFrame = 0x210
	arm64FrameRecord = 0x50
)

// setSwitchFrame rebuilds the registers of a thread that is not running.
func (f *File) setSwitchFrame(t *dump.Thread, r *record) {
	kt := t.Kernel
	if kt.KernelStack < kt.StackLimit || kt.KernelStack >= kt.StackBase {
		kt.Note = "KernelStack lies outside its stack: it has no saved registers, or its stack is paged out"
		return
	}
	var regs dump.Registers
	var ok bool
	switch f.hdr.arch {
	case dump.AMD64:
		regs, ok = f.switchFrameAMD64(kt)
	case dump.ARM64:
		regs, ok = f.switchFrameARM64(kt, r)
	case dump.X86:
		regs, ok = f.switchFrameX86(kt)
	}
	if !ok {
		kt.Note = "there is no switch frame at KernelStack in the dump" + f.whyUnread(kt.KernelStack)
		return
	}
	t.Context, t.ContextSource = regs, dump.ContextSwitchFrame
}

// whyUnread says for a note why memory of a full dump cannot be read, "" when it
// can.
func (f *File) whyUnread(va uint64) string {
	var b [1]byte
	if _, err := f.mem.ReadAt(b[:], va); err != nil && f.full != nil {
		return ": the stack is " + pageStateOf(err).String()
	}
	return ""
}

func (f *File) switchFrameAMD64(kt *dump.KernelThread) (dump.Registers, bool) {
	regs := dump.Registers{Arch: dump.AMD64}
	rbp, err1 := dump.ReadUint64(f.mem, kt.KernelStack+0x30)
	rip, err2 := dump.ReadUint64(f.mem, kt.KernelStack+0x38)
	if err1 != nil || err2 != nil || f.moduleAt(rip) == nil {
		return regs, false
	}
	regs.Set(dump.RBP, rbp)
	regs.SetPC(rip)
	regs.SetSP(kt.KernelStack + amd64SwitchFrame)
	return regs, true
}

// switchFrameX86 leaves ebp unknown: it is in use by KiSwapContext, whose code
// tells the unwinder where the caller's is saved.
func (f *File) switchFrameX86(kt *dump.KernelThread) (dump.Registers, bool) {
	regs := dump.Registers{Arch: dump.X86}
	eip, err := dump.ReadUint32(f.mem, kt.KernelStack+8)
	if err != nil || f.moduleAt(uint64(eip)) == nil {
		return regs, false
	}
	regs.SetPC(uint64(eip))
	regs.SetSP(kt.KernelStack + x86SwitchFrame)
	return regs, true
}

func (f *File) switchFrameARM64(kt *dump.KernelThread, r *record) (dump.Registers, bool) {
	regs := dump.Registers{Arch: dump.ARM64}
	fp, ok1 := r.pointer(arm64SwitchFrame + 0x10)
	pc, ok2 := r.pointer(arm64SwitchFrame + 0x18)
	sp := kt.KernelStack
	if !ok1 || !ok2 || fp < sp || fp >= kt.StackBase || f.moduleAt(pc) == nil {
		// Another layout of KTHREAD: take the frame record itself.
		record := kt.KernelStack + arm64FrameRecord
		var err1, err2 error
		fp, err1 = dump.ReadUint64(f.mem, record)
		pc, err2 = dump.ReadUint64(f.mem, record+8)
		sp = record + 16
		if err1 != nil || err2 != nil || fp < sp || fp >= kt.StackBase || f.moduleAt(pc) == nil {
			return regs, false
		}
	}
	regs.Set(dump.ARM64FP, fp)
	regs.SetPC(pc)
	regs.SetSP(sp)
	return regs, true
}
