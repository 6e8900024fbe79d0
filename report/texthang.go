package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/hang"
)

// classTexts puts into words what a thread of a class does; for those that wait
// for something that can be named the words go on with it.
var classTexts = map[hang.Class]string{
	hang.ClassUnknown:       "does what its stack does not tell",
	hang.ClassRunning:       "runs",
	hang.ClassSpinning:      "runs and runs",
	hang.ClassSystemCall:    "is in a system call",
	hang.ClassObject:        "waits for an object",
	hang.ClassObjects:       "waits for several objects",
	hang.ClassMutex:         "waits for a mutex",
	hang.ClassEvent:         "waits for an event",
	hang.ClassSemaphore:     "waits for a semaphore",
	hang.ClassTimer:         "waits for a timer",
	hang.ClassProcess:       "waits for a process to end",
	hang.ClassThread:        "waits for a thread to end",
	hang.ClassJob:           "waits for a job",
	hang.ClassCritical:      "waits for a critical section",
	hang.ClassSRW:           "waits for a slim reader/writer lock",
	hang.ClassCondition:     "waits for a condition variable",
	hang.ClassAddress:       "waits on an address",
	hang.ClassKeyedEvent:    "waits for a keyed event",
	hang.ClassInitOnce:      "waits for a one-time initialisation",
	hang.ClassBarrier:       "waits at a barrier",
	hang.ClassResource:      "waits for a resource lock",
	hang.ClassPushLock:      "waits for a push lock",
	hang.ClassRundown:       "waits for references to be given up",
	hang.ClassGate:          "waits for a gate",
	hang.ClassPaging:        "waits for a page to be read",
	hang.ClassMonitor:       "waits for a .NET monitor",
	hang.ClassTask:          "waits for a .NET task",
	hang.ClassLoaderLock:    "waits for the loader lock",
	hang.ClassGC:            "waits for a garbage collection",
	hang.ClassSleep:         "sleeps",
	hang.ClassSuspended:     "is suspended",
	hang.ClassIO:            "waits for input or output",
	hang.ClassIOCompletion:  "waits for work at a completion port",
	hang.ClassIdleWorker:    "waits for work",
	hang.ClassIdleGUI:       "waits for messages",
	hang.ClassSendMessage:   "waits for a window to handle a message",
	hang.ClassALPC:          "waits for an answer from another process or thread",
	hang.ClassRPC:           "waits for a remote procedure call",
	hang.ClassCOM:           "waits for a COM call",
	hang.ClassDebugEvent:    "waits for events of a process it debugs",
	hang.ClassDebugger:      "waits for its debugger",
	hang.ClassDebuggerBreak: "was made by a debugger to break in",
	hang.ClassExiting:       "is ending",
	hang.ClassBreakpoint:    "is at a breakpoint",
	hang.ClassCrashed:       "crashed",
}

// objectText names what is waited for; "" when it is not known.
func objectText(o *hang.Object, arch dump.Arch) string {
	if !o.Known() {
		return ""
	}
	hex := func(v uint64) string { return fmt.Sprintf("%#x", v) }
	switch o.Kind {
	case hang.KindHandle, hang.KindHandles:
		var names []string
		for i, x := range o.Handles {
			if i == 4 {
				names = append(names, fmt.Sprintf("%d more", len(o.Handles)-i))
				break
			}
			name := hex(x.Value)
			if x.Listed != nil {
				name = joinWith(" ", name, x.Listed.Type, x.Listed.Name, handleID(x.Listed.State), inBrackets(handleState(x.Listed.State)))
			}
			names = append(names, name)
		}
		if len(o.Handles) > 1 {
			quantity := "any of the handles "
			if o.WaitAll {
				quantity = "all of the handles "
			}
			return quantity + strings.Join(names, ", ")
		}
		return "handle " + strings.Join(names, "")
	case hang.KindLoader:
		return joinWith(" ", "the loader lock", hexFor(arch).known(o.Value))
	case hang.KindGC:
		return "a garbage collection"
	case hang.KindKernel:
		return "kernel object " + kernelAddress(o.Value)
	case hang.KindMonitor:
		return joinWith(" ", o.Type, hexFor(arch).addr(o.Value))
	}
	return joinWith(" ", kindTexts[o.Kind], hexFor(arch).addr(o.Value), inBrackets(placeText(o.Place)))
}

var kindTexts = map[hang.Kind]string{
	hang.KindCritical: "critical section", hang.KindSRW: "slim reader/writer lock", hang.KindCondition: "condition variable",
	hang.KindAddress: "address", hang.KindKey: "key", hang.KindWindow: "window",
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// placeText names a place in a module that is data, for which the name of code
// before it would be no name: by a symbol that begins there, else by its offset.
func placeText(f *triage.Frame) string {
	if f == nil || f.Module == nil || f.Module.Module == nil {
		return ""
	}
	module := moduleAlias(f.Module.Module)
	if f.Name.Function != "" && f.Name.Offset == 0 {
		return module + "!" + f.Name.Function
	}
	return module + plus(f.IP-f.Module.Base)
}

// evidenceTexts puts into words where facts were found.
func evidenceTexts(list []hang.Evidence, arch dump.Arch) []string {
	var out []string
	for _, e := range list {
		s := ""
		switch e.Source {
		case hang.FromCall:
			s = fmt.Sprintf("argument of the call in frame %d", e.Frame)
		case hang.FromRegister:
			s = fmt.Sprintf("%s in frame %d", arch.RegName(e.Reg), e.Frame)
		case hang.FromStack:
			s = fmt.Sprintf("argument on the stack of frame %d", e.Frame)
		case hang.FromMemory:
			s = "the lock's fields in memory"
		case hang.FromHandles:
			s = "the dump's handles"
		case hang.FromCode:
			s = "inferred from a call earlier in the owner's function"
		case hang.FromFrames:
			s = "a function on the owner's stack"
		case hang.FromKernel:
			s = "the kernel's structures"
		case hang.FromRuntime:
			s = "the .NET runtime's structures"
		}
		out = append(out, s)
	}
	return out
}

// waitDetail is what a wait has besides its object.
func waitDetail(w *hang.Wait) string {
	var parts []string
	if w.HasCPU && (w.Class == hang.ClassRunning || w.Class == hang.ClassSpinning) {
		parts = append(parts, fmt.Sprintf("used %.0f%% of a processor since it began", 100*w.CPUShare))
	}
	if l := w.Object.Lock; l != nil && !l.Locked() {
		parts = append(parts, "the lock is free in memory")
	}
	if s := slimWords(w.Object.Slim); s != "" {
		parts = append(parts, s)
	}
	if w.Owner != nil && w.Owner.Index < 0 && !w.Owner.Elsewhere {
		gone := "the dump has no thread of the owner's id"
		if w.Owner.Foreign {
			gone = "the owner's id is that of a thread of another process now"
		}
		parts = append(parts, gone)
	}
	if w.Has("finalizer") && !w.Class.Idle() && w.Class != hang.ClassUnknown {
		parts = append(parts, "the thread that runs finalizers")
	}
	for _, k := range w.Holds {
		parts = append(parts, "holds "+strings.ReplaceAll(string(k), "_", " "))
	}
	return strings.Join(parts, "; ")
}

// objectInKernel is what the kernel's structures say that a thread waits for, ""
// when they say nothing, or the thread rather sleeps or waits for work.
func objectInKernel(w *hang.Wait) string {
	if w.InKernel == nil || w.Object.Kind != hang.KindKernel && w.Object.Known() || w.Class.Idle() {
		return ""
	}
	switch w.Class {
	case hang.ClassSleep, hang.ClassSuspended:
		return ""
	}
	return kernelWaitText(w.InKernel)
}

// ownerElsewhere is an owner that is in the dump, and in none of the processes
// whose threads are shown.
func ownerElsewhere(w *hang.Wait) *dump.ThreadRef {
	if w.Owner == nil || !w.Owner.Elsewhere || w.InKernel == nil {
		return nil
	}
	return w.InKernel.Owner()
}

// waitText is what a thread does, with the object and its owner, for people.
func waitText(inc *triage.Incident, w *hang.Wait, name func(uint32) string) string {
	s := classTexts[w.Class]
	inKernel := objectInKernel(w)
	if inKernel != "" {
		s = "waits for " + inKernel
	} else if o := objectText(&w.Object, inc.System.Arch); o != "" {
		switch w.Object.Kind {
		case hang.KindLoader, hang.KindGC:
			s = "waits for " + o
		case hang.KindHandle, hang.KindHandles, hang.KindWindow, hang.KindMonitor:
			s += ": " + o
		case hang.KindAddress, hang.KindKey:
			if w.Class == hang.ClassAddress || w.Class == hang.ClassKeyedEvent {
				s = "waits for " + o
			} else { // what is at the address is in the class
				s += ": " + o
			}
		default:
			s = "waits for " + o
		}
	}
	elsewhere := ownerElsewhere(w)
	switch {
	case elsewhere != nil:
		s += ", held by thread " + refText(elsewhere)
	case w.Owner != nil && w.Class == hang.ClassThread:
		if inKernel == "" && !namesThread(&w.Object) {
			s += ", thread " + name(w.Owner.ThreadID)
		}
	case w.Owner != nil:
		held := ", held by thread "
		if w.Owner.Confidence == hang.Low {
			held = ", probably held by thread "
		}
		if w.Class == hang.ClassGC {
			held = ", done by thread "
		}
		s += held + name(w.Owner.ThreadID)
	}
	if d := waitDetail(w); d != "" {
		s += " (" + d + ")"
	}
	return s
}

// hangNames writes a thread's id as the text does.
func hangNames(inc *triage.Incident) func(uint32) string {
	p := pid(inc)
	return func(id uint32) string {
		if p == nil {
			return fmt.Sprintf("%x", id)
		}
		return fmt.Sprintf("%x.%x", *p, id)
	}
}

// heldUp says how many threads wait, at once or behind others, for what a thread does.
func heldUp(n int) string {
	if n == 1 {
		return "1 thread is held up"
	}
	return fmt.Sprintf("%d threads are held up", n)
}

// hangReason is one sentence on the state of the process.
func hangReason(inc *triage.Incident, v *hang.Verdict) string {
	name := hangNames(inc)
	subject := ""
	if v.Subject >= 0 {
		subject = fmt.Sprintf("thread %s %s", name(inc.Threads[v.Subject].ID), waitText(inc, &v.Waits[v.Subject], name))
	}
	waiters := func(n int) string {
		if n == 1 {
			return "1 thread waits"
		}
		return fmt.Sprintf("%d threads wait", n)
	}
	switch v.State {
	case hang.Deadlock, hang.Possible:
		verb := "wait for each other"
		if v.State == hang.Possible {
			verb = "seem to wait for each other"
		}
		var ids []string
		for k, i := range v.Cycles[0] {
			if k == maxChainLines {
				ids = append(ids, fmt.Sprintf("%d more", len(v.Cycles[0])-k))
				break
			}
			ids = append(ids, name(inc.Threads[i].ID))
		}
		return fmt.Sprintf("threads %s %s", strings.Join(ids, ", "), verb)
	case hang.SelfDeadlock:
		return "a thread waits for itself: " + subject
	case hang.Blocked, hang.LoaderLock, hang.GCSuspension:
		for _, r := range v.Roots {
			if r.Thread == v.Subject {
				return heldUp(len(r.Waiters)) + " by another: " + subject
			}
		}
	case hang.Waiting, hang.Active:
		switch {
		case v.Subject < 0:
			return "no thread is seen to hold up others"
		case len(inc.Threads) > 1:
			return "no thread is seen to hold up others; " + subject
		}
	case hang.Idle:
		return "nothing seems to hang: " + idleWords(v)
	case hang.NoThreads:
		return "the stacks do not tell what the threads do"
	case hang.PoolStarved:
		return poolWords(v) + ": " + subject
	case hang.GUIBlocked:
		return "a thread with windows does not look at its messages: " + subject
	case hang.Contention:
		return waiters(len(v.Contended[0].Waiters)) + " for one lock whose owner is not known: " + subject
	}
	return subject
}

// poolWords count the threads of a .NET thread pool that starves.
func poolWords(v *hang.Verdict) string {
	pool, tasks := 0, 0
	for i := range v.Waits {
		if w := &v.Waits[i]; w.Has("net_pool") {
			pool++
			if w.Class == hang.ClassTask {
				tasks++
			}
		}
	}
	return fmt.Sprintf("all %d threads of the .NET pool wait, %d of them for tasks, which may need the pool", pool, tasks)
}

// idleWords says how sure it is that every thread waits for work.
func idleWords(v *hang.Verdict) string {
	unknown := 0
	for i := range v.Waits {
		if v.Waits[i].Class == hang.ClassUnknown {
			unknown++
		}
	}
	if unknown == 0 {
		return "every thread waits for work"
	}
	return fmt.Sprintf("every thread whose stack tells waits for work; %d of %d do not tell", unknown, len(v.Waits))
}

// maxThreadLines caps the threads that the verdict lists, maxChainLines those of
// its chain.
const (
	maxThreadLines = 32
	maxChainLines  = 8
	maxBriefLines  = 4 // of the chain, where the whole is to stay below 2 KB
)

// saysNothing reports whether the threads of an incident add nothing to what it
// is: a crash, or a stopped system, in which nothing hangs.
func saysNothing(inc *triage.Incident, v *hang.Verdict) bool {
	return v == nil || len(v.Waits) == 0 || (inc.Crash != nil || inc.BugCheck != nil && !inc.BugCheck.Live) && !v.Hangs()
}

// hang writes what the threads do to each other: the cycle or the chain, then
// every other thread that does not just wait for work in a line.
func (t *text) hang(inc *triage.Incident, v *hang.Verdict, brief bool) {
	if saysNothing(inc, v) {
		return
	}
	t.line(sgrBold, "Threads: %s", clean(joinWith(", ", strings.ReplaceAll(string(v.State), "_", " "), string(v.Confidence)+" confidence")))
	chain := v.Chain()
	if len(v.Cycles) == 0 && len(chain) == 1 {
		chain = nil // listed with the others
	}
	lines, width := maxChainLines, 1<<10
	if brief {
		lines, width = maxBriefLines, briefWidth
	}
	for k, i := range chain {
		if k == lines {
			t.line(sgrDim, "     ... %d more threads in the chain", len(chain)-k)
			break
		}
		mark := "  -> "
		if k == 0 {
			mark = "     "
		}
		t.line(sgrRed, "%s%s", mark, cut(t.threadLine(inc, v, i), width))
		if !brief {
			t.evidence(inc, &v.Waits[i])
		}
	}
	if !brief {
		t.otherThreads(inc, v, chain)
	}
	if n := v.Unresolved; n > 0 {
		t.line(sgrYellow, "     what %d threads wait for was not looked for to the end: there are too many", n)
	}
}

func (t *text) threadLine(inc *triage.Incident, v *hang.Verdict, i int) string {
	th := &inc.Threads[i]
	name := ""
	if th.Name != "" {
		name = " \"" + th.Name + "\""
	}
	return clean("thread " + t.idOf(th) + name + " " + waitText(inc, &v.Waits[i], t.threadID))
}

// otherThreads lists the threads that are not in the chain; of those that wait
// for work, or whose stack tells nothing, the number is enough.
func (t *text) otherThreads(inc *triage.Incident, v *hang.Verdict, chain []int) {
	listed, left, idle, unknown := 0, 0, 0, 0
	inChain := map[int]bool{}
	for _, i := range chain {
		inChain[i] = true
	}
	for i := range v.Waits {
		switch c := v.Waits[i].Class; {
		case inChain[i]:
		case c.Idle():
			idle++
		case c == hang.ClassUnknown:
			unknown++
		case listed == maxThreadLines:
			left++
		default:
			listed++
			t.line("", "     %s", t.threadLine(inc, v, i))
		}
	}
	for _, more := range []struct {
		n         int
		one, many string
	}{{left, "more thread", "more threads"}, {idle, "thread waits for work", "threads wait for work"}, {unknown, "thread's stack does not tell what it does", "threads' stacks do not tell what they do"}} {
		switch {
		case more.n == 1:
			t.line(sgrDim, "     1 %s", more.one)
		case more.n > 1:
			t.line(sgrDim, "     %d %s", more.n, more.many)
		}
	}
}

// evidence writes how an object and its owner are known.
func (t *text) evidence(inc *triage.Incident, w *hang.Wait) {
	if list := evidenceTexts(w.Object.Evidence, inc.System.Arch); len(list) > 0 {
		t.line(sgrDim, "            object: %s", strings.Join(list, "; "))
	}
	if w.Owner != nil {
		t.line(sgrDim, "            owner:  %s (%s confidence)", strings.Join(evidenceTexts(w.Owner.Evidence, inc.System.Arch), "; "), w.Owner.Confidence)
	}
}

// maxHangStacks caps the stacks that the verdict shows.
const maxHangStacks = 8

// hangStacks writes the stacks of the threads that the verdict is about.
func (t *text) hangStacks(inc *triage.Incident, v *hang.Verdict) {
	if saysNothing(inc, v) {
		return
	}
	for k, i := range v.Chain() {
		if i == inc.Crashing {
			continue // shown already
		}
		if k == maxHangStacks {
			break
		}
		t.line("", "")
		t.thread(inc, i)
	}
}
