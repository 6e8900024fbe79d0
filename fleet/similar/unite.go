package similar

import "slices"

// While few clusters are known, two ways to one fault make two of them: how rare the
// fault's frames are shows later. So a cluster is compared with the others anew each time
// that it has doubled.

// unite takes clusters together that are of one fault by what is known now.
func (m *Model) unite(n int32) (done []Union) {
	for {
		other := m.twin(n)
		if other < 0 {
			return done
		}
		n, other = min(n, other), max(n, other)
		done = append(done, Union{m.clusters[other].id, m.clusters[n].id})
		m.absorb(n, other)
	}
}

// twin is the cluster for which most is said to be of the same fault as another, -1 when
// for none enough is said. The oldest is it among equals.
func (m *Model) twin(n int32) int32 {
	c := m.clusters[n]
	best, at := fixed(m.params.Unite), int32(-1)
	for _, k := range m.candidates(c.reps[0], c.group) {
		o := m.clusters[k]
		if k == n || len(o.reps)+len(c.reps) > 2*maxReps {
			continue
		}
		odds := m.between(c, o) + m.bonus(max(c.size, o.size))
		if odds > best || odds == best && (at < 0 || k < at) {
			best, at = odds, k
		}
	}
	return at
}

// between is what the representatives of two clusters say for their being of one fault: the
// mean of what each finds best in the other cluster.
func (m *Model) between(a, b *cluster) int32 {
	best := make([]int32, len(a.reps)+len(b.reps))
	for i := range best {
		best[i] = worst
	}
	for i, r := range a.reps {
		for k, q := range b.reps {
			e := m.align(r, q)
			best[i] = max(best[i], e)
			best[len(a.reps)+k] = max(best[len(a.reps)+k], e)
		}
	}
	sum := int64(0)
	for _, e := range best {
		sum += int64(e)
	}
	return int32(sum / int64(len(best)))
}

// absorb makes a cluster a part of an older one. Its representatives go on as that one's.
func (m *Model) absorb(into, from int32) {
	c, o := m.clusters[into], m.clusters[from]
	for _, r := range o.reps {
		for e := range r.distinct {
			if at, listed := slices.BinarySearch(m.leads[e.id], from); listed {
				m.leads[e.id] = slices.Delete(m.leads[e.id], at, at+1)
				m.names[e.id].clusters--
			}
		}
	}
	for _, r := range o.reps {
		m.represent(into, r)
	}
	c.size += o.size
	o.reps, o.size = nil, 0
	m.live--
	m.countAll()
}
