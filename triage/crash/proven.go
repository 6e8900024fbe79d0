package crash

import "dumptriage/triage"

// maxHelpers is how many frames may stand between what raises and its own helpers.
const maxHelpers = 8

// proven takes a blame away from a frame that nothing shows to be on the stack when
// there is one that is, and from a part of what raised.
func (j *judge) proven(b *Blame) *Blame {
	if b == nil || b.Rule == BlameDynamic {
		return b
	}
	if b.Rule == BlameRecursion && !certain(b.Frame) {
		// Where it stopped is certain; the recursion is not.
		if first := j.firstOfApplication(0, b.Index, BlameFirst); first != nil && certain(first.Frame) {
			return first
		}
		return b
	}
	if at := j.raisedBelow(b.Index); at >= 0 {
		if below := j.firstOfApplication(at+1, len(j.frames), BlameFirst); below != nil {
			b = below
		}
	}
	for next := b; next != nil; next = j.firstOfApplication(next.Index+1, len(j.frames), BlameFirst) {
		if believed(next.Frame) {
			return next
		}
	}
	return b
}

// believed reports whether a frame is on the stack, as far as the walk can tell.
func believed(f *triage.Frame) bool { return f.Certain() || f.Proof == triage.Proven }

// raisedBelow finds the frame that raises or ends, of which the blamed one is
// but a helper: a runtime that is linked into the program has no module of its
// own to tell it by. -1 when there is none, or the frame is sure to be on the
// stack and has a name by which rules would have known it.
func (j *judge) raisedBelow(blamed int) int {
	sure := !lacksName(&j.frames[blamed])
	for i := range j.frames[:blamed+1] {
		sure = sure && certain(&j.frames[i])
	}
	if sure {
		return -1
	}
	at := -1
	for i := blamed + 1; i < min(blamed+maxHelpers, len(j.frames)); i++ {
		f := &j.frames[i]
		if !certain(f) {
			continue
		}
		if skip, _ := j.rules.why(f); skip != nil && skip.Attrs["why"] == "machinery" {
			at = i
		}
	}
	return at
}
