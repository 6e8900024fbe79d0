// Package similar tells how alike two stacks are, and puts stacks that are alike
// into clusters.
//
// The measure is FaST (Rodrigues, Aloise, Fernandes: "FaST: A linear time stack
// trace alignment heuristic for crash report deduplication", MSR 2022): frames
// are matched by name in order of their occurrence, a match counts the more the
// nearer the frame is to the top, the fewer stacks have it, and the less it has
// moved; frames without a match count against. Sorting each stack's frames once
// makes a comparison linear in the depth.
//
// Clusters have a leader and a few further members that stand for what they are
// like. A stack joins the cluster with the representative that it is most like,
// unless it is too unlike another of them; else it leads a cluster of its own. A
// member that is not much like any representative becomes one. What was decided
// never changes, so a cluster's id, its leader's, is stable.
//
// A Model holds everything in memory and does no input or output. It is used by
// one goroutine.
package similar

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Params are the measure's parameters and the clusters' bounds.
type Params struct {
	Position  float64 // how fast a frame's weight falls with its distance from the top
	Frequency float64 // how fast it falls with the share of stacks that have it
	Shift     float64 // how fast a match's falls with the difference of positions
	Threshold float64 // the least score that joins a cluster
	Far       float64 // the least score against each of its representatives
}

// DefaultParams are near what does best on the stacks that bench/buckets makes to
// choose by.
var DefaultParams = Params{Position: 0.3, Frequency: 10, Shift: 0.1, Threshold: -0.1, Far: -0.95}

// entry is a frame of a stack.
type entry struct {
	id     uint32 // of the name
	pos    uint16 // from the top
	weight int32  // as of the epoch, in units of 1/one
}

// one is the unit of fixed-point numbers. Sums of those do not depend on the order
// of their terms, and so not on the numbers that names happen to have.
const one = 1 << 20

// unnamedWeight is the weight of a frame that is only a place in a module, of that
// of one with a name: in another build, or with symbols at hand, the same frame is
// called otherwise, so that missing it says little.
const unnamedWeight = 0.25

// unseen is how many stacks without any frame in common are taken for granted: of
// the first few stacks, what all of them have is not common yet.
const unseen = 100

// MaxDepth is how many frames of a stack count.
const MaxDepth = 512

// Stack is a stack ready for comparison.
type Stack struct {
	entries []entry // by id, then position
	total   int64
	epoch   int // the weights' age
}

// Model knows how common frames are, and the clusters.
type Model struct {
	params   Params
	ids      map[string]uint32
	names    []string
	unnamed  []bool
	df       []uint32 // stacks that have a frame
	n        uint32   // stacks
	snapDF   []uint32 // both as of the epoch
	snapN    uint32
	epoch    int
	position []float64 // weights by position
	shift    []int64   // and by shift, in units of 1/one

	clusters []*cluster
	leads    map[uint32][]int32 // by frame: clusters with a representative that has it, ascending
	groups   map[string]uint32
	seen     []uint32 // by cluster: the last search that met it
	search   uint32
}

// New returns an empty model.
func New(p Params) *Model {
	m := &Model{params: p, ids: map[string]uint32{}, groups: map[string]uint32{}, leads: map[uint32][]int32{}, epoch: 1}
	for i := range MaxDepth {
		m.position = append(m.position, math.Pow(float64(i+1), -p.Position))
		m.shift = append(m.shift, int64(math.Exp(-p.Shift*float64(i))*one))
	}
	return m
}

// Stack makes a stack of frames, innermost first. Names that are new to the model
// are remembered.
func (m *Model) Stack(frames []string) *Stack {
	frames = frames[:min(len(frames), MaxDepth)]
	s := &Stack{entries: make([]entry, len(frames))}
	for i, name := range frames {
		s.entries[i] = entry{id: m.id(name), pos: uint16(i)}
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.pos, b.pos)) })
	return s
}

func (m *Model) id(name string) uint32 {
	id, ok := m.ids[name]
	if !ok {
		id = uint32(len(m.names))
		m.ids[name] = id
		m.names = append(m.names, name)
		m.df = append(m.df, 0)
		m.unnamed = append(m.unnamed, !strings.Contains(name, "!") && strings.Contains(name, "+"))
	}
	return id
}

// Count adds a stack to how common its frames are.
func (m *Model) Count(s *Stack) {
	m.n++
	for i, e := range s.entries {
		if i == 0 || s.entries[i-1].id != e.id {
			m.df[e.id]++
		}
	}
	// Weights are taken anew when there is a tenth more to know: what they are
	// depends on the stacks and their order alone.
	if m.n >= m.snapN+max(1, m.snapN/10) {
		m.snapshot()
	}
}

func (m *Model) snapshot() {
	m.snapDF, m.snapN = append(m.snapDF[:0], m.df...), m.n
	m.epoch++
}

// weigh brings a stack's weights up to date.
func (m *Model) weigh(s *Stack) {
	if s.epoch == m.epoch {
		return
	}
	s.epoch, s.total = m.epoch, 0
	for i := range s.entries {
		e := &s.entries[i]
		e.weight = max(int32(m.position[e.pos]*m.rarity(e.id)*one), 1)
		s.total += int64(e.weight)
	}
}

func (m *Model) rarity(id uint32) float64 {
	if m.unnamed[id] {
		return unnamedWeight * m.common(id)
	}
	return m.common(id)
}

func (m *Model) common(id uint32) float64 {
	if int(id) >= len(m.snapDF) || m.snapN == 0 {
		return 1
	}
	return math.Exp(-m.params.Frequency * float64(m.snapDF[id]) / float64(m.snapN+unseen))
}

// Score is how alike two stacks are, from -1, nothing in common, to 1, the same.
// Two empty stacks score 0: nothing is known of them.
func (m *Model) Score(a, b *Stack) float64 {
	m.weigh(a)
	m.weigh(b)
	total := a.total + b.total
	if total == 0 {
		return 0
	}
	score := int64(0)
	x, y := a.entries, b.entries
	i, k := 0, 0
	for i < len(x) && k < len(y) {
		p, q := &x[i], &y[k]
		switch {
		case p.id == q.id:
			d := int(p.pos) - int(q.pos)
			if d < 0 {
				d = -d
			}
			score += int64(p.weight+q.weight) * m.shift[d] / one
			i++
			k++
		case p.id < q.id:
			score -= int64(p.weight)
			i++
		default:
			score -= int64(q.weight)
			k++
		}
	}
	for ; i < len(x); i++ {
		score -= int64(x[i].weight)
	}
	for ; k < len(y); k++ {
		score -= int64(y[k].weight)
	}
	return float64(score) / float64(total)
}
