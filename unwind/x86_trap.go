package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// The entries of a 32-bit kernel, from traps, interrupts and system calls alike,
// keep their KTRAP_FRAME in ebp while they run. So a frame whose ebp points to
// one has no return address: behind it is what was interrupted.

// trap86 is a trap frame that a walk came to.
type trap86 struct {
	va     uint64
	frame  threadcontext.TrapFrameX86
	mode   threadcontext.TrapMode
	trust  Trust
	method Method // how it was reached
	detail string
}

// trapOf86 returns the trap frame that a frame of a kernel stack keeps in ebp.
// Debug information may say that the code runs on one; else the frame is that of
// the thread's entry, or proves itself.
func (w *Walker) trapOf86(f *Frame, opt *Options) (t trap86, ok bool) {
	if !opt.Kernel || !f.HasFP || f.FP&3 != 0 || f.FP < f.SP {
		return t, false
	}
	t.trust, t.method, t.detail = TrustFramePointer, MethodEBP, "ebp points to it"
	record := w.recordOfKind(f, FrameTrap)
	if record != nil {
		t.trust, t.method, t.detail = TrustCFI, MethodFPO, record.by
	}
	if !w.readTrap86(f.FP, &t, opt) {
		return t, false
	}
	return t, record != nil || t.frame.Proved() || f.FP == opt.TrapFrame && opt.atSeam()
}

// readTrap86 decodes the trap frame at va, which may be none.
func (w *Walker) readTrap86(va uint64, t *trap86, opt *Options) bool {
	b := w.trap[:threadcontext.TrapFrameSizeX86]
	if !opt.holds(va, threadcontext.TrapFrameKernelX86) {
		return false
	}
	n, _ := w.space.ReadAt(b, va)
	tf, err := threadcontext.ParseTrapFrameX86(b[:n])
	if err != nil {
		return false
	}
	t.va, t.frame, t.mode = va, tf, tf.Mode()
	return t.mode != threadcontext.TrapNone
}

// recordOfKind returns the frame record of a kind that holds where a frame
// stands, nil when there is none.
func (w *Walker) recordOfKind(f *Frame, kind FrameKind) *compiledRecord {
	records := w.records(f.Lookup)
	for i := range records {
		if records[i].Kind == kind {
			return &records[i]
		}
	}
	return nil
}

// stepTrap86 goes on behind a trap frame: to the kernel's code that was
// interrupted, or out of the kernel.
func (w *Walker) stepTrap86(regs *dump.Registers, f *Frame, t *trap86) (Stop, bool) {
	w.noteTrap86(t)
	switch t.mode {
	case threadcontext.TrapUser:
		*regs = t.frame.Registers(t.va)
		w.seam = seam{t.va, t.method}
		return Stop{StopTrapFrame, ""}, false
	case threadcontext.TrapV86:
		return Stop{StopNoUnwindData, fmt.Sprintf("the trap frame at %#x is of virtual-8086 mode, at %04x:%04x", t.va, t.frame.SegCs&0xffff, t.frame.Eip)}, false
	}
	w.interrupted86(regs, f, t.frame.Registers(t.va), t.trust, fmt.Sprintf("the trap frame at %#x, %s", t.va, t.detail))
	return Stop{}, true
}

// interrupted86 makes f the frame of what was interrupted, whose registers are
// all known and which may stand at any instruction.
func (w *Walker) interrupted86(regs *dump.Registers, f *Frame, to dump.Registers, trust Trust, detail string) {
	w.unproven, w.settling = 0, 0
	*regs = to
	ip, _ := to.PC()
	sp, _ := to.SP()
	*f = Frame{IP: ip, Lookup: ip, SP: sp, Trust: trust, Method: MethodMachineFrame, Detail: detail}
	f.FP, f.HasFP = to.Get(dump.RBP)
}

// stepTaskGate86 leaves code that was entered through a task gate: a double fault
// or a non-maskable interrupt. The processor put what it interrupted into the
// task state segment, which is used once: nothing nests task gates.
func (w *Walker) stepTaskGate86(regs *dump.Registers, f *Frame, opt *Options) bool {
	if !opt.Kernel || opt.Task.Empty() {
		return false
	}
	r := w.recordOfKind(f, FrameTaskGate)
	_, okPC := opt.Task.PC()
	_, okSP := opt.Task.SP()
	if r == nil || !okPC || !okSP {
		return false
	}
	to := opt.Task
	opt.Task = dump.Registers{}
	w.interrupted86(regs, f, to, TrustCFI, "the task state segment that the task gate left, "+r.by)
	return true
}

// foundTrap86 reports whether a word that a scan came to begins a trap frame
// that proves itself.
func (w *Walker) foundTrap86(at uint64, opt *Options) (t trap86, ok bool) {
	const markAt = 8
	if v, known := w.word(at + markAt); !opt.Kernel || !known || v != threadcontext.TrapFrameMarkX86 {
		return t, false
	}
	if !w.readTrap86(at, &t, opt) || !t.frame.Proved() {
		return t, false
	}
	t.trust, t.method, t.detail = TrustScan, MethodScan, "found by a scan"
	return t, true
}

// stopAtTrapFrame86 ends a kernel half that leads nowhere at the trap frame of
// the thread's entry, which is known all the same.
func (w *Walker) stopAtTrapFrame86(regs *dump.Registers, opt *Options, why Stop) (Stop, bool) {
	t := trap86{}
	if !opt.atSeam() || !w.readTrap86(opt.TrapFrame, &t, opt) || t.mode != threadcontext.TrapUser {
		return why, false
	}
	*regs = t.frame.Registers(t.va)
	w.seam = seam{t.va, MethodTrapFrame}
	return Stop{StopTrapFrame, why.Detail}, false
}

// noteTrap86 notes a trap frame for Explain.
func (w *Walker) noteTrap86(t *trap86) {
	if w.tracing() {
		w.note(Note{Kind: NoteUndo, Rule: MethodMachineFrame, Op: undoNames[undoMachine], Addr: t.va, Detail: t.detail})
	}
}
