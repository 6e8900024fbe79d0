package hang

import (
	"cmp"
	"slices"
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
	PoolStarved  State = "pool_starvation"     // all threads of the .NET pool wait, most of them for what only the pool can do
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
	case Deadlock, Possible, SelfDeadlock, Orphaned, LoaderLock, Blocked, GCSuspension, PoolStarved, GUIBlocked, Contention, Spinning:
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
		if !w.Object.Known() || w.Object.Kind == KindHandles || w.Class == ClassThread || !w.Class.lock() && w.Owner == nil && w.Class != ClassGC {
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
