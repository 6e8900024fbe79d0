package similar

import (
	"cmp"
	"slices"
)

// Which clusters a stack may be like is asked of an inverted index, from frames to clusters,
// beginning with the frames that the fewest clusters have.

const (
	rareFrames    = 12     // of a stack, that are looked up
	maxLookups    = 50_000 // of clusters, for one stack
	maxCandidates = 64     // clusters that a stack is aligned with
)

// candidates are the clusters of a group that share most with a stack, by the weight of the
// frames that both have, wherever these are: most first, older ones first among equals.
func (m *Model) candidates(s *Stack, group uint32) []int32 {
	var found []int32
	lookups := 0
	for _, e := range m.rarest(s) {
		leads := m.leads[e.id]
		if lookups += len(leads); lookups > maxLookups {
			break
		}
		w := max(m.weight(&e), 1)
		for _, c := range leads {
			if m.clusters[c].group != group {
				continue
			}
			if m.shared[c] == 0 {
				found = append(found, c)
			}
			m.shared[c] += w
		}
	}
	slices.SortFunc(found, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.shared[b], m.shared[a]), cmp.Compare(a, b))
	})
	for _, c := range found {
		m.shared[c] = 0
	}
	return found[:min(len(found), maxCandidates)]
}

// rarest returns a stack's frames that some representative has, each name once and those of
// the fewest clusters first.
func (m *Model) rarest(s *Stack) []entry {
	var out []entry
	for e := range s.distinct {
		if len(m.leads[e.id]) > 0 {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(cmp.Compare(len(m.leads[a.id]), len(m.leads[b.id])), cmp.Compare(m.names[a.id].text, m.names[b.id].text))
	})
	return out[:min(len(out), rareFrames)]
}
