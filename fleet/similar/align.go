package similar

import (
	"math"
	"strings"
)

// costs are the parameters in fixed-point numbers.
type costs struct {
	system, chain, unnamed, hidden, variant, gap, gaps, topSystem, top, cut, way, topWay, utility int32
}

func (p *Params) costs() costs {
	return costs{fixed(p.System), fixed(p.Chain), fixed(p.Unnamed), fixed(p.Hidden), fixed(p.Variant), fixed(p.Gap), fixed(p.Gaps),
		fixed(p.TopSystem), fixed(p.Top), fixed(p.Cut), fixed(p.Way), fixed(p.TopWay), fixed(p.Utility)}
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

// align returns what the best alignment of two stacks says for their being of one
// fault, in units of 1/one: never when no frame matches, or when all that match cannot
// speak for it. It is the same for both orders.
//
// The table has a row for each frame of a and a column for each of b; only two rows of it are
// kept. A cell has the best of all alignments down to these two frames: when they match, and
// when one of the stacks has a frame there that the other lacks.
func (m *Model) align(a, b *Stack) int32 {
	x, y := a.entries, b.entries
	wx, wy := m.weigh(x, &m.weights[0]), m.weigh(y, &m.weights[1])
	if m.most(a, b, wx, wy) <= 0 {
		return never
	}
	match, gap := m.rows[0][:len(y)+1], m.rows[1][:len(y)+1]
	matched, gapped := m.rows[2][:len(y)+1], m.rows[3][:len(y)+1] // of the row above
	match[0], gap[0] = 0, never
	skips := m.skips[:len(y)]
	for k := range y {
		skips[k] = m.skip(&y[k])
		match[k+1], gap[k+1] = never, skips[k].after(match[k], gap[k])
	}
	best := int32(never)
	for i := range x {
		match, gap, matched, gapped = matched, gapped, match, gap
		skip := m.skip(&x[i])
		match[0], gap[0] = never, skip.after(matched[0], gapped[0])
		for k := range y {
			match[k+1] = never
			if x[i].id == y[k].id || x[i].module == y[k].module {
				if to := m.pair(x, y, i, k, matched[k], gapped[k]); to > never/2 {
					match[k+1] = to
					best = max(best, to+m.end(x, y, i, k))
				}
			}
			gap[k+1] = max(skip.after(matched[k+1], gapped[k+1]), skips[k].after(match[k], gap[k]))
		}
	}
	return best
}

func (m *Model) weigh(entries []entry, into *[MaxDepth]int32) []int32 {
	for i := range entries {
		into[i] = m.weight(&entries[i])
	}
	return into[:len(entries)]
}

// most is more than an alignment can say: all frames that both have, in whatever order.
// What is against it is only that the one's topmost is not among the other's frames.
func (m *Model) most(a, b *Stack, wa, wb []int32) int32 {
	sum := int32(a.unnamed+b.unnamed) * max(m.costs.hidden, 0)
	lacksA, lacksB := m.costs.top, m.costs.top
	for i, k := 0, 0; i < len(a.sorted) && k < len(b.sorted); {
		p, q := a.sorted[i], b.sorted[k]
		switch x, y := a.entries[p].id, b.entries[q].id; {
		case x == y:
			sum += (wa[p] + wb[q]) / 2
			if int(p) == a.top {
				lacksA = 0
			}
			if int(q) == b.top {
				lacksB = 0
			}
			i++
			k++
		case x < y:
			i++
		default:
			k++
		}
	}
	if a.unnamed+b.unnamed > 0 || a.top == len(a.entries) || b.top == len(b.entries) || sum == 0 {
		return sum
	}
	if p, q := &a.entries[a.top], &b.entries[b.top]; m.variants(p, q) {
		return sum + max((wa[a.top]+wb[b.top])/2+m.costs.variant, 0)
	}
	return sum + min(lacksA, 0) + min(lacksB, 0)
}

// variants reports whether two frames are of one routine, by their names.
func (m *Model) variants(a, b *entry) bool {
	p, q := m.names[a.id].text, m.names[b.id].text
	return a.module == b.module && (strings.HasPrefix(p, q) || strings.HasPrefix(q, p))
}

// pair is the best down to two frames that are matched with each other: never when they may
// not be.
func (m *Model) pair(x, y []entry, i, k int, matched, gapped int32) int32 {
	a, b := &x[i], &y[k]
	mean := (m.weights[0][i] + m.weights[1][k]) / 2
	switch {
	case a.id == b.id:
	case a.unnamed || b.unnamed:
		mean = min(m.costs.hidden, m.weights[0][i], m.weights[1][k])
	case a.rank == 0 && b.rank == 0 && m.variants(a, b):
		mean += m.costs.variant
	default:
		return never
	}
	chained := mean
	if a.rank > 0 && b.rank > 0 {
		chained = times(mean, m.costs.chain)
	}
	return max(matched+chained, gapped+mean)
}

// skips are what it costs that the other stack lacks a frame: behind a match, and behind
// another such frame.
type skips struct{ first, more int32 }

func (s skips) after(match, gap int32) int32 { return max(match+s.first, gap+s.more) }

func (m *Model) skip(e *entry) skips {
	switch {
	case e.rank > 0:
		return skips{m.costs.gap, m.costs.gaps}
	case e.system:
		return skips{m.costs.topSystem, m.costs.topSystem}
	}
	return skips{m.costs.top, m.costs.top}
}

// end is what it costs that what follows a match is not compared.
func (m *Model) end(x, y []entry, i, k int) int32 {
	switch {
	case i == len(x)-1 && k == len(y)-1:
		return 0
	case i == len(x)-1 || k == len(y)-1:
		return m.costs.cut
	case x[i].rank > 0 && y[k].rank > 0:
		return m.costs.way
	}
	return m.costs.topWay + m.costs.utility*max(0, int32(min(m.names[x[i].id].callers, 100))-fewCallers)
}
