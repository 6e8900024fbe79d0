package similar

import (
	"hash/fnv"
	"math/bits"
	"strings"

	"dumptriage/triage/signature"
)

// name is what is known of a frame's name.
type name struct {
	text     string
	module   uint32
	bit      uint8 // of this name in the sketches of others
	unnamed  bool
	system   bool   // signatures walk past it
	sentinel bool   // a fault is reported by it
	wrapper  bool   // it is met between whatever frames
	clusters uint32 // that have a representative with it
	callers  uint32 // program's frames met below it where it is the topmost
	// Sketches of the names that were met right above and right below it: a bit for
	// some of all names.
	above, below uint64
}

func (m *Model) id(text string) uint32 {
	id, ok := m.ids[text]
	if !ok {
		id = uint32(len(m.names))
		m.ids[text] = id
		at := strings.IndexAny(text, "!+")
		h := fnv.New32a()
		h.Write([]byte(text))
		rules := signature.Builtin()
		m.names = append(m.names, name{text: text, module: m.module(text[:max(at, 0)]), bit: uint8(h.Sum32() % 64),
			unnamed: at >= 0 && (text[at] == '+' || strings.HasPrefix(text[at:], "!fn@")),
			system:  !rules.Ordinary(text), sentinel: rules.Sentinel(text)})
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

// meet notes a representative's frames as each other's neighbours, and which of them
// turn out to be wrappers. All of it follows from the representatives alone, in
// whatever order they come.
func (m *Model) meet(s *Stack) {
	for i := range s.entries[:max(len(s.entries)-1, 0)] {
		a, b := &s.entries[i], &s.entries[i+1]
		m.names[a.id].below |= 1 << m.names[b.id].bit
		m.names[b.id].above |= 1 << m.names[a.id].bit
	}
	for i := range s.entries {
		m.wrap(s.entries[i].id)
	}
}

// wrap makes a name a wrapper that has become one: the callers that it hid are counted.
func (m *Model) wrap(id uint32) {
	n := &m.names[id]
	if n.wrapper || n.system || n.unnamed || float64(min(bits.OnesCount64(n.above), bits.OnesCount64(n.below))) < m.params.Wrapper {
		return
	}
	m.eachWith(id, func(r *Stack) { m.countCaller(r, -1) })
	n.wrapper = true
	m.eachWith(id, func(r *Stack) { m.countCaller(r, 1) })
}

// eachWith calls a function for the representatives of the clusters that a frame leads to.
func (m *Model) eachWith(id uint32, f func(*Stack)) {
	for _, c := range m.leads[id] {
		for _, r := range m.clusters[c].reps {
			f(r.stack)
		}
	}
}

// countCaller counts the program's frame below its topmost one, or no longer.
func (m *Model) countCaller(s *Stack, by int32) {
	t, n := m.tops(s)
	if n == len(s.entries) || s.entries[n].unnamed {
		return
	}
	top, next := s.entries[t].id, s.entries[n].id
	pair := uint64(top)<<32 | uint64(next)
	before := m.callers[pair]
	switch after := before + by; {
	case after <= 0:
		delete(m.callers, pair)
		m.names[top].callers--
	default:
		m.callers[pair] = after
		if before == 0 {
			m.names[top].callers++
		}
	}
}

// tops are the places of the program's topmost frame and the one below it, wrappers left
// out: the stack's depth when there is none.
func (m *Model) tops(s *Stack) (top, next int) {
	top = len(s.entries)
	for i := range s.entries {
		e := &s.entries[i]
		switch {
		case e.system || m.names[e.id].wrapper:
		case top == len(s.entries):
			top = i
		default:
			return top, i
		}
	}
	return top, len(s.entries)
}

// variants reports whether two frames are of one routine, by their names.
func (m *Model) variants(a, b *entry) bool {
	p, q := m.names[a.id].text, m.names[b.id].text
	return a.module == b.module && (strings.HasPrefix(p, q) || strings.HasPrefix(q, p))
}

// sameTop reports whether the program's topmost frames of two stacks may be the same.
func (m *Model) sameTop(a, b *Stack) bool {
	i, _ := m.tops(a)
	k, _ := m.tops(b)
	if i == len(a.entries) || k == len(b.entries) {
		return true
	}
	p, q := &a.entries[i], &b.entries[k]
	return p.id == q.id || m.variants(p, q) || p.module == q.module && (p.unnamed || q.unnamed)
}
