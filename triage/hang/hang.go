package hang

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/triage"
)

// analysis is the state of one Of call.
type analysis struct {
	inc     *triage.Incident
	rules   *Rules
	space   *triage.View // of the thread's user half, see enter; may be nil
	at      int          // index of the thread that is looked at
	handles map[uint64]*dump.Handle
	byID    map[uint32]int // index in inc.Threads

	byETHREAD map[uint64]int          // the same
	found     map[[2]string]*ruleHits // by module and function
	sites     map[siteKey]*callSite
	armSites  map[siteKey]*armSite
	kept      int           // instructions in sites and armSites
	decoded   []instruction // where code is decoded, at most maxFunction of them
	waits     []Wait

	work       int  // that is left
	short      bool // something was not done for want of it
	unresolved int  // threads for which that is so
}

// Looking for objects and owners costs walks and the decoding of code: maxWork
// bounds it, in bytes of code and about as much of other things, and maxKept the
// instructions and calls that stay decoded. Threads beyond are classed all the same, and
// the verdict counts them.
const (
	maxWork   = 4 << 20
	frameWork = 8 // to walk one frame again
	maxKept   = 1 << 14
)

// afford takes from the work that is left; false when that is not enough.
func (a *analysis) afford(n int) bool {
	if n > a.work {
		a.short = true
		return false
	}
	a.work -= n
	return true
}

// Of says what the threads of an incident wait for and whether it hangs. r may
// be nil for the built-in rules.
func Of(inc *triage.Incident, r *Rules) *Verdict {
	if r == nil {
		r, _ = NewRules(nil)
	}
	a := &analysis{inc: inc, rules: r, sites: map[siteKey]*callSite{}, work: maxWork, byID: map[uint32]int{}, handles: map[uint64]*dump.Handle{}, byETHREAD: map[uint64]int{}, found: map[[2]string]*ruleHits{}}
	for i := range inc.Handles {
		a.handles[inc.Handles[i].Value] = &inc.Handles[i]
	}
	for i := range inc.Threads {
		t := &inc.Threads[i]
		if t.KernelInfo != nil && t.KernelInfo.ETHREAD != 0 {
			a.byETHREAD[t.KernelInfo.ETHREAD] = i
		}
		if t.ID != 0 {
			if _, twice := a.byID[t.ID]; !twice {
				a.byID[t.ID] = i
			}
		}
	}
	a.waits = make([]Wait, len(inc.Threads))
	usual := a.usualSuspendCount()
	for i := range inc.Threads {
		t := &inc.Threads[i]
		w := &a.waits[i]
		*w = a.classify(t)
		a.times(w, t)
		a.short, a.at = false, i
		a.enter(t)
		a.resolve(w, t)
		a.fromRuntime(w, t)
		if a.short {
			a.unresolved++
		}
		a.fromKernel(w, t)
		a.override(w, i, usual)
	}
	a.heldByFrames()
	a.heldByCode()
	return a.verdict()
}

// siteKey is a return address in an address space.
type siteKey struct {
	space *triage.View
	ret   uint64
}

// enter makes the memory of a thread's process what is read. Full kernel dumps have
// many processes, and an address says something in its own only.
func (a *analysis) enter(t *triage.Thread) {
	if a.space = a.inc.UserSpace; a.space != nil || t.User == nil {
		return
	}
	if a.space = t.User.View(); a.space == nil {
		a.space = a.inc.KernelSpace
	}
}

// index finds a thread of the process of the one that is looked at by its id, -1
// when there is none. foreign reports that a thread of another process has the id:
// what memory of this process says of a thread is not about that one.
func (a *analysis) index(id uint32) (i int, foreign bool) {
	i, ok := a.byID[id]
	switch {
	case !ok:
		return -1, false
	case !a.together(i, a.at):
		return -1, true
	}
	return i, false
}

func (a *analysis) ownerByID(id uint32, ev Evidence) *Owner {
	i, foreign := a.index(id)
	return &Owner{ThreadID: id, Index: i, Foreign: foreign, Evidence: []Evidence{ev}, Confidence: High}
}

// resolve finds out which object a thread waits for and who holds it.
func (a *analysis) resolve(w *Wait, t *triage.Thread) {
	if t.User == nil || len(w.matches) == 0 {
		return
	}
	last := w.matches[len(w.matches)-1].frame
	var regs []dump.Registers
	// The outermost function names the object best; the one that the class is of
	// must have to do with it.
	for k := len(w.matches) - 1; k >= 0 && !w.Object.Known(); k-- {
		m := w.matches[k]
		// The caller's frame must be certain too: its code gives the arguments.
		if m.object == KindNone || m.frame > w.Frame || guessed(t.User.Frames[:min(m.frame+2, len(t.User.Frames))]) {
			continue
		}
		if (w.Class.lock() || w.Class == ClassTask) && m.class != w.Class && m.object != KindCritical {
			continue
		}
		if regs == nil {
			if !a.afford(frameWork * (last + 2 + maxFollowed)) {
				return
			}
			regs = t.User.FrameRegisters(last + 2 + maxFollowed)
		}
		a.resolveMatch(w, t.User, regs, m)
	}
	a.place(w)
	a.loaderLock(w, t)
}

func (a *analysis) resolveMatch(w *Wait, h *triage.Half, regs []dump.Registers, m match) {
	switch m.object {
	case KindCritical:
		a.criticalSection(w, h, regs, m)
	case KindHandle:
		a.handleObject(w, h, regs, m)
	case KindHandles:
		a.handlesObject(w, h, regs, m)
	default:
		v, ev, ok := a.argument(h, regs, m.frame, m.arg)
		if !ok || v == 0 {
			return
		}
		w.Object = Object{Kind: m.object, Value: v, Evidence: []Evidence{ev}, Confidence: Medium}
		if m.object == KindWindow {
			return
		}
		if word, err := dump.ReadPointer(a.space, h.Registers.Arch, v); err == nil {
			w.Object.Word = &word
			a.slim(w, h)
		}
	}
}

// place names the object's address where it lies in a module.
func (a *analysis) place(w *Wait) {
	switch w.Object.Kind {
	case KindHandle, KindHandles, KindWindow, KindMonitor, KindNone:
		return
	}
	if w.Object.Value == 0 || a.space.Module(w.Object.Value) == nil {
		return
	}
	f := a.space.Name(w.Object.Value)
	w.Object.Place = &f
}

// Offsets of the process environment block in a TEB and of the loader lock's
// address in that block, from public symbols.
const (
	tebPEB64, pebLoaderLock64 = 0x60, 0x110
	tebPEB32, pebLoaderLock32 = 0x30, 0xa0
)

// loaderLock recognises the loader lock among critical sections.
func (a *analysis) loaderLock(w *Wait, t *triage.Thread) {
	if w.Class != ClassCritical || w.Object.Value == 0 {
		return
	}
	if f := w.Object.Place; f != nil && f.Name.Function == "LdrpLoaderLock" && f.Name.Offset == 0 {
		w.Class, w.Object.Kind = ClassLoaderLock, KindLoader
		return
	}
	arch, teb, peb, lock := t.User.Registers.Arch, t.TEB, uint64(tebPEB64), uint64(pebLoaderLock64)
	if arch.PointerSize() == 4 {
		if t.Wow64 != nil || a.inc.System.Arch.PointerSize() == 8 {
			return // the TEB is the 64-bit one
		}
		peb, lock = tebPEB32, pebLoaderLock32
	}
	if teb == 0 || teb+peb < teb {
		return
	}
	at, err := dump.ReadPointer(a.space, arch, teb+peb)
	if err != nil || at == 0 || at+lock < at {
		return
	}
	if v, err := dump.ReadPointer(a.space, arch, at+lock); err == nil && v == w.Object.Value {
		w.Class, w.Object.Kind = ClassLoaderLock, KindLoader
	}
}

// usualSuspendCount is the suspend count that most threads have, of two as
// usual the higher: the writer of a dump stops all threads, or all but its own.
func (a *analysis) usualSuspendCount() uint32 {
	threads := map[uint32]int{}
	usual := uint32(0)
	for i := range a.inc.Threads {
		t := &a.inc.Threads[i]
		if t.Thread.Kernel != nil { // a kernel dump does not say
			continue
		}
		threads[t.SuspendCount]++
	}
	for count, n := range threads {
		if n > threads[usual] || n == threads[usual] && count > usual {
			usual = count
		}
	}
	return usual
}

// override puts what is known of a thread from elsewhere in front of what its
// stack says.
func (a *analysis) override(w *Wait, i int, usualSuspend uint32) {
	t := &a.inc.Threads[i]
	switch {
	case w.Has(roleDebuggerBreak):
		w.Class, w.Confidence = ClassDebuggerBreak, High
	case i == a.inc.Crashing && a.inc.Crash != nil && breakpoint(a.inc.Crash.Code):
		w.Class, w.Confidence = ClassBreakpoint, High
	case i == a.inc.Crashing && a.inc.Crash != nil && asked(a.inc.Crash.Code):
	case i == a.inc.Crashing:
		w.Class, w.Confidence = ClassCrashed, High
	case t.Thread.Kernel == nil && t.SuspendCount > usualSuspend:
		w.Class, w.Confidence = ClassSuspended, High
	}
}

// breakpoint reports whether an exception is a breakpoint or a single step, by
// its code (ntstatus.h), which debuggers use to stop a process.
func breakpoint(code uint32) bool {
	switch code {
	case 0x80000003, 0x80000004, 0x4000001f, 0x4000001e: // the last two of 32-bit code in a 64-bit dump
		return true
	}
	return false
}

// asked reports whether an exception only says that somebody asked for the dump, or
// that the system took it of a window that did not answer: its thread did what its
// stack shows.
func asked(code uint32) bool {
	switch code {
	case 0xcfffffff, 0x0517a7ed, 0xffffffff: // STATUS_APPLICATION_HANG; Crashpad's and Breakpad's dumps without a crash
		return true
	}
	return false
}

// The roles that mean something here.
const (
	roleGUI           = "gui"
	roleDebuggerBreak = "debugger_break"
	roleFinalizer     = "finalizer"
	roleNetPool       = "net_pool"
)

// A thread that used this share of a processor for so long is spinning.
const (
	spinShare   = 0.5
	spinSeconds = 2
)

// times adds how much of a processor a thread used since it began.
func (a *analysis) times(w *Wait, t *triage.Thread) {
	if t.Times == nil || t.Times.Created.IsZero() || a.inc.Captured.IsZero() {
		return
	}
	age := a.inc.Captured.Sub(t.Times.Created).Seconds()
	if age <= 0 {
		return
	}
	busy := (t.Times.Kernel + t.Times.User).Seconds()
	w.CPUShare, w.HasCPU = busy/age, true
	if w.Class == ClassRunning && w.CPUShare >= spinShare && busy >= spinSeconds {
		w.Class = ClassSpinning
	}
}

// process tells the processes of a kernel dump apart: their handles and the addresses
// of their locks say nothing across them. 0 beside a user dump, which is of one, and of
// a pair some threads are in that half only.
func (a *analysis) process(i int) uint64 {
	if k := a.inc.Threads[i].KernelInfo; k != nil && a.inc.UserSpace == nil {
		return k.EPROCESS
	}
	return 0
}

// together reports whether two threads are of one process, as far as that is known.
// A pair's kernel dump may have threads of another than the user dump is of.
func (a *analysis) together(i, k int) bool {
	if a.inc.UserSpace == nil {
		return a.process(i) == a.process(k)
	}
	for _, t := range []*triage.Thread{&a.inc.Threads[i], &a.inc.Threads[k]} {
		own := a.inc.Process.EPROCESS
		if info := t.KernelInfo; t.Thread.Kernel != nil && info != nil && own != 0 && info.EPROCESS != 0 && info.EPROCESS != own {
			return false
		}
	}
	return true
}

// heldByFrames makes the thread whose stack shows it to hold the loader lock, or
// to collect garbage, the owner for those that wait, when there is one such.
func (a *analysis) heldByFrames() {
	for class, kind := range map[Class]Kind{ClassLoaderLock: KindLoader, ClassGC: KindGC} {
		holders := map[uint64]int{} // by process
		for i := range a.waits {
			if !slices.Contains(a.waits[i].Holds, kind) {
				continue
			}
			p := a.process(i)
			if _, twice := holders[p]; twice {
				holders[p] = -1 // more than one: which is not known
			} else {
				holders[p] = i
			}
		}
		for i := range a.waits {
			w := &a.waits[i]
			if w.Class != class {
				continue
			}
			w.Object.Kind = kind
			if holder, ok := holders[a.process(i)]; ok && w.Owner == nil && holder >= 0 && holder != i {
				w.Owner = &Owner{ThreadID: a.inc.Threads[holder].ID, Index: holder, Confidence: Medium, Evidence: []Evidence{{Source: FromFrames, Frame: -1}}}
			}
		}
	}
}
