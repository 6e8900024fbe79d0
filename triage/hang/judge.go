package hang

import (
	"slices"

	"dumptriage/triage"
)

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
		a.atRoot(v, firstRoot(v))
	case a.holdingUp(v) != nil:
		v.State = Blocked
		a.atRoot(v, a.holdingUp(v))
	case a.first(ClassGC) >= 0:
		v.State, v.Subject = GCSuspension, a.first(ClassGC)
		a.atRoot(v, firstRoot(v))
	case a.starvedPool() >= 0:
		v.State, v.Subject = PoolStarved, a.starvedPool()
		if a.inc.System.CPUCount == 0 {
			v.Confidence = Low
		}
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

// holdingUp is the root that holds up most threads, nil when there is none. Only to
// wait for a thread to end holds nobody up, unless windows wait with it.
func (a *analysis) holdingUp(v *Verdict) *Root {
	if r := firstRoot(v); r == nil || a.waits[r.Waiters[0]].Class == ClassGC {
		return nil
	}
	for i := range v.Roots {
		r := &v.Roots[i]
		if slices.ContainsFunc(r.Waiters, func(k int) bool {
			w := &a.waits[k]
			return w.Class != ClassGC && (w.Has(roleGUI) || !a.joins(w))
		}) {
			return r
		}
	}
	return nil
}

// starvedPool is the first thread of the .NET thread pool that waits for a task, when
// all of the pool's threads wait and most of them for tasks, which may need the pool
// themselves; else -1. A pool of fewer threads than processors starts more at once, and
// pools of several processes are not told apart.
func (a *analysis) starvedPool() int {
	if a.manyProcesses() {
		return -1
	}
	first, pool, tasks := -1, 0, 0
	for i := range a.waits {
		w := &a.waits[i]
		if !w.Has(roleNetPool) {
			continue
		}
		switch pool++; {
		case w.Class.Idle(), w.Class == ClassUnknown, w.Class == ClassRunning, w.Class == ClassSpinning, w.Class == ClassCrashed, w.Class == ClassBreakpoint:
			return -1 // one that can do work, or may
		case w.Class == ClassTask:
			if tasks++; first < 0 {
				first = i
			}
		}
	}
	if pool < max(2, int(a.inc.System.CPUCount)) || 2*tasks <= pool {
		return -1
	}
	return first
}

// joins reports whether a thread waits for nothing but that others end.
func (a *analysis) joins(w *Wait) bool {
	if w.Class == ClassThread {
		return true
	}
	return w.Object.Kind == KindHandles && !slices.ContainsFunc(w.Object.Handles, func(h Handle) bool { return h.Listed == nil || h.Listed.Type != "Thread" })
}

func firstRoot(v *Verdict) *Root {
	if len(v.Roots) == 0 {
		return nil
	}
	return &v.Roots[0]
}

// atRoot moves the subject to a root.
func (a *analysis) atRoot(v *Verdict, r *Root) {
	if r == nil {
		return
	}
	v.Subject, v.Confidence = r.Thread, Low
	for _, i := range r.Waiters { // one that is sure is enough
		for _, o := range a.waits[i].owners() {
			if o.Index == v.Subject && o.Confidence.rank() > v.Confidence.rank() {
				v.Confidence = o.Confidence
			}
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
