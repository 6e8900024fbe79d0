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
	at := &m.sides[0]
	m.weigh(s, at)
	for _, i := range m.rarest(s) {
		leads := m.leads[s.entries[i].id]
		if lookups += len(leads); lookups > maxLookups {
			break
		}
		w := max(at.weights[i], 1)
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

// rarest returns the places of a stack's frames that some representative has, each name once
// and those of the fewest clusters first.
func (m *Model) rarest(s *Stack) []int {
	var out []int
	for i := range s.distinct {
		if len(m.leads[s.entries[i].id]) > 0 {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(i, k int) int {
		a, b := s.entries[i].id, s.entries[k].id
		return cmp.Or(cmp.Compare(len(m.leads[a]), len(m.leads[b])), cmp.Compare(m.names[a].text, m.names[b].text))
	})
	return out[:min(len(out), rareFrames)]
}
