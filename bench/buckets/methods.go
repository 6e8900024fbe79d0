package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/fleet/similar"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/signature"
	"dumptriage/unwind"
)

// measure is a way to compare two stacks of a list, higher is more alike.
type measure interface {
	prepare(all []stack)
	score(i, k int) float64
}

// method is a measure with what can be tuned of it.
type method struct {
	name string
	make []func() measure // one for each setting of its parameters
}

var methods = []method{
	{"exact hash", []func() measure{func() measure { return &byText{text: func(s []string) string { return strings.Join(s, "\n") }} }}},
	{"signature bkt1", []func() measure{func() measure { return &byText{text: signatureText} }}},
	{"prefix match", []func() measure{func() measure { return &prefix{} }}},
	{"Jaccard", []func() measure{func() measure { return &jaccard{} }}},
	{"ReBucket (PDM)", settings([]float64{0, 0.1, 0.3}, []float64{0.05, 0.13, 0.5}, []float64{0}, func(c, o, _ float64) measure { return &pdm{c: c, o: o} })},
	{"FaST", settings([]float64{0.1, 0.3, 1}, []float64{3, 10, 20}, []float64{0.1, 0.3}, func(a, b, g float64) measure { return &fast{a: a, b: b, g: g} })},
	{"fleet/similar", []func() measure{func() measure { return &own{} }}},
}

func settings(a, b, g []float64, make func(a, b, g float64) measure) (out []func() measure) {
	for _, x := range a {
		for _, y := range b {
			for _, z := range g {
				out = append(out, func() measure { return make(x, y, z) })
			}
		}
	}
	return out
}

// byText makes equal what has an equal text.
type byText struct {
	text  func([]string) string
	texts []string
}

func (m *byText) prepare(all []stack) {
	for _, s := range all {
		m.texts = append(m.texts, m.text(s.frames))
	}
}

func (m *byText) score(i, k int) float64 {
	if m.texts[i] == m.texts[k] {
		return 1
	}
	return -1 // under every threshold
}

// signatureText is the signature of a stack that is all certain.
func signatureText(frames []string) string {
	half := &triage.Half{}
	modules := map[string]*triage.Module{}
	for _, f := range frames {
		at := strings.IndexAny(f, "!+")
		m := modules[f[:at]]
		if m == nil {
			m = &triage.Module{Module: &dump.Module{Path: f[:at] + ".dll", Size: 1 << 32}}
			modules[f[:at]] = m
		}
		fr := triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustCFI}, Module: m}
		if f[at] == '!' {
			fr.Name = symbols.Name{Function: f[at+1:], Source: symbols.SourcePDB}
		} else {
			fr.IP = uint64(hashOf(f, 0))
		}
		half.Frames = append(half.Frames, fr)
	}
	inc := &triage.Incident{Threads: []triage.Thread{{User: half}}, Crash: &triage.Crash{Exception: dump.Exception{Code: 0xc0000005}}}
	return signature.Of(inc, signature.Options{}).Text
}

// prefix is how much of two stacks, from the top, is the same.
type prefix struct{ all []stack }

func (m *prefix) prepare(all []stack) { m.all = all }

func (m *prefix) score(i, k int) float64 {
	a, b := m.all[i].frames, m.all[k].frames
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return float64(n) / float64(max(len(a), len(b)))
}

// jaccard is the share of the frames that both have.
type jaccard struct{ sets [][]int }

func (m *jaccard) prepare(all []stack) {
	ids := newInterner()
	for _, s := range all {
		set := ids.all(s.frames)
		slices.Sort(set)
		m.sets = append(m.sets, slices.Compact(set))
	}
}

func (m *jaccard) score(i, k int) float64 {
	a, b := m.sets[i], m.sets[k]
	both, x, y := 0, 0, 0
	for x < len(a) && y < len(b) {
		switch {
		case a[x] == b[y]:
			both, x, y = both+1, x+1, y+1
		case a[x] < b[y]:
			x++
		default:
			y++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// pdm is the position dependent model of ReBucket (Dang et al., ICSE 2012): the
// best alignment, in which a match counts the more the nearer it is to the top and
// the less it has moved.
type pdm struct {
	c, o   float64
	ids    [][]int
	top    []float64 // exp(-c*i)
	moved  []float64 // exp(-o*i)
	total  []float64
	row, p []float64
}

func (m *pdm) prepare(all []stack) {
	ids := newInterner()
	longest := 0
	for _, s := range all {
		m.ids = append(m.ids, ids.all(s.frames))
		longest = max(longest, len(s.frames))
	}
	sum := 0.0
	m.total = append(m.total, 0)
	for i := range longest + 1 {
		m.top, m.moved = append(m.top, math.Exp(-m.c*float64(i))), append(m.moved, math.Exp(-m.o*float64(i)))
		sum += m.top[i]
		m.total = append(m.total, sum)
	}
	m.row, m.p = make([]float64, longest+1), make([]float64, longest+1)
}

func (m *pdm) score(i, k int) float64 {
	a, b := m.ids[i], m.ids[k]
	last, row := m.p[:len(b)+1], m.row[:len(b)+1]
	clear(last)
	for x := range a {
		row[0] = 0
		for y := range b {
			row[y+1] = max(row[y], last[y+1])
			if a[x] == b[y] {
				row[y+1] = max(row[y+1], last[y]+m.top[min(x, y)]*m.moved[max(x, y)-min(x, y)])
			}
		}
		last, row = row, last
	}
	return last[len(b)] / m.total[min(len(a), len(b))]
}

// fast is the measure FaST (Rodrigues, Aloise, Fernandes, MSR 2022): frames are
// matched by name in order of their occurrence; a match counts the more the nearer the
// frame is to the top, the fewer stacks have it, and the less it has moved; frames without
// a match count against. Frames sorted by name make it linear in the depth.
type fast struct {
	a, b, g float64 // of position, frequency and shift
	stacks  [][]weighed
}

type weighed struct {
	id, pos int
	weight  float64
}

func (m *fast) prepare(all []stack) {
	ids := newInterner()
	df := map[int]int{}
	for _, s := range all {
		var st []weighed
		for pos, id := range ids.all(s.frames) {
			st = append(st, weighed{id: id, pos: pos})
		}
		slices.SortFunc(st, func(x, y weighed) int { return cmp.Or(cmp.Compare(x.id, y.id), cmp.Compare(x.pos, y.pos)) })
		for i := range st {
			if i == 0 || st[i].id != st[i-1].id {
				df[st[i].id]++
			}
		}
		m.stacks = append(m.stacks, st)
	}
	for _, st := range m.stacks {
		for i := range st {
			f := &st[i]
			f.weight = math.Pow(float64(f.pos+1), -m.a) * math.Exp(-m.b*float64(df[f.id])/float64(len(all)))
		}
	}
}

func (m *fast) score(i, k int) float64 {
	x, y := m.stacks[i], m.stacks[k]
	var score, total float64
	p, q := 0, 0
	for p < len(x) || q < len(y) {
		switch {
		case p < len(x) && q < len(y) && x[p].id == y[q].id:
			w := x[p].weight + y[q].weight
			score += w * math.Exp(-m.g*math.Abs(float64(x[p].pos-y[q].pos)))
			total += w
			p++
			q++
		case q == len(y) || p < len(x) && x[p].id < y[q].id:
			score -= x[p].weight
			total += x[p].weight
			p++
		default:
			score -= y[q].weight
			total += y[q].weight
			q++
		}
	}
	return score / max(total, 1e-9)
}

// own is this project's measure, which knows the clusters that it made of the stacks.
type own struct {
	model  *similar.Model
	stacks []*similar.Stack
}

func (m *own) prepare(all []stack) {
	m.model, m.stacks = similar.New(similar.DefaultParams), nil
	for i, s := range all {
		m.model.Place(strconv.Itoa(i), s.class, s.frames)
		m.stacks = append(m.stacks, m.model.Stack(s.frames))
	}
}

func (m *own) score(i, k int) float64 { return m.model.Score(m.stacks[i], m.stacks[k]) }

// interner numbers names.
type interner map[string]int

func newInterner() interner { return interner{} }

func (in interner) all(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		id, ok := in[n]
		if !ok {
			id = len(in)
			in[n] = id
		}
		out[i] = id
	}
	return out
}
