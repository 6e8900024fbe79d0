package report

import (
	"dumptriage/dump"
)

// deepest bounds how far the text of a tree is indented.
const deepest = 40

// ProcessTree puts processes below the ones that created them and sets their
// Depth. A process whose creator has ended stands at the top: when the creator's id
// is another process's by now, that one is younger than it.
func ProcessTree(all []ProcessEntry) []ProcessEntry {
	byID := map[uint32][]int{}
	for i := range all {
		if all[i].HasPID {
			byID[all[i].PID] = append(byID[all[i].PID], i)
		}
	}
	children, top := map[int][]int{}, []int{}
	for i := range all {
		if parent := creator(all, byID[all[i].ParentPID], i); parent >= 0 {
			children[parent] = append(children[parent], i)
		} else {
			top = append(top, i)
		}
	}
	out := make([]ProcessEntry, 0, len(all))
	placed := make([]bool, len(all))
	type place struct{ i, depth int }
	follow := func(from int) {
		for stack := []place{{from, 0}}; len(stack) > 0; {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if placed[at.i] {
				continue
			}
			placed[at.i] = true
			e := all[at.i]
			e.Depth = at.depth
			out = append(out, e)
			below := children[at.i]
			for k := len(below) - 1; k >= 0; k-- {
				stack = append(stack, place{below[k], at.depth + 1})
			}
		}
	}
	for _, i := range top {
		follow(i)
	}
	for i := range all { // those that only a circle of creators holds
		follow(i)
	}
	return out
}

// creator returns which of the processes with its parent's id created a process,
// -1 when none can have: the youngest that is not younger than it.
func creator(all []ProcessEntry, candidates []int, child int) int {
	best := -1
	for _, i := range candidates {
		if i == child || !all[child].HasPID || younger(all[i].Process, all[child].Process) {
			continue
		}
		if best < 0 || younger(all[i].Process, all[best].Process) {
			best = i
		}
	}
	return best
}

// younger reports whether a is known to have been created after b.
func younger(a, b *dump.Process) bool {
	return !a.Created.IsZero() && !b.Created.IsZero() && a.Created.After(b.Created)
}
