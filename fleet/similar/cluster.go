package similar

import (
	"cmp"
	"math"
	"slices"
)

// cluster is the kinds of stacks that are taken for one fault's.
type cluster struct {
	id    string
	group uint32
	reps  []rep // the leader first
	size  int
}

// rep is a member that stands for a kind of stacks, and how many are of that kind.
type rep struct {
	stack *Stack
	near  int
}

// Cluster is a cluster as it is kept.
type Cluster struct {
	ID    string // the leader's
	Group string // clusters of different groups are never compared
	Kinds []Kind // the leader's first
}

// Kind is a kind of stacks: a member that represents it, and how many members are of it.
type Kind struct {
	ID     string // the representative's
	Frames []string
	Size   int
}

// Placed is where a stack came.
type Placed struct {
	Cluster string
	Kind    string  // the representative's id: the stack's own when it became one
	Score   float64 // against the cluster's representatives; 1 for a leader itself
	New     bool    // it leads a new cluster
	// Remade are clusters whose kinds of stacks have changed by more than this stack, with the
	// kinds that they have now: none when a cluster is a part of others. The stack's own is
	// among them when it has become a part of another.
	Remade []Remade
}

// Remade is a cluster and the ids of its kinds of stacks.
type Remade struct {
	ID, Group string
	Kinds     []string
}

const (
	maxReps  = 8        // of a cluster, by stacks that join it
	mostReps = 12       // of one that others have become a part of
	worst    = -5 * one // the most that one representative may say against a stack, in a mean
)

// Place puts a stack into a cluster: one of those of its group, or a new one
// with the given id. A caller gives each distinct stack once.
func (m *Model) Place(id, group string, frames []string) Placed {
	s := m.Stack(frames)
	s.id = id
	g := m.group(group)
	near := m.nearest(s, g, 1)
	if len(near) == 0 || near[0].odds < fixed(m.params.Threshold) {
		m.represent(m.found(id, g), rep{s, 1})
		return Placed{Cluster: id, Kind: id, Score: 1, New: true}
	}
	at := near[0].cluster
	c := m.clusters[at]
	p := Placed{Cluster: c.id, Kind: id, Score: score(near[0].evidence)}
	if len(c.reps) < maxReps && near[0].evidence < m.own(s)-fixed(m.params.Familiar) {
		m.represent(at, rep{s, 1})
	} else {
		r := &c.reps[near[0].rep]
		r.near++
		c.size++
		p.Kind = r.stack.id
	}
	if due(c.size) {
		p.Remade = m.remake(at, group)
	}
	return p
}

// due reports whether a cluster of a size is looked at anew: when it has grown by half or
// a third.
func due(size int) bool {
	for size%2 == 0 && size > 2 {
		size /= 2
	}
	return size == 2 || size == 3
}

// own is what a stack says of itself.
func (m *Model) own(s *Stack) (sum int32) {
	at := &m.sides[0]
	m.weigh(s, at)
	for i := range s.entries {
		sum += at.weights[i]
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

// found adds a cluster, whose leader is to follow.
func (m *Model) found(id string, group uint32) int32 {
	m.clusters, m.shared = append(m.clusters, &cluster{id: id, group: group}), append(m.shared, 0)
	m.live++
	m.countAll()
	return int32(len(m.clusters) - 1)
}

func (m *Model) countAll() { m.all = fixed(math.Log(float64(m.live) + newcomers)) }

// represent adds a representative, lists its frames and counts them.
func (m *Model) represent(n int32, r rep) {
	c := m.clusters[n]
	c.reps = append(c.reps, r)
	c.size += r.near
	for i := range r.stack.distinct {
		id := r.stack.entries[i].id
		if at, listed := slices.BinarySearch(m.leads[id], n); !listed {
			m.leads[id] = slices.Insert(m.leads[id], at, n)
			m.names[id].clusters++
		}
	}
	m.countCaller(r.stack, 1)
	m.meet(r.stack)
}

// empty takes all representatives out of a cluster.
func (m *Model) empty(n int32) []rep {
	c := m.clusters[n]
	for _, r := range c.reps {
		for i := range r.stack.distinct {
			id := r.stack.entries[i].id
			if at, listed := slices.BinarySearch(m.leads[id], n); listed {
				m.leads[id] = slices.Delete(m.leads[id], at, at+1)
				m.names[id].clusters--
			}
		}
		m.countCaller(r.stack, -1)
	}
	reps := c.reps
	c.reps, c.size = nil, 0
	return reps
}

// candidate is a cluster and what is said for it: by the best of its representatives,
// and by its size too.
type candidate struct {
	cluster        int32
	rep            int // the best
	evidence, odds int32
}

// nearest returns the clusters of a group that a stack is most like, best first,
// older ones first among equals.
func (m *Model) nearest(s *Stack, group uint32, n int) []candidate {
	var best []candidate
	for _, c := range m.candidates(s, group) {
		cl := m.clusters[c]
		if rep, evidence := m.against(s, cl); evidence > never {
			best = insert(best, candidate{c, rep, evidence, evidence + m.bonus(cl.size)}, n)
		}
	}
	return best
}

// against is what a cluster's representatives say of a stack: the best of them, which it
// returns, and the mean of all members.
func (m *Model) against(s *Stack, c *cluster) (at int, evidence int32) {
	best, sum := int32(never), int64(0)
	for i, r := range c.reps {
		e := m.align(s, r.stack)
		if e > best {
			best, at = e, i
		}
		sum += int64(max(e, worst)) * int64(r.near)
	}
	if best <= never {
		return 0, never
	}
	mean := int32(sum / int64(c.size))
	return at, best - times(best-mean, fixed(m.params.Mean))
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
		if len(c.Kinds) == 0 {
			continue // nothing could ever be like it
		}
		n := m.found(c.ID, m.group(c.Group))
		for _, k := range c.Kinds {
			s := m.Stack(k.Frames)
			s.id = k.ID
			m.represent(n, rep{s, max(k.Size, 1)})
		}
	}
	return m
}
