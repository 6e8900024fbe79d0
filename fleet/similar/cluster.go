package similar

import (
	"cmp"
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
	Score   float64 // against the representative that it is most like; 1 for a leader itself
	New     bool
	// Represents is set when the stack became one of the representatives, behind
	// those that there were.
	Represents bool
}

const (
	rareFrames    = 12     // by which candidates are found
	maxCandidates = 10_000 // clusters compared with one stack
	bestTried     = 8      // clusters of which all representatives are asked
	maxReps       = 4      // of a cluster
	// unlike is how far up from the threshold to 1 a member's score may be for it to
	// tell something of the cluster that the representatives do not.
	unlike = 0.7
)

// Place puts a stack into a cluster: one of those of its group, or a new one
// with the given id. A caller gives each distinct stack once.
func (m *Model) Place(id, group string, frames []string) Placed {
	s := m.Stack(frames)
	m.Count(s)
	g := m.group(group)
	for _, c := range m.nearest(s, g, bestTried) {
		if c.score < m.params.Threshold {
			break
		}
		cl := m.clusters[c.cluster]
		if !m.fits(s, cl) {
			continue
		}
		cl.size++
		p := Placed{Cluster: cl.id, Score: c.score}
		if len(cl.reps) < maxReps && c.score < m.params.Threshold+unlike*(1-m.params.Threshold) {
			m.represent(c.cluster, s)
			p.Represents = true
		}
		return p
	}
	m.found(&cluster{id: id, group: g, size: 1}, s)
	return Placed{Cluster: id, Score: 1, New: true}
}

// fits reports whether a stack is not too unlike any of a cluster's
// representatives, which keeps chains of stacks, each like the next, apart.
func (m *Model) fits(s *Stack, c *cluster) bool {
	for _, r := range c.reps {
		if m.Score(s, r) < m.params.Far {
			return false
		}
	}
	return true
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
	m.clusters, m.seen = append(m.clusters, c), append(m.seen, 0)
	m.represent(int32(len(m.clusters)-1), leader)
}

// represent adds a representative and lists its frames.
func (m *Model) represent(n int32, s *Stack) {
	c := m.clusters[n]
	c.reps = append(c.reps, s)
	for i, e := range s.entries {
		if i > 0 && s.entries[i-1].id == e.id {
			continue
		}
		if at, listed := slices.BinarySearch(m.leads[e.id], n); !listed {
			m.leads[e.id] = slices.Insert(m.leads[e.id], at, n)
		}
	}
}

// candidate is a cluster and the best score of its representatives.
type candidate struct {
	cluster int32
	score   float64
}

// nearest returns the clusters of a group that a stack is most like, best first,
// older ones first among equals: of those that share one of the frames that the
// fewest clusters have.
func (m *Model) nearest(s *Stack, group uint32, n int) []candidate {
	m.search++
	var best []candidate
	compared := 0
	for _, id := range m.rarest(s) {
		for _, c := range m.leads[id] {
			if m.seen[c] == m.search {
				continue
			}
			m.seen[c] = m.search
			cl := m.clusters[c]
			if cl.group != group {
				continue
			}
			if compared++; compared > maxCandidates {
				return best
			}
			score := m.Score(s, cl.reps[0])
			for _, r := range cl.reps[1:] {
				score = max(score, m.Score(s, r))
			}
			best = insert(best, candidate{c, score}, n)
		}
	}
	return best
}

// insert keeps the n best in order.
func insert(best []candidate, c candidate, n int) []candidate {
	at, _ := slices.BinarySearchFunc(best, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.cluster, b.cluster))
	})
	if at >= n {
		return best
	}
	if len(best) == n {
		best = best[:n-1]
	}
	return slices.Insert(best, at, c)
}

// rarest returns the ids of a stack's frames that some representative has, those of
// the fewest clusters first.
func (m *Model) rarest(s *Stack) []uint32 {
	var ids []uint32
	for i, e := range s.entries {
		if (i == 0 || s.entries[i-1].id != e.id) && len(m.leads[e.id]) > 0 {
			ids = append(ids, e.id)
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(len(m.leads[a]), len(m.leads[b])), cmp.Compare(m.names[a], m.names[b]))
	})
	return ids[:min(len(ids), rareFrames)]
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
		out = append(out, Match{m.clusters[c.cluster].id, c.score})
	}
	return out
}

// Frequency is how many of the stacks have a frame: now, and when weights were
// last taken.
type Frequency struct{ Now, Weighed uint32 }

// State is all that a model knows, for keeping.
type State struct {
	Stacks      Frequency
	Frequencies map[string]Frequency // of frames that some stack has
	Clusters    []Cluster            // in the order of their making
}

// Restore makes the model that State describes: it goes on as if it had never
// been put away.
func Restore(p Params, st State) *Model {
	m := New(p)
	m.n, m.snapN = st.Stacks.Now, st.Stacks.Weighed
	names := make([]string, 0, len(st.Frequencies))
	for name := range st.Frequencies {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m.df[m.id(name)] = st.Frequencies[name].Now
		m.snapDF = append(m.snapDF, st.Frequencies[name].Weighed)
	}
	for _, c := range st.Clusters {
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

// Stacks returns how many stacks were placed, now and when weights were taken.
func (m *Model) Stacks() Frequency { return Frequency{m.n, m.snapN} }

// Frequency returns how many stacks have a frame.
func (m *Model) Frequency(name string) Frequency {
	id, ok := m.ids[name]
	if !ok {
		return Frequency{}
	}
	f := Frequency{Now: m.df[id]}
	if int(id) < len(m.snapDF) {
		f.Weighed = m.snapDF[id]
	}
	return f
}

// Weighed reports in which round weights were last taken, to tell whether it
// changed.
func (m *Model) Weighed() int { return m.epoch }
