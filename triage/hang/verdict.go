package hang

import (
	"cmp"
	"slices"

	"dumptriage/triage"
)

// State is what the process as a whole does. Its text is part of the JSON
// contract.
type State string

// The states, the gravest first.
const (
	Deadlock     State = "deadlock"            // threads wait for each other
	Possible     State = "possible_deadlock"   // the same, with an owner that was inferred
	SelfDeadlock State = "self_deadlock"       // a thread waits for itself
	Orphaned     State = "orphaned_lock"       // the owner of a lock is gone
	LoaderLock   State = "loader_lock"         // threads wait for the loader lock
	Blocked      State = "blocked"             // threads wait for one that is itself held up, or busy
	GCSuspension State = "gc_suspension"       // threads wait for a garbage collection
	GUIBlocked   State = "gui_blocked"         // the thread of a window does not look at its messages
	Contention   State = "contention"          // several threads wait for a lock whose owner is not known
	Spinning     State = "spinning"            // a thread runs and runs
	ForProcess   State = "waiting_for_process" // the main thread waits for another process
	Waiting      State = "waiting"             // the main thread waits for something else
	Active       State = "active"              // the main thread runs
	Idle         State = "idle"                // every thread waits for work
	NoThreads    State = "unknown"             // no thread's stack says anything
)

// Verdict is what the threads of a process wait for, and what that makes of it.
type Verdict struct {
	State      State
	Confidence Confidence
	// Subject is the thread that the state is about, by index in
	// Incident.Threads: the first of a cycle, the root of blockers, the thread of
	// the window; -1 when it is about none.
	Subject int
	Waits   []Wait // by index in Incident.Threads
	// Cycles lists deadlocks, each the shortest of its threads: every thread waits
	// for the next, the last for the first; it begins with the lowest thread id.
	Cycles  [][]int
	Chains  [][]int // from a thread that nobody waits for to the end; longest first
	Roots   []Root  // those with most waiters first
	Orphans []Contended
	// Contended lists locks that several threads wait for, most waiters first.
	Contended []Contended
	Next      []Next // what would tell more
	// Unresolved counts the threads whose objects and owners were not looked for
	// to the end, because of how much that takes.
	Unresolved int
}

// Root is a thread that others wait for and that itself waits for no thread.
type Root struct {
	Thread  int
	Waiters []int // directly or through others, in order
}

// Contended is an object and who waits for it.
type Contended struct {
	Object  Object
	Class   Class
	Owner   *Owner // nil when not known
	Waiters []int
}

// Hangs reports whether the state is one that a program should not be in.
func (v *Verdict) Hangs() bool {
	switch v.State {
	case Deadlock, Possible, SelfDeadlock, Orphaned, LoaderLock, Blocked, GCSuspension, GUIBlocked, Contention, Spinning:
		return true
	}
	return false
}

// Chain returns the threads that the state is about in the order of who waits
// for whom: the cycle, or the longest chain to the root, or the subject alone.
func (v *Verdict) Chain() []int {
	switch v.State {
	case Deadlock, Possible, SelfDeadlock:
		return v.Cycles[0]
	}
	for _, c := range v.Chains {
		if c[len(c)-1] == v.Subject {
			return c
		}
	}
	if v.Subject < 0 {
		return nil
	}
	return []int{v.Subject}
}

// maxRoots and maxChains cap what a verdict lists.
const (
	maxRoots  = 256
	maxChains = 64
)

// roots lists the threads that others wait for and that wait for none, those
// with most waiters first.
func (g *graph) roots() []Root {
	var at []int
	for i := range g.out {
		if len(g.in[i]) > 0 && len(g.out[i]) == 0 {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(x, y int) int { return cmp.Compare(len(g.in[y]), len(g.in[x])) })
	var out []Root
	for _, i := range at[:min(len(at), maxRoots)] {
		out = append(out, Root{i, g.waiters(i)})
	}
	slices.SortStableFunc(out, func(x, y Root) int { return cmp.Compare(len(y.Waiters), len(x.Waiters)) })
	return out
}

// chains lists the chains from threads that nobody waits for, longest first.
func (g *graph) chains() [][]int {
	type head struct{ thread, length int }
	var heads []head
	for i := range g.out {
		if len(g.in[i]) == 0 && len(g.out[i]) > 0 {
			heads = append(heads, head{i, g.length(i)})
		}
	}
	slices.SortStableFunc(heads, func(x, y head) int { return cmp.Compare(y.length, x.length) })
	var out [][]int
	for _, h := range heads[:min(len(heads), maxChains)] {
		out = append(out, g.chain(h.thread))
	}
	return out
}

// length is about how long a chain is: a cycle counts up to the cap.
func (g *graph) length(start int) int {
	n := 1
	for v := start; n < maxChain && len(g.out[v]) > 0; n++ {
		v = g.out[v][0]
	}
	return n
}

func (a *analysis) verdict() *Verdict {
	v := &Verdict{Waits: a.waits, Subject: -1, Confidence: Medium, Unresolved: a.unresolved}
	g := newGraph(a.waits)
	id := func(i int) uint32 { return a.inc.Threads[i].ID }
	inCycle := map[int]bool{}
	for _, c := range g.components() {
		cycle := g.shortestCycle(c, id)
		if cycle == nil {
			continue
		}
		v.Cycles = append(v.Cycles, cycle)
		for _, i := range c {
			inCycle[i] = true
		}
	}
	slices.SortStableFunc(v.Cycles, func(x, y []int) int {
		return cmp.Or(-cmp.Compare(a.cycleConfidence(x).rank(), a.cycleConfidence(y).rank()), cmp.Compare(len(x), len(y)), cmp.Compare(id(x[0]), id(y[0])))
	})
	v.Roots, v.Chains = g.roots(), g.chains()
	a.contended(v)
	a.judge(v)
	if v.Unresolved > 0 && len(v.Cycles) == 0 {
		v.Confidence = Low // one of them may be the cause
	}
	a.next(v)
	return v
}

// contended groups waiting threads by the object they wait for.
func (a *analysis) contended(v *Verdict) {
	type key struct {
		process uint64 // 0 of a kernel object, which processes share
		kind    Kind
		value   uint64
	}
	groups := map[key]int{}
	var all []Contended
	for i := range a.waits {
		w := &a.waits[i]
		if !w.Object.Known() || w.Object.Kind == KindHandles || !w.Class.lock() && w.Owner == nil && w.Class != ClassGC {
			continue
		}
		k := key{a.process(i), w.Object.Kind, w.Object.Value}
		if k.kind == KindKernel {
			k.process = 0
		}
		at, ok := groups[k]
		if !ok {
			at = len(all)
			groups[k] = at
			all = append(all, Contended{Object: w.Object, Class: w.Class})
		}
		all[at].Waiters = append(all[at].Waiters, i)
		if all[at].Owner == nil {
			all[at].Owner = w.Owner
		}
	}
	slices.SortStableFunc(all, func(x, y Contended) int { return cmp.Compare(len(y.Waiters), len(x.Waiters)) })
	for _, c := range all {
		if c.Owner != nil && c.Owner.Index < 0 && !c.Owner.Elsewhere {
			v.Orphans = append(v.Orphans, c)
		}
		if len(c.Waiters) > 1 {
			v.Contended = append(v.Contended, c)
		}
	}
}

// cycleConfidence is that of its weakest owner.
func (a *analysis) cycleConfidence(cycle []int) Confidence {
	c := High
	for k, i := range cycle {
		next := cycle[(k+1)%len(cycle)]
		best := Confidence("")
		for _, o := range a.waits[i].owners() {
			if o.Index == next && o.Confidence.rank() > best.rank() {
				best = o.Confidence
			}
		}
		c = weaker(c, best)
	}
	return c
}

// judge decides on the state: the gravest thing that is proved.
func (a *analysis) judge(v *Verdict) {
	main := a.mainThread()
	switch {
	case len(v.Cycles) > 0:
		v.State, v.Subject, v.Confidence = Deadlock, v.Cycles[0][0], a.cycleConfidence(v.Cycles[0])
		if len(v.Cycles[0]) == 1 {
			v.State = SelfDeadlock
		} else if v.Confidence == Low {
			v.State = Possible
		}
	case len(v.Orphans) > 0:
		v.State, v.Subject, v.Confidence = Orphaned, v.Orphans[0].Waiters[0], v.Orphans[0].Owner.Confidence
	case a.first(ClassLoaderLock) >= 0:
		v.State, v.Subject = LoaderLock, a.first(ClassLoaderLock)
		a.atRoot(v)
	case len(v.Roots) > 0 && a.waits[v.Roots[0].Waiters[0]].Class != ClassGC:
		v.State = Blocked
		a.atRoot(v)
	case a.first(ClassGC) >= 0:
		v.State, v.Subject = GCSuspension, a.first(ClassGC)
		a.atRoot(v)
	case a.guiBlocked() >= 0:
		v.State, v.Subject = GUIBlocked, a.guiBlocked()
		v.Confidence = a.waits[v.Subject].Confidence
	case len(v.Contended) > 0:
		v.State, v.Subject = Contention, v.Contended[0].Waiters[0]
	case a.first(ClassSpinning) >= 0:
		v.State, v.Subject = Spinning, a.busiest()
	default:
		a.judgeMain(v, main)
	}
}

// atRoot moves the subject to the root that most threads wait for.
func (a *analysis) atRoot(v *Verdict) {
	if len(v.Roots) == 0 {
		return
	}
	v.Subject, v.Confidence = v.Roots[0].Thread, Low
	for _, i := range v.Roots[0].Waiters { // one that is sure is enough
		if o := a.waits[i].Owner; o != nil && o.Index == v.Subject && o.Confidence.rank() > v.Confidence.rank() {
			v.Confidence = o.Confidence
		}
	}
}

// judgeMain is the state of a process in which nobody is seen to block another.
func (a *analysis) judgeMain(v *Verdict, main int) {
	known, idle := 0, 0
	for i := range a.waits {
		switch c := a.waits[i].Class; {
		case c == ClassUnknown:
		case c.Idle(), c == ClassDebuggerBreak:
			known, idle = known+1, idle+1
		default:
			known++
		}
	}
	switch {
	case known == 0:
		v.State, v.Confidence = NoThreads, Low
	case idle == known:
		if v.State = Idle; known < len(a.waits) {
			v.Confidence = Low // the others may do anything
		}
	case a.manyProcesses():
		v.State = Waiting // no one thread stands for all
	case main >= 0:
		v.Subject, v.Confidence = main, a.waits[main].Confidence
		switch a.waits[main].Class {
		case ClassProcess:
			v.State = ForProcess
		case ClassRunning, ClassCrashed, ClassBreakpoint:
			v.State = Active
		case ClassUnknown:
			v.State, v.Confidence = NoThreads, Low
		default:
			v.State = Waiting
		}
	}
}

// manyProcesses reports whether the threads are of more than one process.
func (a *analysis) manyProcesses() bool {
	pid, any := uint32(0), false
	for i := range a.inc.Threads {
		k := a.inc.Threads[i].KernelInfo
		if k == nil || k.PID == 0 {
			continue
		}
		if any && k.PID != pid {
			return true
		}
		pid, any = k.PID, true
	}
	return false
}

// first is the first thread of a class, -1 when there is none.
func (a *analysis) first(c Class) int {
	return slices.IndexFunc(a.waits, func(w Wait) bool { return w.Class == c })
}

// guiBlocked is the first thread that has windows and waits for something else
// than messages.
func (a *analysis) guiBlocked() int {
	return slices.IndexFunc(a.waits, func(w Wait) bool {
		switch w.Class {
		case ClassUnknown, ClassRunning, ClassSpinning, ClassCrashed, ClassBreakpoint, ClassSuspended, ClassDebuggerBreak:
			return false
		}
		return w.Has(roleGUI) && !w.Class.Idle()
	})
}

// busiest is the spinning thread with the largest share of a processor.
func (a *analysis) busiest() int {
	best := -1
	for i := range a.waits {
		if w := &a.waits[i]; w.Class == ClassSpinning && (best < 0 || w.CPUShare > a.waits[best].CPUShare) {
			best = i
		}
	}
	return best
}

// mainThread is the thread that a hang is judged by when nothing else tells: of
// those that do not wait for work the one with windows, else the oldest.
func (a *analysis) mainThread() int {
	best := -1
	better := func(i, j int) bool {
		if gi, gj := a.waits[i].Has(roleGUI), a.waits[j].Has(roleGUI); gi != gj {
			return gi
		}
		return older(&a.inc.Threads[i], &a.inc.Threads[j])
	}
	for i := range a.waits {
		switch c := a.waits[i].Class; {
		case c.Idle(), c == ClassDebuggerBreak, c == ClassUnknown:
			continue
		}
		if best < 0 || better(i, best) {
			best = i
		}
	}
	return best
}

// older reports whether a thread is known to be older than one that is listed
// before it.
func older(t, u *triage.Thread) bool {
	return t.Times != nil && u.Times != nil && !t.Times.Created.IsZero() && !u.Times.Created.IsZero() && t.Times.Created.Before(u.Times.Created)
}
