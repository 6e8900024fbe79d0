package triage

import (
	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// walkCallbacks walks the outer kernel stacks of a thread. Each was left inside
// KiCallUserMode; which instruction of its body does not matter to its unwind
// data. That the stack pointer is one of the body is believed, so a walk counts
// only when it ends just at the trap frame of the segment's entry.
func (w *walker) walkCallbacks(t *Thread) {
	for _, s := range t.KernelInfo.Outer {
		if s.Grown {
			continue
		}
		c := Callback{StackSegment: s}
		c.Kernel, c.Note = w.walkSegment(&s)
		t.Callbacks = append(t.Callbacks, c)
	}
}

func (w *walker) walkSegment(s *dump.StackSegment) (*Half, string) {
	switch {
	case s.TrapFrame == 0:
		return nil, "the trap frame of its entry from user mode is not in the dump"
	case w.space.arch == dump.X86:
		return w.walkSegmentX86(s)
	case s.Entry == 0:
		return nil, "where KiCallUserMode is was not found"
	}
	pc := w.body(s.Entry)
	if pc == 0 {
		return nil, "the kernel's image is needed to walk it"
	}
	regs := dump.Registers{Arch: w.space.arch}
	regs.SetPC(pc)
	regs.SetSP(s.KernelStack)
	half, st := w.walk(regs, unwind.Options{Kernel: true, TrapFrame: s.TrapFrame, First: unwind.MethodSwitchFrame,
		StackLimit: s.StackLimit, StackBase: s.StackBase})
	if st.Stop.Reason != unwind.StopTrapFrame || !enters(half, s) {
		return nil, "a walk from its saved stack pointer does not lead to the trap frame of its entry"
	}
	half.Frames[0].Detail = "which instruction of the function is not recorded"
	return half, ""
}

// savedRoom is how far above the stack pointer that was left the saved ebp and the
// return address of KiCallUserMode are looked for.
const savedRoom = 0x80

// walkSegmentX86 walks a stack that was left from the frame that KiCallUserMode
// returned to. Where it keeps ebp below its return address is not recorded: each pair
// of words that can be these is tried, and counts only when the chain leads just to
// the trap frame of the segment's entry.
func (w *walker) walkSegmentX86(s *dump.StackSegment) (*Half, string) {
	for at := s.KernelStack; at < min(s.KernelStack+savedRoom, s.StackBase-8); at += 4 {
		ebp, err1 := dump.ReadUint32(w.space.mem, at)
		ret, err2 := dump.ReadUint32(w.space.mem, at+4)
		if err1 != nil || err2 != nil {
			break
		}
		if m, in := w.space.Module(uint64(ret)); !in || !m.Kernel || uint64(ebp) <= at || uint64(ebp) >= s.StackBase || ebp%4 != 0 {
			continue
		}
		regs := dump.Registers{Arch: dump.X86}
		regs.SetPC(uint64(ret))
		regs.SetSP(at + 8)
		regs.Set(dump.RBP, uint64(ebp))
		half, st := w.walk(regs, unwind.Options{Kernel: true, TrapFrame: s.TrapFrame, First: unwind.MethodEBP,
			StackLimit: s.StackLimit, StackBase: s.StackBase})
		if st.Stop.Reason == unwind.StopTrapFrame && sameEntry(&st.User, &s.User) {
			half.Frames[0].Detail = "called KiCallUserMode, whose saved ebp and return address lead to the trap frame of the entry"
			return half, ""
		}
	}
	return nil, "no saved ebp above its stack pointer leads to the trap frame of its entry"
}

// sameEntry reports whether registers of user mode are of one place.
func sameEntry(a, b *dump.Registers) bool {
	pc1, ok1 := a.PC()
	pc2, ok2 := b.PC()
	sp1, ok3 := a.SP()
	sp2, ok4 := b.SP()
	return ok1 && ok2 && ok3 && ok4 && pc1 == pc2 && sp1 == sp2
}

// serviceBelow is how far below a trap frame the stack pointer of the system
// service's entry is, at most.
const serviceBelow = 0x200

// enters reports whether the outermost frame of a half is the entry whose trap
// frame the segment has.
func enters(h *Half, s *dump.StackSegment) bool {
	n := len(h.Frames)
	return n > 1 && h.Frames[n-1].SP < s.TrapFrame && s.TrapFrame-h.Frames[n-1].SP <= serviceBelow
}

// body returns an address behind the prolog of the function that begins at va, 0
// when its image does not say where that is.
func (w *walker) body(va uint64) uint64 {
	im, base := w.space.Image(va)
	if im == nil || va < base {
		return 0
	}
	fn, ok, err := im.Lookup(uint32(va - base))
	if err != nil || !ok || base+uint64(fn.Begin) != va {
		return 0
	}
	info, err := im.UnwindInfo(fn.UnwindInfo)
	if err != nil || info.Flags&pdata.FlagChainInfo != 0 {
		return 0
	}
	return va + uint64(info.SizeOfProlog)
}
