package crash

import (
	"encoding/binary"

	"dumptriage/dump"
)

// A scan finds return addresses of calls that are over as well as of those that
// are not, and what they lead on to is unwound as if it were on the stack. Such
// frames end where they meet one that is on the stack. So a guess is held against
// what follows it: a frame of what raises, and the calls that must have been made.

const (
	maxHelpers = 8  // frames that may stand between what raises and its own helpers
	maxGuessed = 16 // frames behind a guess that are held against it
)

// proven takes a blame that rests on a guess away from it when the frames that
// follow show that it is not on the stack, or is a part of what raised.
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
	if certain(b.Frame) {
		return b
	}
	for i := b.Index + 1; i < min(b.Index+maxGuessed, len(j.frames)) && certain(&j.frames[i]); i++ {
		if !j.refuted(i) {
			continue
		}
		if next := j.firstOfApplication(i, len(j.frames), BlameFirst); next != nil && certain(next.Frame) {
			return next
		}
		break
	}
	return b
}

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

// refuted reports whether the call in frame i went elsewhere than to the frame
// above it, by the code of a direct call. A function that ends in a jump to
// another looks the same; then the caller is named, which is not wrong.
func (j *judge) refuted(i int) bool {
	above := &j.frames[i-1]
	if above.Name.Function == "" || above.Module == nil {
		return false
	}
	target, ok := j.callTarget(j.frames[i].IP)
	return ok && target != above.IP-above.Name.Offset
}

// callTarget is where the direct call before a return address leads, through the
// jump that incremental linking puts between; ok is false for other calls.
func (j *judge) callTarget(ret uint64) (target uint64, ok bool) {
	if j.arch != dump.AMD64 && j.arch != dump.X86 {
		return 0, false
	}
	relative := func(at uint64, opcode byte) (uint64, bool) {
		var code [5]byte
		if j.mem.Code(code[:], at) != len(code) || code[0] != opcode {
			return 0, false
		}
		return j.arch.Narrow(at + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:]))))), true
	}
	if target, ok = relative(ret-5, 0xe8); !ok {
		return 0, false
	}
	if through, jump := relative(target, 0xe9); jump {
		target = through
	}
	return target, true
}
