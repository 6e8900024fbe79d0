package scrub

import (
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/triage"
)

// Difference is a frame that does not come out as it was.
type Difference struct {
	Thread uint32
	// Processor is the number of the processor whose stack it was, nil for a thread's.
	Processor *uint32
	Half      string // "user", "handler", "wow64", "kernel", "callback 0" ...; "" when it is about no thread
	Frame     int    // -1 when it is not about one frame
	What      string
}

func (d Difference) String() string {
	if d.Half == "" {
		return d.What
	}
	who := fmt.Sprintf("thread %d (%#x)", d.Thread, d.Thread)
	if d.Processor != nil {
		who = fmt.Sprintf("processor %d", *d.Processor)
	}
	if d.Frame < 0 {
		return fmt.Sprintf("%s, %s half: %s", who, d.Half, d.What)
	}
	return fmt.Sprintf("%s, %s half, frame %d: %s", who, d.Half, d.Frame, d.What)
}

// namedHalf is a half, nil when there is none, and what it is called.
type namedHalf struct {
	name string
	*triage.Half
}

// walked is what was walked of a thread, or of a processor that ran none that is known.
type walked struct {
	id     uint32
	pid    uint32  // of the thread's process, 0 when it is not told
	cpu    *uint32 // the processor, nil when it is a thread's
	key    string  // of the same one in another incident
	halves []namedHalf
	bounds []stackBounds
}

type stackBounds struct {
	lo, hi uint64
	arch   dump.Arch
}

// bounded reports whether the frames from lo to hi lie in bounds that the dump gives.
func (w *walked) bounded(lo, hi uint64) bool {
	return slices.ContainsFunc(w.bounds, func(b stackBounds) bool { return lo >= b.lo && hi <= b.hi })
}

// differs tells of a difference.
func (w *walked) differs(half string, frame int, what string) Difference {
	return Difference{w.id, w.cpu, half, frame, what}
}

// walksOf lists what was walked.
func walksOf(inc *triage.Incident) (out []walked) {
	for i := range inc.Threads {
		t := &inc.Threads[i]
		w := walked{id: t.ID, key: fmt.Sprintf("thread %d", t.ID), halves: []namedHalf{
			{"user", t.User}, {"handler", t.Handler}, {"wow64", t.Wow64}, {"kernel", t.Kernel}}}
		for k := range t.Callbacks {
			c := &t.Callbacks[k]
			w.halves = append(w.halves, namedHalf{fmt.Sprintf("callback %d", k), c.Kernel})
			w.bounds = append(w.bounds, stackBounds{c.StackLimit, c.StackBase, inc.System.Arch})
		}
		arch := inc.System.Arch // of the stack with the bounds: a 64-bit dump has 32-bit ones, too
		if t.User != nil && len(t.User.Frames) > 0 && t.User.Frames[0].SP >= t.StackLimit && t.User.Frames[0].SP <= t.StackBase {
			arch = t.User.Registers.Arch
		}
		w.bounds = append(w.bounds, stackBounds{t.StackLimit, t.StackBase, arch})
		if k := t.KernelInfo; k != nil {
			w.pid = k.PID
			w.bounds = append(w.bounds, stackBounds{k.StackLimit, k.StackBase, inc.System.Arch})
		}
		out = append(out, w)
	}
	for i := range inc.CPUs {
		if c := &inc.CPUs[i]; c.Thread < 0 {
			out = append(out, walked{id: c.ThreadID, cpu: &c.Number, key: fmt.Sprintf("processor %d", c.Number), halves: []namedHalf{{"kernel", c.Kernel}, {"user", c.User}}})
		}
	}
	return out
}

// compare compares the incident of the new dumps with that of the old ones.
func (s *scrubber) compare(inc *triage.Incident, res *Result) (differs []mismatch) {
	res.Frames, res.Differences = 0, nil
	now := walksOf(inc)
	for i := range s.walks {
		old := &s.walks[i]
		if i >= len(now) || now[i].key != old.key {
			res.Differences = append(res.Differences, old.differs("user", -1, "the thread is missing"))
			continue
		}
		before := len(res.Differences)
		for k, h := range old.halves {
			var other *triage.Half
			if k < len(now[i].halves) {
				other = now[i].halves[k].Half
			}
			if h.Half != nil {
				res.Frames += len(h.Frames)
			}
			if frame, what := compareHalves(h.Half, other); what != "" {
				res.Differences = append(res.Differences, old.differs(h.name, frame, what))
				if len(res.Differences) == before+1 { // the first of the thread
					differs = append(differs, mismatch{i, h.Half, frame})
				}
			}
		}
		if i < len(s.inc.Threads) && i < len(inc.Threads) && s.inc.Threads[i].Stitched != inc.Threads[i].Stitched && len(res.Differences) == before {
			res.Differences = append(res.Differences, old.differs("kernel", -1, "the halves are joined in one dump only"))
			differs = append(differs, mismatch{i, s.inc.Threads[i].Kernel, -1})
		}
	}
	for i := len(s.walks); i < len(now); i++ {
		res.Differences = append(res.Differences, now[i].differs("user", -1, "the thread is in the new dump only"))
	}
	return differs
}

// compareHalves returns the first difference, "" when there is none.
func compareHalves(old, now *triage.Half) (frame int, what string) {
	if old == nil || now == nil {
		if old != now {
			return -1, "there is one in one dump only"
		}
		return -1, ""
	}
	for i := range min(len(old.Frames), len(now.Frames)) {
		if what := compareFrames(&old.Frames[i], &now.Frames[i]); what != "" {
			return i, what
		}
	}
	switch {
	case len(old.Frames) != len(now.Frames):
		return min(len(old.Frames), len(now.Frames)), fmt.Sprintf("%d frames became %d", len(old.Frames), len(now.Frames))
	case old.Stop.Reason != now.Stop.Reason:
		return -1, fmt.Sprintf("it ended by %s and ends by %s", old.Stop.Reason, now.Stop.Reason)
	}
	return -1, ""
}

// span is a part of a stack.
type span struct{ lo, hi uint64 }

// mismatch is where the first half of a thread that differs begins to.
type mismatch struct {
	thread int          // index
	half   *triage.Half // of the dump as it is, nil when there was none
	frame  int          // negative when it is not about one frame
}

// step is the part of the stack in which the frame was found, from the one before on.
func (m mismatch) step() (span, bool) {
	const beyond = 0x20  // a return address and what lies around it
	const onward = 0x400 // where there is no further frame
	if m.half == nil || len(m.half.Frames) == 0 {
		return span{}, false
	}
	last := len(m.half.Frames) - 1
	if m.frame < 0 || m.frame > last {
		lo := m.half.Frames[last].SP
		return span{lo, lo + onward}, true
	}
	lo, hi := m.half.Frames[max(m.frame-1, 0)].SP, m.half.Frames[m.frame].SP+beyond
	return span{lo, hi}, lo < hi
}

func compareFrames(old, now *triage.Frame) string {
	switch {
	case old.IP != now.IP:
		return fmt.Sprintf("address %#x became %#x", old.IP, now.IP)
	case old.SP != now.SP:
		return fmt.Sprintf("stack pointer %#x became %#x", old.SP, now.SP)
	case old.Method != now.Method || old.Trust != now.Trust:
		return fmt.Sprintf("found by %v (%v), now by %v (%v)", old.Method, old.Trust, now.Method, now.Trust)
	case moduleName(old.Module) != moduleName(now.Module):
		return fmt.Sprintf("module %s became %s", moduleName(old.Module), moduleName(now.Module))
	case old.Name.Function != now.Name.Function || old.Name.Offset != now.Name.Offset:
		return fmt.Sprintf("function %s+%#x became %s+%#x", old.Name.Function, old.Name.Offset, now.Name.Function, now.Name.Offset)
	}
	return ""
}

func moduleName(m *triage.Module) string {
	if m == nil || m.Module == nil {
		return "none"
	}
	return m.Name()
}
