package similar

import (
	"cmp"
	"math"
	"slices"
)

// cluster is a leader and other members that stand for what the cluster is like.
type cluster struct {
	id    string
	group uint32
	reps  []*Stack // the leader first
	size  int
}

// Cluster is a cluster as it is kept.
type Cluster struct {
	ID              string     // the leader's
	Group           string     // clusters of different groups are never compared
	Representatives [][]string // frames of the leader, then of others
	Size            int        // members
}

// Placed is where a stack came.
type Placed struct {
	Cluster string
	Score   float64 // against the cluster's representatives; 1 for a leader itself
	New     bool
	// Represents is set when the stack became one of the representatives, behind
	// those that there were.
	Represents bool
	// United are clusters that were then found to be of the same fault, one after the other.
	United []Union
}

// Union is a cluster that has become a part of an older one. Its representatives come behind
// those that the older one had.
type Union struct{ Part, Whole string }

const (
	maxReps = 4 // of a cluster that has not absorbed another
	// familiar is how much of what a stack says of itself may be missing for it to tell
	// nothing of the cluster that the representatives do not.
	familiar = 2 * one
	// worst is the most that one representative may say against a stack, in a mean.
	worst = -5 * one
)

// Place puts a stack into a cluster: one of those of its group, or a new one
// with the given id. A caller gives each distinct stack once.
func (m *Model) Place(id, group string, frames []string) Placed {
	s := m.Stack(frames)
	g := m.group(group)
	near := m.nearest(s, g, 1)
	if len(near) == 0 || near[0].odds < fixed(m.params.Threshold) {
		m.found(&cluster{id: id, group: g, size: 1}, s)
		return Placed{Cluster: id, Score: 1, New: true}
	}
	at := near[0].cluster
	c := m.clusters[at]
	c.size++
	p := Placed{Cluster: c.id, Score: score(near[0].evidence)}
	if len(c.reps) < maxReps && near[0].evidence < m.own(s)-familiar {
		m.represent(at, s)
		p.Represents = true
	}
	if c.size&(c.size-1) == 0 { // each time that it has doubled
		p.United = m.unite(at)
	}
	return p
}

// own is what a stack says of itself.
func (m *Model) own(s *Stack) (sum int32) {
	for i := range s.entries {
		sum += m.weight(&s.entries[i])
	}
	return sum
}

func (m *Model) group(name string) uint32 {
	g, ok := m.groups[name]
	if !ok {
		g = uint32(len(m.groups))
		m.groups[name] = g
	}
	return g
}

// found adds a cluster with its leader.
func (m *Model) found(c *cluster, leader *Stack) {
	m.clusters, m.shared = append(m.clusters, c), append(m.shared, 0)
	m.live++
	m.countAll()
	m.represent(int32(len(m.clusters)-1), leader)
}

func (m *Model) countAll() { m.all = fixed(math.Log(float64(m.live) + newcomers)) }

// represent adds a representative, lists its frames and counts them.
func (m *Model) represent(n int32, s *Stack) {
	c := m.clusters[n]
	c.reps = append(c.reps, s)
	for e := range s.distinct {
		if at, listed := slices.BinarySearch(m.leads[e.id], n); !listed {
			m.leads[e.id] = slices.Insert(m.leads[e.id], at, n)
			m.names[e.id].clusters++
		}
	}
	m.countCaller(s)
}

// countCaller counts the program's frame below its topmost one.
func (m *Model) countCaller(s *Stack) {
	if s.next == len(s.entries) || s.entries[s.next].unnamed {
		return
	}
	top, next := s.entries[s.top].id, s.entries[s.next].id
	if pair := uint64(top)<<32 | uint64(next); !m.callers[pair] {
		m.callers[pair] = true
		m.names[top].callers++
	}
}

// candidate is a cluster and what is said for it: by the best of its representatives,
// and by its size too.
type candidate struct {
	cluster        int32
	evidence, odds int32
}

// nearest returns the clusters of a group that a stack is most like, best first,
// older ones first among equals.
func (m *Model) nearest(s *Stack, group uint32, n int) []candidate {
	var best []candidate
	for _, c := range m.candidates(s, group) {
		cl := m.clusters[c]
		if evidence := m.against(s, cl); evidence > never {
			best = insert(best, candidate{c, evidence, evidence + m.bonus(cl.size)}, n)
		}
	}
	return best
}

// against is what a cluster's representatives say of a stack: the best of them, and the mean.
func (m *Model) against(s *Stack, c *cluster) int32 {
	best, sum := int32(never), int64(0)
	for _, r := range c.reps {
		e := m.align(s, r)
		best = max(best, e)
		sum += int64(max(e, worst))
	}
	if best <= never {
		return never
	}
	mean := int32(sum / int64(len(c.reps)))
	return best - times(best-mean, fixed(m.params.Mean))
}

// bonus is what a cluster's size says for it.
func (m *Model) bonus(size int) int32 {
	return times(fixed(math.Log(float64(max(size, 1)))), fixed(m.params.Size))
}

// insert keeps the n best in order.
func insert(best []candidate, c candidate, n int) []candidate {
	at, _ := slices.BinarySearchFunc(best, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.odds, a.odds), cmp.Compare(a.cluster, b.cluster))
	})
	if at >= n {
		return best
	}
	if len(best) == n {
		best = best[:n-1]
	}
	return slices.Insert(best, at, c)
}

// Match is a cluster and how like the nearest of its representatives a stack is.
type Match struct {
	Cluster string
	Score   float64
}

// Nearest returns the clusters that a stack is most like, best first. Nothing is
// changed.
func (m *Model) Nearest(group string, frames []string, n int) []Match {
	g, ok := m.groups[group]
	if !ok {
		return nil
	}
	var out []Match
	for _, c := range m.nearest(m.Stack(frames), g, n) {
		out = append(out, Match{m.clusters[c.cluster].id, score(c.evidence)})
	}
	return out
}

// Restore makes the model that has these clusters, in the order of their making: it
// goes on as if it had never been put away.
func Restore(p Params, clusters []Cluster) *Model {
	m := New(p)
	for _, c := range clusters {
		if len(c.Representatives) == 0 {
			continue // nothing could ever be like it
		}
		m.found(&cluster{id: c.ID, group: m.group(c.Group), size: c.Size}, m.Stack(c.Representatives[0]))
		for _, r := range c.Representatives[1:] {
			m.represent(int32(len(m.clusters)-1), m.Stack(r))
		}
	}
	return m
}
