package report

import "dumptriage/triage"

const (
	maxCycle   = 8 // frames in the longest recursion that is looked for
	minRepeats = 3 // repetitions below which folding saves nothing
)

// run is a stretch of frames that is printed, and how often it comes again
// right after itself.
type run struct{ from, count, repeats int }

// fold finds recursion: cycles of one to eight frames that repeat. The longest
// stretch wins at each place, the shortest cycle among equals. Every frame is
// looked at a bounded number of times.
func fold(frames []triage.Frame) []run {
	var out []run
	plain := 0 // where frames that are in no cycle begin
	for i := 0; i < len(frames); {
		cycle, repeats := cycleAt(frames, i)
		if repeats < minRepeats {
			i++
			continue
		}
		if i > plain {
			out = append(out, run{plain, i - plain, 0})
		}
		out = append(out, run{i, cycle, repeats})
		i += cycle * (repeats + 1)
		plain = i
	}
	if plain < len(frames) {
		out = append(out, run{plain, len(frames) - plain, 0})
	}
	return out
}

// cycleAt returns the best cycle that begins at i and how often it repeats.
func cycleAt(frames []triage.Frame, i int) (cycle, repeats int) {
	for p := 1; p <= maxCycle && i+p < len(frames); p++ {
		n := i + p
		for n < len(frames) && frames[n].IP == frames[n-p].IP {
			n++
		}
		if r := (n - i - p) / p; r*p > repeats*cycle {
			cycle, repeats = p, r
		}
	}
	return cycle, repeats
}
