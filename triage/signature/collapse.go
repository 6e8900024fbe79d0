package signature

// maxPeriod is the longest recursion, in functions, that is collapsed.
const maxPeriod = 16

// run is a recursion: the functions of one round, and how many rounds were left
// out behind the first.
type run struct {
	at, period int // of the first round in the collapsed list
	dropped    int
}

// collapse leaves one round of each recursion in a list of frames, outermost
// first, and returns the indices of those that stay. Going from the outermost
// frame on makes the answer the same however deep a recursion went. longest is
// the recursion with the most rounds left out.
func collapse(names []string) (kept []int, longest run) {
	rounds := map[[2]int]int{}
	for i := range names {
		kept = append(kept, i)
		for again := true; again; {
			again = false
			for p := 1; p <= maxPeriod && 2*p <= len(kept); p++ {
				if !repeats(names, kept, p) {
					continue
				}
				kept = kept[:len(kept)-p]
				key := [2]int{len(kept) - p, p}
				rounds[key]++
				if rounds[key] > longest.dropped {
					longest = run{len(kept) - p, p, rounds[key]}
				}
				again = true
				break
			}
		}
	}
	return kept, longest
}

// repeats reports whether the last p of kept are named like the p before them.
func repeats(names []string, kept []int, p int) bool {
	n := len(kept)
	for k := range p {
		if names[kept[n-p+k]] != names[kept[n-2*p+k]] {
			return false
		}
	}
	return true
}
