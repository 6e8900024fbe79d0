package similar

import (
	"math"
	"slices"
)

// costs are the parameters in fixed-point numbers.
type costs struct {
	system, chain, place, unnamed, hidden, variant, gap, gaps, wrap, reported, topSystem, top, cut, way, topWay, utility, apart int32
}

func (p *Params) costs() costs {
	return costs{fixed(p.System), fixed(p.Chain), fixed(p.Place), fixed(p.Unnamed), fixed(p.Hidden), fixed(p.Variant), fixed(p.Gap), fixed(p.Gaps),
		fixed(p.Wrap), fixed(p.Reported), fixed(p.TopSystem), fixed(p.Top), fixed(p.Cut), fixed(p.Way), fixed(p.TopWay), fixed(p.Utility), fixed(p.Apart)}
}

// never is said where nothing is in common. It is far from the least number, so that all
// costs of the deepest stacks can be added to it.
const never = math.MinInt32 / 2

// half is the evidence that a score of 1/2 stands for.
const half = 10

// fewCallers is how many callers of a frame are taken for the ways of one fault.
const fewCallers = 3

// Score is how alike two stacks are, from -1, nothing in common, over 0, as much
// against one fault as for it, towards 1.
func (m *Model) Score(a, b *Stack) float64 { return score(m.align(a, b)) }

func score(evidence int32) float64 {
	if evidence <= never {
		return -1
	}
	e := float64(evidence) / one
	return e / (math.Abs(e) + half)
}

// side is one of two stacks that are aligned.
type side struct {
	entries []entry
	weights [MaxDepth]int32
	ranks   [MaxDepth]uint8 // how many of the program's frames are above, wrappers left out
	top     int             // the place of the first of them; the stack's depth when there is none
}

func (m *Model) weigh(s *Stack, into *side) {
	into.entries, into.top = s.entries, len(s.entries)
	rank := 0
	for i := range s.entries {
		e := &s.entries[i]
		into.ranks[i], into.weights[i] = uint8(rank), m.weight(e, rank)
		if e.system || m.names[e.id].wrapper {
			continue
		}
		if rank == 0 {
			into.top = i
		}
		rank++
	}
}

// align returns what the best alignment of two stacks says for their being of one
// fault, in units of 1/one: never when no frame matches, or when all that match cannot
// speak for it. It is the same for both orders.
//
// The table has a row for each frame of a and a column for each of b; only two rows of it are
// kept. A cell has the best of all alignments down to these two frames: when they match, and
// when one of the stacks has a frame there that the other lacks.
func (m *Model) align(a, b *Stack) int32 {
	x, y := a.entries, b.entries
	m.weigh(a, &m.sides[0])
	m.weigh(b, &m.sides[1])
	most, apart := m.most(a, b)
	if most <= 0 {
		return never
	}
	match, gap := m.rows[0][:len(y)+1], m.rows[1][:len(y)+1]
	matched, gapped := m.rows[2][:len(y)+1], m.rows[3][:len(y)+1] // of the row above
	match[0], gap[0] = 0, never
	skips := m.skips[:len(y)]
	for k := range y {
		skips[k] = m.skip(&m.sides[1], k)
		match[k+1], gap[k+1] = never, skips[k].after(match[k], gap[k])
	}
	best := int32(never)
	for i := range x {
		match, gap, matched, gapped = matched, gapped, match, gap
		skip := m.skip(&m.sides[0], i)
		match[0], gap[0] = never, skip.after(matched[0], gapped[0])
		for k := range y {
			match[k+1] = never
			if x[i].id == y[k].id || x[i].module == y[k].module {
				if to := m.pair(i, k, matched[k], gapped[k]); to > never/2 {
					match[k+1] = to
					best = max(best, to+m.end(i, k))
				}
			}
			gap[k+1] = max(skip.after(matched[k+1], gapped[k+1]), skips[k].after(match[k], gap[k]))
		}
	}
	if apart && best > never {
		best += m.costs.apart
	}
	return best
}

// most is more than an alignment can say: all frames that both have, in whatever order.
// What is against it is only that the one's topmost is not among the other's frames. When neither
// is they are apart.
func (m *Model) most(a, b *Stack) (sum int32, apart bool) {
	x, y := &m.sides[0], &m.sides[1]
	sum = int32(a.unnamed+b.unnamed) * max(m.costs.hidden, 0)
	lacksA, lacksB := m.costs.top, m.costs.top
	for i, k := 0, 0; i < len(a.sorted) && k < len(b.sorted); {
		p, q := a.sorted[i], b.sorted[k]
		switch r, s := a.entries[p].id, b.entries[q].id; {
		case r == s:
			sum += (x.weights[p] + y.weights[q]) / 2
			if int(p) == x.top {
				lacksA = 0
			}
			if int(q) == y.top {
				lacksB = 0
			}
			i++
			k++
		case r < s:
			i++
		default:
			k++
		}
	}
	if x.top == len(a.entries) || y.top == len(b.entries) || sum == 0 {
		return sum, false
	}
	if m.variants(&a.entries[x.top], &b.entries[y.top]) {
		return sum + max((x.weights[x.top]+y.weights[y.top])/2+m.costs.variant, 0), false
	}
	apart = lacksA < 0 && lacksB < 0 && !b.mayHave(&a.entries[x.top]) && !a.mayHave(&b.entries[y.top])
	if a.unnamed+b.unnamed > 0 {
		return sum, apart
	}
	return sum + min(lacksA, 0) + min(lacksB, 0), apart
}

// mayHave reports whether a frame may be one of a stack's without a name, or is one itself.
func (s *Stack) mayHave(e *entry) bool {
	if e.unnamed {
		return true
	}
	if s.unnamed == 0 {
		return false
	}
	return slices.ContainsFunc(s.entries, func(o entry) bool { return o.unnamed && o.module == e.module })
}

// pair is the best down to two frames that are matched with each other: never when they may
// not be.
func (m *Model) pair(i, k int, matched, gapped int32) int32 {
	x, y := &m.sides[0], &m.sides[1]
	a, b := &x.entries[i], &y.entries[k]
	mean := (x.weights[i] + y.weights[k]) / 2
	switch {
	case a.id == b.id:
	case a.unnamed || b.unnamed:
		mean = min(m.costs.hidden, x.weights[i], y.weights[k], times(m.costs.unnamed, m.position[max(x.ranks[i], y.ranks[k])]))
	case x.ranks[i] == 0 && y.ranks[k] == 0 && m.variants(a, b):
		mean += m.costs.variant
	default:
		return never
	}
	chained := mean
	if x.ranks[i] > 0 && y.ranks[k] > 0 {
		chained = times(mean, m.costs.chain)
	}
	return max(matched+chained, gapped+mean)
}

// skips are what it costs that the other stack lacks a frame: behind a match, and behind
// another such frame.
type skips struct{ first, more int32 }

func (s skips) after(match, gap int32) int32 { return max(match+s.first, gap+s.more) }

func (m *Model) skip(s *side, i int) skips {
	e := &s.entries[i]
	switch {
	case e.reported:
		return skips{m.costs.reported, m.costs.reported}
	case m.names[e.id].wrapper && !e.system:
		return skips{m.costs.wrap, m.costs.wrap}
	case s.ranks[i] > 0:
		return skips{m.costs.gap, m.costs.gaps}
	case e.system:
		return skips{m.costs.topSystem, m.costs.topSystem}
	}
	return skips{m.costs.top, m.costs.top}
}

// end is what it costs that what follows a match is not compared.
func (m *Model) end(i, k int) int32 {
	x, y := &m.sides[0], &m.sides[1]
	switch {
	case i == len(x.entries)-1 && k == len(y.entries)-1:
		return 0
	case i == len(x.entries)-1 || k == len(y.entries)-1:
		return m.costs.cut
	case x.ranks[i] > 0 && y.ranks[k] > 0:
		return m.costs.way
	}
	callers := max(m.names[x.entries[i].id].callers, m.names[y.entries[k].id].callers)
	return m.costs.topWay + m.costs.utility*max(0, int32(min(callers, 100))-fewCallers)
}
