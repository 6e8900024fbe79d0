package similar

import (
	"cmp"
	"slices"
)

// cluster is a leader and its farthest member.
type cluster struct {
	id       string
	group    uint32
	leader   *Stack
	far      *Stack // nil: the leader alone
	farScore float64
	size     int
}

// Cluster is a cluster as it is kept.
type Cluster struct {
	ID       string   // the leader's
	Group    string   // clusters of different groups are never compared
	Leader   []string // frames
	Far      []string // of the farthest member, nil when there is none
	FarScore float64  // its score against the leader
	Size     int      // members
}

// Placed is where a stack came.
type Placed struct {
	Cluster string
	Score   float64 // against the leader; 1 for the leader itself
	New     bool
	// Far is set when the stack became its cluster's farthest member.
	Far bool
}

const (
	rareFrames    = 12     // by which candidates are found
	maxCandidates = 20_000 // leaders compared with one stack
	bestTried     = 8      // clusters whose farthest member is asked
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
		if cl.far != nil && m.Score(s, cl.far) < m.params.Far {
			continue
		}
		cl.size++
		p := Placed{Cluster: cl.id, Score: c.score}
		if cl.far == nil || c.score < cl.farScore {
			cl.far, cl.farScore, p.Far = s, c.score, true
		}
		return p
	}
	m.lead(&cluster{id: id, group: g, leader: s, size: 1})
	return Placed{Cluster: id, Score: 1, New: true}
}

func (m *Model) group(name string) uint32 {
	g, ok := m.groups[name]
	if !ok {
		g = uint32(len(m.groups))
		m.groups[name] = g
	}
	return g
}

// lead adds a cluster and lists it by its leader's frames.
func (m *Model) lead(c *cluster) {
	n := int32(len(m.clusters))
	m.clusters, m.seen = append(m.clusters, c), append(m.seen, 0)
	for i, e := range c.leader.entries {
		if i == 0 || c.leader.entries[i-1].id != e.id {
			m.leads[e.id] = append(m.leads[e.id], n)
		}
	}
}

// candidate is a cluster and its leader's score.
type candidate struct {
	cluster int32
	score   float64
}

// nearest returns the clusters of a group whose leaders are most like a stack,
// best first, older ones first among equals: of those that share one of the
// frames that fewest leaders have.
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
			best = insert(best, candidate{c, m.Score(s, cl.leader)}, n)
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

// rarest returns the ids of a stack's frames that some leader has, those of the
// fewest leaders first.
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

// Match is a cluster and how like its leader a stack is.
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
		cl := &cluster{id: c.ID, group: m.group(c.Group), leader: m.Stack(c.Leader), farScore: c.FarScore, size: c.Size}
		if c.Far != nil {
			cl.far = m.Stack(c.Far)
		}
		m.lead(cl)
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
