package hang

import (
	"slices"

	"dumptriage/triage"
	"dumptriage/unwind"
)

// Motion is what a thread did between the dumps of a series. Its text is part of
// the JSON contract.
type Motion string

// The motions.
const (
	Stuck    Motion = "stuck"    // the same stack in every dump, and no time used where times are known
	Waits    Motion = "waits"    // the same, at a wait for work
	Returned Motion = "returned" // the same stack, but it ran meanwhile
	Moved    Motion = "moved"    // another stack
	Busy     Motion = "busy"     // used half of a processor or more
	Started  Motion = "started"  // not in the first dump
	Ended    Motion = "ended"    // not in the last dump
	Unseen   Motion = "unknown"  // no stack to compare, or all dumps show the same moment
)

// still reports whether a thread stood where it stood.
func (st *SeriesThread) still() bool {
	return st.Motion == Stuck || st.Motion == Waits || st.Motion == Unseen
}

// The part of a processor that makes a thread busy.
const busyShare = 0.5

// move compares a thread's stacks and times.
func (s *Series) move(st *SeriesThread) {
	first, last := st.At[0], st.At[len(st.At)-1]
	s.cpu(st)
	switch {
	case first < 0:
		st.Motion = Started
		return
	case last < 0:
		st.Motion = Ended
		return
	}
	same, known, before := true, true, -1
	for k, i := range st.At {
		if i < 0 {
			same = false
			continue
		}
		h := halfOf(&s.Incidents[k].Threads[i])
		if h == nil {
			known = false
			continue
		}
		if before < 0 {
			st.Common = len(h.Frames)
		} else if prev := halfOf(&s.Incidents[before].Threads[st.At[before]]); prev != nil {
			c := common(prev.Frames, h.Frames)
			st.Common = min(st.Common, c)
			same = same && (c == len(h.Frames) && c == len(prev.Frames) || samePlace(prev, h) || s.sameWait(before, st.At[before], k, i))
		}
		before = k
	}
	switch {
	case st.HasCPU && s.Elapsed > 0 && st.Share >= busyShare:
		st.Motion = Busy
	case !known:
		st.Motion = Unseen
	case !same:
		st.Motion = Moved
	case st.HasCPU && st.CPU > 0:
		st.Motion = Returned
	case s.class(st).Idle():
		st.Motion = Waits
	default:
		st.Motion = Stuck
	}
}

// class is a thread's class in the last dump that has it.
func (s *Series) class(st *SeriesThread) Class {
	for k, i := range slices.Backward(st.At) {
		if i >= 0 {
			return s.Verdicts[k].Waits[i].Class
		}
	}
	return ClassUnknown
}

// cpu is the time that a thread used between the dumps.
func (s *Series) cpu(st *SeriesThread) {
	from, to := -1, -1
	for k, i := range st.At {
		if i >= 0 && s.Incidents[k].Threads[i].Times != nil && !s.Incidents[k].Threads[i].Times.Created.IsZero() {
			if from < 0 {
				from = k
			}
			to = k
		}
	}
	if from == to {
		return
	}
	a, b := s.Incidents[from].Threads[st.At[from]].Times, s.Incidents[to].Threads[st.At[to]].Times
	st.CPU = b.Kernel + b.User - a.Kernel - a.User
	if st.CPU < 0 {
		st.CPU = 0
		return
	}
	st.HasCPU = true
	if d := s.Incidents[to].Captured.Sub(s.Incidents[from].Captured); d > 0 {
		st.Share = st.CPU.Seconds() / d.Seconds()
	}
}

// halfOf is the half that tells where a thread stands: of a dump pair the user
// half, since capturing changes the kernel half.
func halfOf(t *triage.Thread) *triage.Half {
	switch {
	case t.User != nil && len(t.User.Frames) > 0:
		return t.User
	case t.Kernel != nil && len(t.Kernel.Frames) > 0:
		return t.Kernel
	}
	return nil
}

// common counts the outermost frames that two stacks share: the same address at
// the same place of the stack.
func common(a, b []triage.Frame) int {
	n := 0
	for n < len(a) && n < len(b) {
		x, y := &a[len(a)-1-n], &b[len(b)-1-n]
		if x.IP != y.IP || x.SP != y.SP {
			break
		}
		n++
	}
	return n
}

// samePlace reports whether two stacks are the same as far as both are certain: of
// dumps of which one lacks memory or images the outer frames differ though nothing
// moved. Stacks that are certain to their ends must be the same to their ends.
func samePlace(a, b *triage.Half) bool {
	x, y := certain(a), certain(b)
	if x == len(a.Frames) && a.Stop.Reason == unwind.StopEndOfStack && y == len(b.Frames) && b.Stop.Reason == unwind.StopEndOfStack && x != y {
		return false
	}
	for i := range min(x, y) {
		if a.Frames[i].IP != b.Frames[i].IP || a.Frames[i].SP != b.Frames[i].SP {
			return false
		}
	}
	return min(x, y) > 0
}

// certain counts the frames before the first that nothing proves.
func certain(h *triage.Half) int {
	if i := slices.IndexFunc(h.Frames, func(f triage.Frame) bool { return !f.Certain() }); i >= 0 {
		return i
	}
	return len(h.Frames)
}

// sameWait reports whether a thread waits in two dumps for one lock of one owner, and
// was called from the same place: some waits look again from time to time.
func (s *Series) sameWait(k, i, l, j int) bool {
	v, w := &s.Verdicts[k].Waits[i], &s.Verdicts[l].Waits[j]
	if v.Class != w.Class || !v.Class.lock() || v.Object.Value == 0 || v.Object.Value != w.Object.Value || v.Object.Kind != w.Object.Kind ||
		v.Owner == nil || w.Owner == nil || v.Owner.ThreadID != w.Owner.ThreadID || v.Kernel || w.Kernel || v.Caller < 0 || w.Caller < 0 {
		return false
	}
	a, b := s.Incidents[k].Threads[i].User.Frames[v.Caller:], s.Incidents[l].Threads[j].User.Frames[w.Caller:]
	return len(a) == len(b) && common(a, b) == len(a)
}
