package scrub

import (
	"fmt"

	"dumptriage/triage"
)

// Difference is a frame that does not come out as it was.
type Difference struct {
	Thread uint32
	Half   string // "user", "handler", "wow64"
	Frame  int    // -1 when it is not about one frame
	What   string
}

func (d Difference) String() string {
	if d.Frame < 0 {
		return fmt.Sprintf("thread %d (%#x), %s half: %s", d.Thread, d.Thread, d.Half, d.What)
	}
	return fmt.Sprintf("thread %d (%#x), %s half, frame %d: %s", d.Thread, d.Thread, d.Half, d.Frame, d.What)
}

// compare compares the incident of the new dump with that of the old one.
func (s *scrubber) compare(inc *triage.Incident, res *Result) (differs []mismatch) {
	res.Frames, res.Differences = 0, nil
	for i := range s.inc.Threads {
		old := &s.inc.Threads[i]
		if i >= len(inc.Threads) || inc.Threads[i].ID != old.ID {
			res.Differences = append(res.Differences, Difference{old.ID, "user", -1, "the thread is missing"})
			continue
		}
		now := &inc.Threads[i]
		before := len(res.Differences)
		for _, h := range []struct {
			name     string
			old, now *triage.Half
		}{{"user", old.User, now.User}, {"handler", old.Handler, now.Handler}, {"wow64", old.Wow64, now.Wow64}} {
			if h.old != nil {
				res.Frames += len(h.old.Frames)
			}
			if frame, what := compareHalves(h.old, h.now); what != "" {
				res.Differences = append(res.Differences, Difference{old.ID, h.name, frame, what})
				if len(res.Differences) == before+1 { // the first of the thread
					differs = append(differs, mismatch{i, h.old, frame})
				}
			}
		}
	}
	for i := len(s.inc.Threads); i < len(inc.Threads); i++ {
		res.Differences = append(res.Differences, Difference{inc.Threads[i].ID, "user", -1, "the thread is in the new dump only"})
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
