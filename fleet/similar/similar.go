// Package similar tells how alike two stacks are, and puts stacks that are alike
// into clusters.
//
// Two stacks are aligned, as sequences of biological molecules are: frames are
// matched by name from the top, and the best alignment is the one that says most for
// a common fault. What a match says is the surprise of it, the logarithm of how few
// clusters have the frame. Counting clusters, not stacks, keeps a fault that
// thousands of dumps show from making its own frames common. Frames that only one of
// the stacks has cost something: much at the top, little where a wrapper, an inlined
// frame or recursion between two matches explains it.
//
// What is known of Windows stacks goes into it:
//
//   - One fault is reached in several ways. From some frame on down the stacks may
//     differ: that costs once, and what follows says nothing. It costs more right
//     below the topmost frame of the program, and the more the more callers of that
//     one were met there: it is then a utility in which the faults of its callers show.
//   - Frames that signatures walk past, those of the system and the runtimes, weigh
//     little, and places are counted in the program's frames alone.
//   - A frame of a module without names may be any of that module's.
//   - The topmost frame may be another variant of the same routine.
//
// Clusters have a leader and a few further members that stand for what they are
// like. A stack joins the cluster for which most is said, the more willingly the more
// stacks it has, or else leads a cluster of its own. A member that is not much like any
// representative becomes one. What was decided never changes, so a cluster's id, its
// leader's, is stable.
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

// Params are the measure's parameters and the clusters' bounds. Position, System, Chain and
// Mean are factors or exponents; the others are natural logarithms of odds, and what costs
// is negative.
type Params struct {
	Position  float64 // how fast a frame's weight falls with the program's frames above it
	System    float64 // the weight of a frame that signatures walk past, of that of one of the program
	Chain     float64 // the weight of a match right below another, which that one leads to expect
	Unnamed   float64 // the most that a frame without a name weighs
	Hidden    float64 // the most that a frame says which may be another of its module, without a name
	Variant   float64 // what it costs that the topmost frame is another variant
	Gap       float64 // what the first frame costs that only one has
	Gaps      float64 // and each further one in a row
	TopSystem float64 // what one costs above the program's topmost, when it is the system's
	Top       float64 // and when it is the program's topmost itself
	Cut       float64 // what it costs that one of them ends
	Way       float64 // what it costs that they came by different ways from a frame on
	TopWay    float64 // and when that is the program's topmost
	Utility   float64 // and for each caller of that one which was met beyond the first few
	Mean      float64 // how much the mean of a cluster's representatives counts, beside the best
	Size      float64 // what the logarithm of a cluster's size says for it
	Threshold float64 // the least that must be said for a cluster to be joined
	Unite     float64 // and for two to become one
}

// DefaultParams did best on the programs' stacks that bench/buckets makes to develop
// by, rounded. They are judged on others; bench/README.md has both figures.
var DefaultParams = Params{
	Position: 0.8, System: 0.2, Chain: 0.4, Unnamed: 0.8, Hidden: 1.3, Variant: -2.5,
	Gap: -0.35, Gaps: -1.5, TopSystem: -0.8, Top: -1.2, Cut: 0, Way: -1.2, TopWay: -2.5, Utility: -0.5,
	Mean: 0.4, Size: 0.2, Threshold: 0.5, Unite: 0.6,
}

// one is the unit of fixed-point numbers, so that what is decided does not depend on how
// a processor rounds.
const one = 1 << 16

// bound is of parameters, so that sums over the deepest stacks do not overflow.
const bound = 100

func fixed(f float64) int32 {
	if math.IsNaN(f) {
		return 0
	}
	return int32(math.Round(max(min(f, bound), -bound) * one))
}

// The weight of a frame is log((clusters+newcomers)/(those that have it+owner)): of the
// first few clusters, what all have is not common yet.
const (
	newcomers = 5
	owner     = 0.5
)

// MaxDepth is how many frames of a stack count.
const MaxDepth = 64

// entry is a frame of a stack.
type entry struct {
	id      uint32 // of the name
	module  uint32
	rank    uint16 // how many frames of the program are above it
	unnamed bool
	system  bool
}

// Stack is a stack ready for comparison.
type Stack struct {
	entries []entry
	sorted  []uint16 // places in entries, by id, then place
	unnamed int      // frames without a name
	top     int      // the program's topmost frame, len(entries) when there is none
	next    int      // and the one below
}

// name is what is known of a frame's name.
type name struct {
	text     string
	module   uint32
	unnamed  bool
	system   bool   // signatures walk past it
	clusters uint32 // that have a representative with it
	callers  uint32 // program's frames met below it where it is the topmost
}

// Model knows how common frames are, and the clusters.
type Model struct {
	params   Params
	costs    costs
	ids      map[string]uint32
	names    []name
	modules  map[string]uint32
	live     int             // clusters that are no part of another
	all      int32           // logarithm of their number
	log      []int32         // of a number of clusters that have a frame
	position []int32         // weights by rank
	callers  map[uint64]bool // the pairs that name.callers counts

	clusters []*cluster
	leads    map[uint32][]int32 // by frame: clusters with a representative that has it, ascending
	groups   map[string]uint32
	shared   []int32 // by cluster: the weight that it shares with the stack that candidates are sought for, else 0

	// What align works in.
	rows    [4][MaxDepth + 1]int32
	weights [2][MaxDepth]int32
	skips   [MaxDepth]skips
}

// New returns an empty model.
func New(p Params) *Model {
	m := &Model{params: p, costs: p.costs(), ids: map[string]uint32{}, groups: map[string]uint32{}, modules: map[string]uint32{}, leads: map[uint32][]int32{}, callers: map[uint64]bool{}}
	for i := range MaxDepth {
		m.position = append(m.position, fixed(math.Pow(float64(i+1), -p.Position)))
	}
	m.countAll()
	return m
}

// Stack makes a stack of frames, innermost first. Names that are new to the model
// are remembered.
func (m *Model) Stack(frames []string) *Stack {
	frames = frames[:min(len(frames), MaxDepth)]
	s := &Stack{entries: make([]entry, len(frames)), sorted: make([]uint16, len(frames)), top: len(frames), next: len(frames)}
	rank := uint16(0)
	for i, text := range frames {
		id := m.id(text)
		n := &m.names[id]
		s.entries[i] = entry{id: id, module: n.module, rank: rank, unnamed: n.unnamed, system: n.system}
		s.sorted[i] = uint16(i)
		if n.unnamed {
			s.unnamed++
		}
		if n.system {
			continue
		}
		switch rank {
		case 0:
			s.top = i
		case 1:
			s.next = i
		}
		rank++
	}
	slices.SortFunc(s.sorted, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(s.entries[a].id, s.entries[b].id), cmp.Compare(a, b))
	})
	return s
}

func (m *Model) id(text string) uint32 {
	id, ok := m.ids[text]
	if !ok {
		id = uint32(len(m.names))
		m.ids[text] = id
		at := strings.IndexAny(text, "!+")
		m.names = append(m.names, name{text: text, module: m.module(text[:max(at, 0)]),
			unnamed: at >= 0 && (text[at] == '+' || strings.HasPrefix(text[at:], "!fn@")),
			system:  !signature.Builtin().Ordinary(text)})
	}
	return id
}

// module numbers modules, from 1; 0 is none.
func (m *Model) module(text string) uint32 {
	if text == "" {
		return 0
	}
	n, ok := m.modules[text]
	if !ok {
		n = uint32(len(m.modules) + 1)
		m.modules[text] = n
	}
	return n
}

// weight is what a frame says that both stacks have.
func (m *Model) weight(e *entry) int32 {
	w := m.all - m.logOf(int(m.names[e.id].clusters))
	if e.unnamed {
		w = min(w, m.costs.unnamed)
	}
	if e.system {
		w = times(w, m.costs.system)
	}
	return times(w, m.position[e.rank])
}

func times(a, b int32) int32 { return int32(int64(a) * int64(b) / one) }

// logOf is the logarithm of how many clusters have a frame.
func (m *Model) logOf(n int) int32 {
	for n >= len(m.log) {
		m.log = append(m.log, fixed(math.Log(float64(len(m.log))+owner)))
	}
	return m.log[n]
}

// distinct gives the first frame of each name of a stack.
func (s *Stack) distinct(yield func(entry) bool) {
	for i, at := range s.sorted {
		e := s.entries[at]
		if i > 0 && s.entries[s.sorted[i-1]].id == e.id {
			continue
		}
		if !yield(e) {
			return
		}
	}
}
