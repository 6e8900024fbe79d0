package kdump

import (
	"iter"

	"dumptriage/dump"
)

// KTHREAD_STATE values, and the one that the live triage writer puts in.
const (
	stateReady         = 1
	stateRunning       = 2
	stateStandby       = 3
	stateWaiting       = 5
	stateTransition    = 6
	stateDeferredReady = 7
	stateProcessInSwap = 9
	stateLive          = 0xff
)

// Threads implements dump.Source. There are no lists to walk in a triage dump:
// the threads are the header's copy and every data block that is an ETHREAD, in a
// live dump in the order in which they were captured. When none is there but the
// header has registers, one thread without identity carries them.
func (f *File) Threads() []dump.Thread {
	f.threadsOnce.Do(f.readThreads)
	return f.threads
}

func (f *File) readThreads() {
	f.ThreadStatus() // notes the threads that could not be captured
	seen := map[uint64]bool{}
	add := func(r *record) {
		if !seen[r.va] {
			seen[r.va] = true
			f.threads = append(f.threads, f.newThread(r))
		}
	}
	if f.thread != nil {
		if f.isThread(f.thread) {
			add(f.thread)
		} else {
			f.damage(&dump.Error{Code: dump.BadRecord, Stream: "ETHREAD", Offset: f.thread.off, Size: int64(len(f.thread.b)),
				Msg: "what the header points to is not a thread"})
		}
	}
	for r := range f.threadBlocks() {
		add(r)
	}
	if f.full != nil && f.kd != nil {
		for r := range f.allThreads() {
			add(r)
		}
	}
	for _, p := range f.processors() {
		if p.current == 0 || seen[p.current] {
			continue
		}
		if r := f.recordAt(p.current, f.threadSize()); r != nil && f.isThread(r) {
			add(r)
		}
	}
	if len(f.threads) == 0 {
		f.addNamelessThread()
	}
}

// addNamelessThread keeps the registers of the header when nobody knows whose
// they are.
func (f *File) addNamelessThread() {
	regs, source, ok := f.startContext()
	if !ok {
		return
	}
	f.threads = append(f.threads, dump.Thread{Context: regs, ContextSource: source,
		Kernel: &dump.KernelThread{CPU: -1, Note: "the dump does not say which thread these registers belong to"}})
}

func (f *File) threadSize() int {
	if f.kd == nil || f.kd.thread.size < minThread || f.kd.thread.size > maxObject {
		return 0
	}
	return f.kd.thread.size
}

// threadBlocks yields the data blocks that are ETHREADs.
func (f *File) threadBlocks() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		size := f.threadSize()
		for b := range f.blocksOfSize(size) {
			if r := f.recordOfBlock(b, size); r != nil && f.isThread(r) && !yield(r) {
				return
			}
		}
	}
}

// stackBounds reads the kernel stack's limit and base and says whether they can
// be those of a stack.
func (f *File) stackBounds(r *record) (limit, base uint64, ok bool) {
	k, row := &f.kd.thread, f.offsets()
	limit, ok1 := r.pointer(known(k.stackLimit, row.stackLimit))
	base, ok2 := r.pointer(known(k.stackBase, row.stackBase))
	const page, largest = 0x1000, 0x100000
	ok = ok1 && ok2 && limit < base && limit%page == 0 && base%page == 0 && base-limit <= largest && kernelAddress(r.ptr, limit)
	return limit, base, ok
}

func known(offsets ...int) int {
	for _, off := range offsets {
		if off > 0 {
			return off
		}
	}
	return 0
}

// isThread tells an ETHREAD from other bytes of its size.
func (f *File) isThread(r *record) bool {
	if f.kd == nil || r.dispatcherType() != objectThread {
		return false
	}
	limit, base, ok := f.stackBounds(r)
	initial, ok2 := r.pointer(f.kd.thread.initialStack)
	return ok && ok2 && initial > limit && initial <= base && f.kernelPointer(r, f.kd.thread.apcProcess) != 0
}

func (f *File) newThread(r *record) dump.Thread {
	k, row := &f.kd.thread, f.offsets()
	kt := &dump.KernelThread{ETHREAD: r.va, CPU: -1, Live: f.live}
	t := dump.Thread{Kernel: kt}
	kt.StackLimit, kt.StackBase, _ = f.stackBounds(r)
	t.StackLimit, t.StackBase = kt.StackLimit, kt.StackBase
	kt.KernelStack, _ = r.pointer(k.kernelStack)
	kt.InitialStack, _ = r.pointer(k.initialStack)
	if v, ok := r.uint(k.state, 1); ok {
		kt.State = uint8(v)
	}
	if v, ok := r.uint(known(k.waitReason, row.waitReason), 1); ok {
		kt.WaitReason = uint8(v)
	}
	if v, ok := r.pointer(k.teb); ok && !kernelAddress(r.ptr, v) {
		t.TEB = v
	}
	// The owner; ApcState.Process is the process it is attached to.
	if kt.EPROCESS = f.kernelPointer(r, row.owner); kt.EPROCESS == 0 {
		kt.EPROCESS = f.kernelPointer(r, k.apcProcess)
	}
	if id, ok := r.clientIDAt(f.identities().cid); ok {
		t.ID, kt.PID = id.tid, id.pid
	} else if kt.Idle = f.isIdle(r.va); !kt.Idle {
		kt.Note = "its ids were not found"
	}
	t.StartAddress = firstPointer(r, row.win32Start, row.start)
	if created := f.believableTime(r, row.threadCreated); !created.IsZero() {
		t.Times = &dump.ThreadTimes{Created: created}
	}
	f.describeThread(&t, r)
	f.setContext(&t, r)
	f.setTrapFrame(kt, r, t.TEB)
	kt.Outer = f.outerSegments(kt)
	kt.Wait = f.threadWait(r, kt)
	return t
}

func firstPointer(r *record, offsets ...int) uint64 {
	for _, off := range offsets {
		if v, ok := r.pointer(off); ok && v != 0 {
			return v
		}
	}
	return 0
}
