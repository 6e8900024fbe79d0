package kdump

import (
	"cmp"
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// contextMost is more than a CONTEXT with all the extended state that is decoded.
const contextMost = 0x1000

// HeaderContext returns the registers in the dump's header: those at
// KeBugCheckEx, or at the fault when the kernel had copied them there, or in a
// live dump those of the first thread.
func (f *File) HeaderContext() (dump.Registers, bool) {
	h := f.hdr
	regs, err := threadcontext.Parse(h.arch, h.context, int64(h.headerLayout.context))
	return regs, err == nil && believable(&regs)
}

// HeaderException returns the exception record in the header, nil when it was
// never written. In bugcheck dumps it is a stand-in (code 0x80000003 at the entry
// of KeBugCheckEx), not the cause.
func (f *File) HeaderException() *ExceptionRecord { return f.hdr.exception }

// believable tells registers from a CONTEXT that was never filled. A program counter
// of 0 is that of a call through a null pointer where there is a code selector.
func believable(r *dump.Registers) bool {
	pc, ok1 := r.PC()
	sp, ok2 := r.SP()
	if cs, known := r.Get(dump.RegCS); pc == 0 && (!known || cs == 0) {
		return false
	}
	return ok1 && ok2 && sp != 0 && pc != filler64 && sp != filler64 && pc != filler32
}

// contextAt reads a CONTEXT from the dump's memory.
func (f *File) contextAt(va uint64) (dump.Registers, bool) {
	if va == 0 {
		return dump.Registers{}, false
	}
	b, n := make([]byte, contextMost), 0
	f.ahead(func() { n, _ = f.mem.ReadAt(b, va) })
	f.usedParts(va, min(n, threadcontext.MinSize(f.hdr.arch)), usedContext(f.hdr.arch))
	if n < threadcontext.MinSize(f.hdr.arch) {
		return dump.Registers{}, false
	}
	off, size := usedRegisters(f.hdr.arch)
	f.as(UseContext, 0, func() { f.usedAt(f.mem, va+uint64(off), size) })
	regs, err := threadcontext.Parse(f.hdr.arch, b[:n], -1)
	return regs, err == nil && believable(&regs)
}

// startContext returns what the current thread starts from: the registers that a
// bugcheck parameter names, else the header's.
func (f *File) startContext() (dump.Registers, dump.ContextSource, bool) {
	if regs, source, ok := f.FaultContext(); ok {
		return regs, source, true
	}
	if regs, ok := f.HeaderContext(); ok {
		return regs, dump.ContextHeader, true
	}
	return dump.Registers{}, dump.ContextNone, false
}

// setContext finds a thread's kernel-mode registers. KTHREAD.KernelStack of a
// running thread is what it was at its last switch, so it is never used.
func (f *File) setContext(t *dump.Thread, r *record) {
	kt := t.Kernel
	if f.live {
		f.setLiveContext(t, r)
		return
	}
	running := f.processorOf(r.va)
	switch {
	case running != nil:
		kt.CPU = int(running.number)
		t.Context, t.ContextSource = f.processorContext(running)
		if running.crashed {
			if regs, source, ok := f.startContext(); ok {
				t.Context, t.ContextSource = regs, source
			}
		}
		kt.Switched = f.switchedStack(running, &t.Context)
		kt.Task, _ = f.taskState(f.taskSegment(running))
		if t.ContextSource == dump.ContextNone {
			kt.Note = "it was running, and its processor's registers are not in the dump"
		}
	case f.thread != nil && r.va == f.thread.va:
		if regs, source, ok := f.startContext(); ok {
			t.Context, t.ContextSource = regs, source
		}
	case switchedOut(kt.State):
		f.setSwitchFrame(t, r)
	case kt.State == stateRunning:
		kt.Note = "it was running, and no processor in the dump says where"
	default:
		kt.Note = "its state has no saved registers"
	}
}

// setLiveContext finds the registers of a thread of a live dump, and says when
// there is no stack to go with them.
func (f *File) setLiveContext(t *dump.Thread, r *record) {
	f.findLiveContext(t, r)
	if sp, ok := t.Context.SP(); ok && !f.hasMemory(sp) {
		t.Kernel.Note = f.droppedStack()
	}
}

// hasMemory reports whether a word at va is in the dump.
func (f *File) hasMemory(va uint64) bool {
	_, err := dump.ReadPointer(f.shown(f.mem), f.hdr.arch, va)
	return err == nil
}

// droppedStack says why a captured thread has registers and no stack: the writer
// leaves out what does not fit into its requester's buffer, which the blocks of
// many processors fill first.
func (f *File) droppedStack() string {
	n := 0
	for range f.blocksOfSize(f.kd.prcb.size) {
		n++
	}
	return fmt.Sprintf("its kernel stack is not in the dump: the writer leaves out what does not fit into its buffer, of which the blocks of %d processors take %d of %d bytes",
		n, n*f.kd.prcb.size, f.size)
}

// findLiveContext: the first thread's registers are in the header, every other's
// in a CONTEXT on its own stack, and in a made-up switch frame.
func (f *File) findLiveContext(t *dump.Thread, r *record) {
	kt := t.Kernel
	if f.isFirstLive(r) {
		regs, ok := f.HeaderContext()
		if sp, _ := regs.SP(); ok && sp >= kt.StackLimit && sp < kt.StackBase {
			t.Context, t.ContextSource = regs, dump.ContextHeader
			return
		}
	}
	if !switchedOut(kt.State) {
		kt.Note = "no registers were captured for it"
		return
	}
	f.setSwitchFrame(t, r)
	if t.ContextSource != dump.ContextSwitchFrame {
		return
	}
	if regs, ok := f.liveBlock(kt, &t.Context); ok {
		t.Context, t.ContextSource = regs, dump.ContextLiveBlock
	}
}

// isFirstLive reports whether r is the thread that the writer made current on
// processor 0. That is its convention: where the thread ran is not known.
func (f *File) isFirstLive(r *record) bool {
	if f.thread != nil {
		return f.thread.va == r.va
	}
	p := f.processorOf(r.va)
	return p != nil
}

// maxLiveBlocks bounds how many blocks are tried for one thread.
const maxLiveBlocks = 16

// liveBlock finds the full CONTEXT that the capture left on the thread's stack:
// a block of its size whose registers agree with the switch frame.
func (f *File) liveBlock(kt *dump.KernelThread, frame *dump.Registers) (dump.Registers, bool) {
	pc, _ := frame.PC()
	sp, _ := frame.SP()
	for _, b := range f.contextBlocks(kt.StackLimit, kt.StackBase) {
		r := f.recordOfBlock(b, int(b.Size))
		if r == nil {
			continue
		}
		regs, err := threadcontext.Parse(f.hdr.arch, r.b, b.Off)
		pc2, _ := regs.PC()
		sp2, _ := regs.SP()
		if err == nil && pc == pc2 && sp == sp2 {
			for _, p := range usedContext(f.hdr.arch) {
				r.use(p[0], p[1])
			}
			if f.watched != nil && f.hdr.arch == dump.AMD64 && r.off >= 0 {
				f.watched.tell(UseRegister, 0, r.off+0x78, 16*8) // rax to r15
			}
			return regs, true
		}
	}
	return dump.Registers{}, false
}

// contextBlocks returns, at most maxLiveBlocks of, the blocks in [limit, base)
// that have the size of a CONTEXT.
func (f *File) contextBlocks(limit, base uint64) []dump.Range {
	f.contextsOnce.Do(func() {
		size := uint64(threadcontext.Size(f.hdr.arch))
		for _, b := range f.blocks {
			if b.Size == size {
				f.contexts = append(f.contexts, b)
			}
		}
		slices.SortStableFunc(f.contexts, func(a, b dump.Range) int { return cmp.Compare(a.VA, b.VA) })
	})
	from := func(va uint64) int {
		i, _ := slices.BinarySearchFunc(f.contexts, va, func(b dump.Range, va uint64) int { return cmp.Compare(b.VA, va) })
		return i
	}
	i := from(limit)
	return f.contexts[i:max(i, min(from(base), i+maxLiveBlocks))]
}

// switchedOut reports whether a thread in that state left its registers in a
// switch frame.
func switchedOut(state uint8) bool {
	switch state {
	case stateReady, stateStandby, stateWaiting, stateTransition, stateDeferredReady, stateProcessInSwap, stateLive:
		return true
	}
	return false
}
