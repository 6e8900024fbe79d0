package similar

import (
	"math"
	"slices"
)

// While few clusters are known, two ways to one fault make two of them, and two faults
// in one utility make one: how rare the fault's frames are, how many callers the utility has,
// and that too many of a fault's stacks would have lost their topmost frame, shows later. So a
// cluster is looked at anew each time that it has doubled.

// remake takes kinds of stacks out of a cluster that are of another fault by what is known now,
// and then clusters together that are of one.
func (m *Model) remake(n int32, group string) []Remade {
	changed := m.split(n)
	for _, k := range append([]int32{n}, changed...) {
		changed = append(changed, m.unite(k)...)
	}
	slices.Sort(changed)
	var out []Remade
	for _, k := range slices.Compact(changed) {
		r := Remade{ID: m.clusters[k].id, Group: group}
		for _, kind := range m.clusters[k].reps {
			r.Kinds = append(r.Kinds, kind.stack.id)
		}
		out = append(out, r)
	}
	return out
}

// split makes a cluster anew of its kinds of stacks: those for which most is said are
// put together first. The leader's go on as the cluster. It returns which clusters have changed.
func (m *Model) split(n int32) []int32 {
	c := m.clusters[n]
	t := m.compare(c.reps)
	groups := make([][]int, len(c.reps))
	for i := range groups {
		groups[i] = []int{i}
	}
	for len(groups) > 1 {
		x, y := t.nearest(groups, fixed(m.params.Split)-m.bonus(c.size))
		if x < 0 {
			break
		}
		groups[x] = append(groups[x], groups[y]...)
		groups = slices.Delete(groups, y, y+1)
	}
	if len(groups) < 2 {
		return nil
	}
	changed := []int32{n}
	group, reps := c.group, m.empty(n)
	for g, list := range groups {
		slices.Sort(list)
		to := n
		if g > 0 {
			to = m.found(reps[list[0]].stack.id, group)
			changed = append(changed, to)
		}
		for _, i := range list {
			m.represent(to, reps[i])
		}
	}
	return changed
}

// unite takes clusters together that are of one fault by what is known now. It returns which
// clusters have changed.
func (m *Model) unite(n int32) (changed []int32) {
	for len(m.clusters[n].reps) > 0 {
		other := m.twin(n)
		if other < 0 {
			break
		}
		n, other = min(n, other), max(n, other)
		for _, r := range m.empty(other) {
			m.represent(n, r)
		}
		m.live--
		m.countAll()
		changed = append(changed, n, other)
	}
	return changed
}

// twin is the cluster for which most is said to be of the same fault as another, -1 when
// for none enough is said. The oldest is it among equals.
func (m *Model) twin(n int32) int32 {
	c := m.clusters[n]
	best, at := fixed(m.params.Unite), int32(-1)
	for _, k := range m.candidates(c.reps[0].stack, c.group) {
		o := m.clusters[k]
		if k == n || len(o.reps)+len(c.reps) > mostReps {
			continue
		}
		odds := m.between(c, o) + m.bonus(max(c.size, o.size))
		if odds > best || odds == best && (at < 0 || k < at) {
			best, at = odds, k
		}
	}
	return at
}

// between is what is said for two clusters to be of one fault.
func (m *Model) between(a, b *cluster) int32 {
	t := m.compare(slices.Concat(a.reps, b.reps))
	all := make([]int, len(t.reps))
	for i := range all {
		all[i] = i
	}
	return t.between(all[:len(a.reps)], all[len(a.reps):])
}

// table is some kinds of stacks, and what each says of each other. That is asked when it is
// needed.
type table struct {
	m    *Model
	reps []rep
	says []int32
	same []bool // their topmost frames
}

// unasked is no evidence.
const unasked = math.MaxInt32

func (m *Model) compare(reps []rep) *table {
	n := len(reps)
	t := &table{m, reps, make([]int32, n*n), make([]bool, n*n)}
	for i := range reps {
		for k := range i + 1 {
			same := i == k || m.sameTop(reps[i].stack, reps[k].stack)
			t.same[i*n+k], t.same[k*n+i] = same, same
			t.says[i*n+k], t.says[k*n+i] = unasked, unasked
		}
	}
	return t
}

func (t *table) evidence(i, k int) int32 {
	n := len(t.reps)
	if t.says[i*n+k] == unasked {
		e := t.m.align(t.reps[i].stack, t.reps[k].stack)
		t.says[i*n+k], t.says[k*n+i] = e, e
	}
	return t.says[i*n+k]
}

// nearest returns the two groups of kinds for which most is said, and more than least;
// the first two among equals, and -1 when there are none.
func (t *table) nearest(groups [][]int, least int32) (x, y int) {
	x, y = -1, -1
	for i := range groups {
		for k := range i {
			if e := t.between(groups[i], groups[k]); e > least {
				least, x, y = e, k, i
			}
		}
	}
	return x, y
}

// between is the mean of what each member finds best in the other group.
func (t *table) between(a, b []int) int32 {
	sum, all := int64(0), int64(0)
	for _, two := range [][2][]int{{a, b}, {b, a}} {
		for _, i := range two[0] {
			best := int32(worst)
			for _, k := range two[1] {
				if e := t.evidence(i, k); e > best {
					best = max(best, e-t.shift(i, k, a, b))
				}
			}
			sum += int64(best) * int64(t.reps[i].near)
			all += int64(t.reps[i].near)
		}
	}
	return int32(sum / all)
}

// shift is what is said against two kinds of stacks by their numbers, when their topmost frames
// differ: few of a fault's stacks have lost theirs. It is the logarithm of the odds of so
// many.
func (t *table) shift(i, k int, a, b []int) int32 {
	n := len(t.reps)
	if t.same[i*n+k] {
		return 0
	}
	like, unlike := 0, 0 // members whose topmost frame is as that of i, and of k
	for _, group := range [][]int{a, b} {
		for _, x := range group {
			if t.same[i*n+x] {
				like += t.reps[x].near
			}
			if t.same[k*n+x] {
				unlike += t.reps[x].near
			}
		}
	}
	all := float64(like + unlike)
	is, may := float64(min(like, unlike))/all, min(max(t.m.params.Share, 0.001), 0.5)
	if is <= may {
		return 0
	}
	return fixed(t.m.params.Shift * all * (is*math.Log(is/may) + (1-is)*math.Log((1-is)/(1-may))))
}
