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
//   - The topmost frame may be another variant of the same routine. Two of which neither
//     stack has the other's are two faults'.
//   - What is met between whatever frames is a wrapper. It costs little and is not counted,
//     and so does what reports a fault.
//
// A cluster is some kinds of stacks, each represented by a member; the first of these is
// the cluster's leader. A stack joins the cluster for which most is said, the more willingly
// the more stacks it has, or else leads a cluster of its own. A member that is not much like
// any representative becomes one. Kinds of stacks leave a cluster, and clusters become one,
// when what is known since tells so; the leader stays, so that a cluster's id is stable.
//
// A Model holds everything in memory and does no input or output. It is used by
// one goroutine.
package similar

import (
	"cmp"
	"math"
	"slices"
)

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
	id       uint32 // of the name
	module   uint32
	unnamed  bool
	system   bool
	reported bool // it is no deeper than the outermost frame that a fault is reported by
}

// Stack is a stack ready for comparison.
type Stack struct {
	id      string
	entries []entry
	sorted  []uint16 // places in entries, by id, then place
	unnamed int      // frames without a name
}

// Model knows how common frames are, and the clusters.
type Model struct {
	params   Params
	costs    costs
	ids      map[string]uint32
	names    []name
	modules  map[string]uint32
	live     int              // clusters that are no part of another
	all      int32            // logarithm of their number
	log      []int32          // of a number of clusters that have a frame
	position []int32          // weights by rank
	callers  map[uint64]int32 // representatives with a topmost frame and the one below it

	clusters []*cluster
	leads    map[uint32][]int32 // by frame: clusters with a representative that has it, ascending
	groups   map[string]uint32
	shared   []int32 // by cluster: the weight that it shares with the stack that candidates are sought for, else 0

	// What align works in.
	rows  [4][MaxDepth + 1]int32
	sides [2]side
	skips [MaxDepth]skips
}

// New returns an empty model.
func New(p Params) *Model {
	m := &Model{params: p, costs: p.costs(), ids: map[string]uint32{}, groups: map[string]uint32{}, modules: map[string]uint32{}, leads: map[uint32][]int32{}, callers: map[uint64]int32{}}
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
	s := &Stack{entries: make([]entry, len(frames)), sorted: make([]uint16, len(frames))}
	below := 0 // the outermost frame by which a fault is reported, if any stands below that
	for i, text := range frames {
		id := m.id(text)
		n := &m.names[id]
		s.entries[i] = entry{id: id, module: n.module, unnamed: n.unnamed, system: n.system}
		s.sorted[i] = uint16(i)
		if n.unnamed {
			s.unnamed++
		}
		if n.sentinel && i < len(frames)-1 {
			below = i + 1
		}
	}
	for i := range below {
		s.entries[i].system, s.entries[i].reported = true, true
	}
	slices.SortFunc(s.sorted, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(s.entries[a].id, s.entries[b].id), cmp.Compare(a, b))
	})
	return s
}

// weight is what a frame says that both stacks have, below so many of the program's.
func (m *Model) weight(e *entry, rank int) int32 {
	w := m.all - m.logOf(int(m.names[e.id].clusters))
	if e.unnamed {
		w = min(w, m.costs.place)
	}
	if e.system {
		w = times(w, m.costs.system)
	}
	return times(w, m.position[rank])
}

func times(a, b int32) int32 { return int32(int64(a) * int64(b) / one) }

// logOf is the logarithm of how many clusters have a frame.
func (m *Model) logOf(n int) int32 {
	for n >= len(m.log) {
		m.log = append(m.log, fixed(math.Log(float64(len(m.log))+owner)))
	}
	return m.log[n]
}

// distinct gives the first place of each name of a stack.
func (s *Stack) distinct(yield func(int) bool) {
	for i, at := range s.sorted {
		if i > 0 && s.entries[s.sorted[i-1]].id == s.entries[at].id {
			continue
		}
		if !yield(int(at)) {
			return
		}
	}
}
