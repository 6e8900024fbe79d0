package crash

import "dumptriage/triage"

// Recursion is a run of frames that repeats.
type Recursion struct {
	From    int    // the first frame that repeats
	Frames  int    // in one round
	Rounds  int    // on the stack, as far as it was walked
	AtLeast bool   // the walk was cut off: there are more
	Bytes   uint64 // of stack that a round takes, 0 unknown
	// Estimate is how many rounds the whole stack holds, 0 unknown.
	Estimate uint64
}

// Largest is the frame of a deep stack that takes most of it.
type Largest struct {
	Index int
	Bytes uint64
}

const (
	maxRound  = 32 // frames in the longest round that is looked for
	maxBefore = 64 // frames in front of the first round
	minRounds = 3
)

// recursion explains a stack overflow: the shortest run of frames that repeats
// over the longest stretch, else the largest frame.
func (j *judge) recursion() {
	if j.v.Class != StackOverflow || len(j.frames) == 0 {
		return
	}
	keys := make([]frameKey, len(j.frames))
	for i := range j.frames {
		keys[i] = keyOf(&j.frames[i])
	}
	best, covered := Recursion{}, 0
	for from := 0; from < min(maxBefore, len(keys)); from++ {
		if len(keys)-from <= covered {
			break
		}
		for n := 1; n <= maxRound && from+n < len(keys); n++ {
			end := from + n
			for end < len(keys) && keys[end] == keys[end-n] {
				end++
			}
			if rounds := (end - from) / n; rounds >= minRounds && rounds*n > covered {
				best, covered = Recursion{From: from, Frames: n, Rounds: rounds}, rounds*n
			}
		}
	}
	if covered == 0 {
		j.largest()
		return
	}
	best.AtLeast = j.thread.User.Truncated && best.From+covered+best.Frames > len(j.frames)
	j.measure(&best)
	j.v.Recursion = &best
}

// frameKey is what makes two frames of a recursion equal: the function, or the
// address where it is not known.
type frameKey struct {
	module *triage.Module
	at     uint64
	name   string
}

func keyOf(f *triage.Frame) frameKey {
	if f.Name.Function == "" {
		return frameKey{at: f.IP}
	}
	return frameKey{f.Module, f.IP - f.Name.Offset, f.Name.Function}
}

// measure computes how much of the stack a round takes.
func (j *judge) measure(r *Recursion) {
	first, last := r.From, r.From+(r.Rounds-1)*r.Frames
	a, b := j.frames[first].SP, j.frames[last].SP
	if a == 0 || b <= a {
		return
	}
	r.Bytes = (b - a) / uint64(r.Rounds-1)
	if base := j.thread.StackBase; r.AtLeast && r.Bytes > 0 && base > a {
		r.Estimate = (base - a) / r.Bytes
	}
}

// largest names the frame that takes more than half of a stack.
func (j *judge) largest() {
	var best Largest
	for i := 0; i+1 < len(j.frames); i++ {
		if a, b := j.frames[i].SP, j.frames[i+1].SP; a != 0 && b > a && b-a > best.Bytes {
			best = Largest{i, b - a}
		}
	}
	if used := j.thread.StackBase - j.frames[0].SP; j.thread.StackBase > j.frames[0].SP && best.Bytes > used/2 {
		j.v.Largest = &best
	}
}
