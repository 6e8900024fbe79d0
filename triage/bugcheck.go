package triage

import (
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/unwind"
)

// explainBugCheck names the thread that a bugcheck belongs to and where its fault
// is.
func (a *analysis) explainBugCheck() {
	if a.kernel == nil {
		return
	}
	bc := a.kernel.BugCheck()
	if bc == nil {
		return
	}
	out := &BugCheck{BugCheck: *bc, Fault: Fault{Parameter: -1, Index: -1}}
	a.inc.BugCheck = out
	k := a.kernelFile()
	if k == nil {
		return
	}
	out.Live, out.BrokenDriver, out.Blobs = k.Live(), k.BrokenDriver(), k.Blobs()
	for _, c := range k.CPUs() {
		out.Processors = append(out.Processors, Processor{c.PRCB, c.Number, c.Crashed})
	}
	if out.Live {
		return
	}
	if a.inc.Crashing < 0 {
		a.inc.Crashing = a.bugCheckThread()
	}
	out.Exception = k.Exception()
	a.findFault(&out.Fault, k)
}

// kernelFile is the reader of the kernel dump, nil when there is none.
func (a *analysis) kernelFile() *kdump.File {
	if a.kernel == nil {
		return nil
	}
	k, _ := a.kernel.Source.(*kdump.File)
	return k
}

// bugCheckThread finds the thread that the header's context belongs to.
func (a *analysis) bugCheckThread() int {
	for i := range a.inc.Threads {
		if a.bugChecked(&a.inc.Threads[i]) {
			return i
		}
	}
	return -1
}

// bugChecked reports whether a thread's kernel half starts from the registers of a
// bugcheck.
func (a *analysis) bugChecked(t *Thread) bool {
	if t.kernelThread == nil {
		return false
	}
	switch t.kernelThread.ContextSource {
	case dump.ContextHeader, dump.ContextParameter, dump.ContextTrapFrame, dump.ContextTask:
		return true
	}
	return false
}

// findFault says where the fault is: what a parameter points to, what was found on
// the stack, else the address that a parameter gives.
func (a *analysis) findFault(f *Fault, k *kdump.File) {
	found := false
	f.Parameter, found = k.FaultParameter()
	f.Missing = f.Parameter >= 0 && !found
	f.Source = dump.ContextHeader
	if regs, src, ok := k.FaultContext(); ok {
		f.Registers, f.Source = regs, src
	}
	ip, parameter, known := k.FaultAddress()
	if trap := a.trap; trap != nil {
		f.TrapFrame, f.Registers, f.Source = trap.va, trap.regs, dump.ContextTrapFrame
	}
	if pc, ok := f.Registers.PC(); ok {
		ip, known = pc, true
	} else if known && f.Parameter < 0 {
		f.Parameter = parameter
	}
	if at, ok := a.trapped(); !known && ok {
		ip, known = at, true
	}
	if !known {
		return
	}
	at := a.kw.name(unwind.Frame{IP: ip, Lookup: ip})
	f.At = &at
	if i := a.inc.Crashing; i >= 0 && a.inc.Threads[i].Kernel != nil {
		f.Index = faultIndex(a.inc.Threads[i].Kernel.Frames, ip)
	}
}

// trapped returns where a bugcheck that is of a trap alone, and so has no parameter
// that says where, was: what its handler interrupted, by the walk.
func (a *analysis) trapped() (ip uint64, ok bool) {
	const unexpectedTrap = 0x7f
	i := a.inc.Crashing
	if a.inc.BugCheck.Code&0x0fffffff != unexpectedTrap || i < 0 || a.inc.Threads[i].Kernel == nil {
		return 0, false
	}
	frames := a.inc.Threads[i].Kernel.Frames
	n := slices.IndexFunc(frames, func(f Frame) bool { return f.Method == unwind.MethodMachineFrame })
	if n < 0 {
		return 0, false
	}
	return frames[n].IP, true
}

// faultIndex finds the frame of the fault at ip: the first, when the walk started
// there; else the innermost that a trap interrupted there.
func faultIndex(frames []Frame, ip uint64) int {
	if len(frames) > 0 && frames[0].IP == ip {
		return 0
	}
	return slices.IndexFunc(frames, func(f Frame) bool { return f.Method == unwind.MethodMachineFrame && f.IP == ip })
}

// foundTrap is a trap frame that was found on the stack of a bugcheck.
type foundTrap struct {
	va   uint64
	regs dump.Registers
}

// walkFault walks a kernel half. That of a bugcheck goes from the fault outwards;
// what leads from the fault to KeBugCheckEx becomes the thread's handler half. When
// unwind data lead from KeBugCheckEx through the fault the half stays whole: only
// such a walk knows the registers that a trap frame does not hold.
func (a *analysis) walkFault(t *Thread) (unwind.Stack, bool) {
	kt := t.kernelThread
	st, reached := a.kw.walkKernel(t, kt, a.entryProved(kt))
	k := a.kernelFile()
	if k == nil || k.Live() || !a.bugChecked(t) {
		return st, reached
	}
	header, ok := k.HeaderContext()
	if !ok {
		return st, reached
	}
	start := kt.Context
	if kt.ContextSource == dump.ContextHeader {
		trap := a.findTrap(k, t, header)
		if trap == nil {
			return st, reached
		}
		a.trap = trap
		outer := t.Kernel
		again := *kt
		again.Context, again.ContextSource, start = trap.regs, dump.ContextTrapFrame, trap.regs
		st, reached = a.kw.walkKernel(t, &again, false)
		t.Handler = outer
	} else if !samePlace(&header, &start) {
		t.Handler = a.kw.walkHandler(t, header, k.BugCheckEntry())
	}
	a.cutHandler(t, &start)
	return st, reached
}

// findTrap looks for the trap frame of the fault on the stack, if the walk that
// was made did not come through it.
func (a *analysis) findTrap(k *kdump.File, t *Thread, header dump.Registers) *foundTrap {
	ip, _, ok := k.FaultAddress()
	if !ok || faultIndex(t.Kernel.Frames, ip) >= 0 {
		return nil
	}
	sp, ok := header.SP()
	base := t.KernelInfo.StackBase
	if !ok || sp >= base || sp < t.KernelInfo.StackLimit { // on another stack: of interrupts or DPCs
		const some = 0x6000
		base = sp + some
	}
	va, regs, ok := k.StackTrapFrame(sp, base, ip)
	if !ok {
		return nil
	}
	return &foundTrap{va, regs}
}

// walkHandler walks from the registers at a bugcheck.
func (w *walker) walkHandler(t *Thread, regs dump.Registers, entry bool) *Half {
	opt := unwind.Options{Kernel: true, First: unwind.MethodContext}
	if sp, ok := regs.SP(); ok && sp >= t.KernelInfo.StackLimit && sp < t.KernelInfo.StackBase {
		opt.StackLimit, opt.StackBase = t.KernelInfo.StackLimit, t.KernelInfo.StackBase
	}
	if entry {
		opt.EntryProved = entryProof
	}
	h, _ := w.walk(regs, opt)
	return h
}

// cutHandler ends the handler half where the fault's own frames begin.
func (a *analysis) cutHandler(t *Thread, fault *dump.Registers) {
	sp, ok := fault.SP()
	h := t.Handler
	if h == nil || !ok {
		return
	}
	i := slices.IndexFunc(h.Frames, func(f Frame) bool { return f.SP >= sp })
	switch {
	case i == 0: // on another stack
		return
	case i > 0:
		h.Frames = h.Frames[:i]
	}
	h.Stop = unwind.Stop{Reason: unwind.StopTrapFrame, Detail: fmt.Sprintf("the fault is next, at stack pointer %#x", sp)}
}
