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
// Two things are added, of what is known of Windows stacks. Frames that the built-in
// rules of signatures walk past, those of the system and the runtimes, weigh little,
// and places are counted in the program's frames alone. And a stack with frames of a
// module without names is not blamed for those of that module that it lacks.
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

	"dumptriage/triage/signature"
)

// Params are the measure's parameters and the clusters' bounds.
type Params struct {
	Position  float64 // how fast a frame's weight falls with the program's frames above it
	Frequency float64 // how fast it falls with the share of stacks that have it
	Shift     float64 // how fast a match's falls with the difference of positions
	Threshold float64 // the least score that joins a cluster
	Far       float64 // the least score against each of its representatives
}

// DefaultParams did best, of a grid, on four programs' stacks that bench/buckets
// makes to develop by (seeds 1 to 4), with the constants of this file. They are judged
// on others; bench/README.md has both figures.
var DefaultParams = Params{Position: 1, Frequency: 20, Shift: 0.2, Threshold: -0.25, Far: -1}

// entry is a frame of a stack.
type entry struct {
	id     uint32 // of the name
	pos    uint16 // from the top
	rank   uint16 // how many frames of the program are above it
	weight int32  // as of the epoch, in units of 1/one
}

// one is the unit of fixed-point numbers. Sums of those do not depend on the order
// of their terms, and so not on the numbers that names happen to have.
const one = 1 << 20

// unnamedWeight is the weight of a frame that is only a place in a module, of that
// of one with a name: in another build, or with symbols at hand, the same frame is
// called otherwise, so that missing it says little.
const unnamedWeight = 0.25

// systemWeight is the weight of a frame that signatures walk past, of that of one
// of the program: how the heap found its damage says little of who did it.
const systemWeight = 0.25

// excused is how much of a frame's weight counts against a stack that lacks it but has
// frames of the same module without names: it may be one of these.
const excused = 0.25

// unseen is how many stacks without any frame in common are taken for granted: of
// the first few stacks, what all of them have is not common yet.
const unseen = 30

// MaxDepth is how many frames of a stack count.
const MaxDepth = 512

// Stack is a stack ready for comparison.
type Stack struct {
	entries []entry // by id, then position
	hidden  uint64  // modules of which a frame has no name, by their number's last bits
	epoch   int     // the weights' age
}

// Model knows how common frames are, and the clusters.
type Model struct {
	params   Params
	ids      map[string]uint32
	names    []string
	unnamed  []bool
	system   []bool   // signatures walk past it
	module   []uint64 // a bit for the module of a frame, 0 when there is none
	modules  map[string]uint
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
	m := &Model{params: p, ids: map[string]uint32{}, groups: map[string]uint32{}, modules: map[string]uint{}, leads: map[uint32][]int32{}, epoch: 1}
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
	rank := uint16(0)
	for i, name := range frames {
		id := m.id(name)
		s.entries[i] = entry{id: id, pos: uint16(i), rank: rank}
		if m.unnamed[id] {
			s.hidden |= m.module[id]
		}
		if !m.system[id] {
			rank++
		}
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
		at := strings.IndexAny(name, "!+")
		m.module = append(m.module, m.moduleBit(name[:max(at, 0)]))
		m.unnamed = append(m.unnamed, at >= 0 && (name[at] == '+' || strings.HasPrefix(name[at:], "!fn@")))
		m.system = append(m.system, !signature.Builtin().Ordinary(name))
	}
	return id
}

// moduleBit is a module's bit in Stack.hidden. Of more than 64 modules some share one.
func (m *Model) moduleBit(name string) uint64 {
	if name == "" {
		return 0
	}
	n, ok := m.modules[name]
	if !ok {
		n = uint(len(m.modules))
		m.modules[name] = n
	}
	return 1 << (n % 64)
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
	s.epoch = m.epoch
	for i := range s.entries {
		e := &s.entries[i]
		e.weight = max(int32(m.position[e.rank]*m.rarity(e.id)*one), 1)
	}
}

func (m *Model) rarity(id uint32) float64 {
	if m.unnamed[id] {
		return unnamedWeight * m.common(id)
	}
	if m.system[id] {
		return systemWeight * m.common(id)
	}
	return m.common(id)
}

func (m *Model) common(id uint32) float64 {
	if int(id) >= len(m.snapDF) || m.snapN == 0 {
		return 1
	}
	return math.Exp(-m.params.Frequency * float64(m.snapDF[id]) / (float64(m.snapN) + unseen))
}

// Score is how alike two stacks are, from -1, nothing in common, to 1, the same.
// Two empty stacks score 0: nothing is known of them.
func (m *Model) Score(a, b *Stack) float64 {
	m.weigh(a)
	m.weigh(b)
	score, total := int64(0), int64(0)
	x, y := a.entries, b.entries
	i, k := 0, 0
	for i < len(x) && k < len(y) {
		p, q := &x[i], &y[k]
		switch {
		case p.id == q.id:
			d := int(p.rank) - int(q.rank)
			if d < 0 {
				d = -d
			}
			w := int64(p.weight + q.weight)
			score += w * m.shift[d] / one
			total += w
			i++
			k++
		case p.id < q.id:
			w := m.miss(p, b)
			score -= w
			total += w
			i++
		default:
			w := m.miss(q, a)
			score -= w
			total += w
			k++
		}
	}
	for ; i < len(x); i++ {
		w := m.miss(&x[i], b)
		score -= w
		total += w
	}
	for ; k < len(y); k++ {
		w := m.miss(&y[k], a)
		score -= w
		total += w
	}
	if total == 0 {
		return 0
	}
	return float64(score) / float64(total)
}

// miss is how much it counts that a stack lacks a frame. Where it has frames of the
// same module without names, it may have this one under another.
func (m *Model) miss(e *entry, in *Stack) int64 {
	if in.hidden&m.module[e.id] != 0 && !m.unnamed[e.id] {
		return int64(float64(e.weight) * excused)
	}
	return int64(e.weight)
}
