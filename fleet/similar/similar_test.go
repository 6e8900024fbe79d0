package similar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func frames(s string) []string { return strings.Fields(s) }

// plain makes every weight the logarithm of 5/0.5, as of a model without clusters, and
// every cost another.
var plain = Params{System: 1, Chain: 1, Place: 9, Unnamed: 9, Hidden: 0.5, Variant: -2, Gap: -0.1, Gaps: -0.3, Wrap: -0.02, Wrapper: 4, Reported: -0.03,
	TopSystem: -0.7, Top: -1.1, Apart: -0.01, Cut: -0.05, Way: -0.9, TopWay: -1.3}

func evidence(m *Model, a, b string) float64 {
	e := m.align(m.Stack(frames(a)), m.Stack(frames(b)))
	if back := m.align(m.Stack(frames(b)), m.Stack(frames(a))); back != e {
		return math.NaN()
	}
	return float64(e) / one
}

// Each of these can be worked out by hand: w for a frame that both have, and the costs.
func TestAlignByHand(t *testing.T) {
	w := math.Log(10)
	for _, c := range []struct {
		what, a, b string
		want       float64
	}{
		{"the same", "a!f a!g a!h", "a!f a!g a!h", 3 * w},
		{"nothing in common", "a!f a!g", "a!x a!y", never / one},
		{"no frames", "", "", never / one},
		{"another one between", "a!f a!g a!h", "a!f a!h", 2*w - 0.1},
		{"two others in a row", "a!f a!g a!h", "a!f a!x a!h", 2*w - 0.1 - 0.3},
		{"two others, not in a row", "a!f a!x a!g a!h", "a!f a!g a!y a!h", 3*w - 0.1 - 0.1},
		{"the topmost missing", "a!f a!g a!h", "a!g a!h", 2*w - 1.1},
		{"another one topmost", "a!f a!g a!h", "a!x a!g a!h", 2*w - 1.1 - 1.1 - 0.01},
		{"another one topmost that may be there without a name", "a!f a!g a!h", "a!x a!g a+12 a!h", 2*w - 1.1 - 1.1 - 0.1},
		{"the system's on top", "ntdll!RtlFreeHeap a!f", "a!f", w - 0.7},
		{"the report of the fault on top", "ntdll!KiUserExceptionDispatch a!f a!g", "a!f a!g", 2*w - 0.03},
		{"what is above the report", "a!x a!y ntdll!KiUserExceptionDispatch a!f a!g", "a!f a!g", 2*w - 3*0.03},
		{"a report that nothing is below of", "a!f ntdll!KiUserExceptionDispatch", "a!f", w - 0.05},
		{"one cut off", "a!f a!g a!h", "a!f a!g", 2*w - 0.05},
		{"other ways", "a!f a!g a!x a!y", "a!f a!g a!u", 2*w - 0.9},
		{"other ways right below the topmost", "a!f a!x a!y", "a!f a!u a!v", w - 1.3},
		{"no name, the module's", "a!f x!g a!h", "a!f x+12 a!h", 2*w + 0.5},
		{"no name but a begin", "a!f x!g a!h", "a!f x!fn@12 a!h", 2*w + 0.5},
		{"the body's hash is a name", "a!f x!g a!h", "a!f x!fn#12 a!h", 2*w - 0.1 - 0.3},
		{"no name, another module's", "a!f x!g a!h", "a!f y+12 a!h", 2*w - 0.1 - 0.3},
		{"the same place", "a!f x+12", "a!f x+12", 2 * w},
		{"a variant of the topmost", "a!Copy a!h", "a!CopyFast a!h", 2*w - 2},
		{"a variant further down", "a!f a!Copy a!h", "a!f a!CopyFast a!h", 2*w - 0.1 - 0.3},
		{"recursion", "a!f a!f a!f a!g", "a!f a!g", 2*w - 0.1 - 0.3},
		{"in another order", "a!f a!g", "a!g a!f", w - 1.1 - 0.05},
	} {
		if got := evidence(New(plain), c.a, c.b); !(math.Abs(got-c.want) < 1e-3) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// What weighs less: deeper frames, those of the system, those without a name, those that
// another match leads to expect, those that more clusters have.
func TestWeights(t *testing.T) {
	w := math.Log(10)
	set := func(change func(*Params)) *Model {
		p := plain
		change(&p)
		return New(p)
	}
	for _, c := range []struct {
		what string
		m    *Model
		s    string
		want float64
	}{
		{"position", set(func(p *Params) { p.Position = 1 }), "a!f a!g a!h", w + w/2 + w/3},
		{"position behind the system's", set(func(p *Params) { p.Position = 1 }), "ntdll!RtlFreeHeap a!f a!g", w + w + w/2},
		{"system", set(func(p *Params) { p.System = 0.25 }), "ntdll!RtlFreeHeap a!f", w/4 + w},
		{"unnamed", set(func(p *Params) { p.Place = 0.8 }), "a!f a+12", w + 0.8},
		{"chain", set(func(p *Params) { p.Chain = 0.5 }), "a!f a!g a!h", w + w/2 + w/2},
	} {
		if got := evidence(c.m, c.s, c.s); !(math.Abs(got-c.want) < 1e-3) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	m := New(plain)
	for i := range 10 {
		m.Place(fmt.Sprint(i), fmt.Sprint("group", i), frames(fmt.Sprintf("a!f%d a!common", i)))
	}
	rare, common := math.Log(15/1.5), math.Log(15/10.5)
	if got := evidence(m, "a!f1 a!common", "a!f1 a!common"); math.Abs(got-rare-common) > 1e-3 {
		t.Errorf("%v, want %v for what one of ten clusters has and %v for what all have", got, rare, common)
	}
}

// A frame below which many callers were met is a utility: that two stacks have it in
// common says the less, the more there are.
func TestUtility(t *testing.T) {
	p := plain
	p.Utility, p.Threshold, p.Unite = -0.25, 90, 90
	m := New(p)
	for i := range 5 {
		m.Place(fmt.Sprint(i), "g", frames(fmt.Sprintf("a!u a!f%d", i)))
	}
	want := math.Log(10/5.5) - 1.3 - 2*0.25 // five callers, two beyond those of one fault
	if got := evidence(m, "a!u a!x", "a!u a!y"); math.Abs(got-want) > 1e-3 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestScoreIsBounded(t *testing.T) {
	m := New(plain)
	for s, want := range map[string]float64{"a!x": -1, "a!f": math.Log(10) / (math.Log(10) + half)} {
		if got := m.Score(m.Stack(frames("a!f")), m.Stack(frames(s))); math.Abs(got-want) > 1e-4 {
			t.Errorf("with %s: %v, want %v", s, got, want)
		}
	}
}

// random makes stacks of some families: a family's stacks share most frames.
func random(r *rand.Rand, n int) [][]string {
	var out [][]string
	for range n {
		family := r.IntN(n/10 + 1)
		var s []string
		for i := range 6 + r.IntN(20) {
			switch {
			case r.IntN(8) == 0:
				s = append(s, fmt.Sprintf("lib!w%d", r.IntN(50)))
			case i > 15:
				s = append(s, fmt.Sprintf("os!start%d", i))
			default:
				s = append(s, fmt.Sprintf("app!f%d_%d", family, i))
			}
		}
		out = append(out, s)
	}
	return out
}

func place(m *Model, stacks [][]string, from int) (out []string) {
	for i, s := range stacks {
		p := m.Place(fmt.Sprintf("s%d", from+i), "g", s)
		out = append(out, fmt.Sprintf("%s %.6f %v %v", p.Cluster+" "+p.Kind, p.Score, p.New, p.Remade))
	}
	return out
}

// A model that was put away and restored decides as one that was not.
func TestRestoreGoesOnTheSame(t *testing.T) {
	stacks := random(rand.New(rand.NewPCG(1, 2)), 600)
	whole := New(DefaultParams)
	want := place(whole, stacks, 0)

	first := New(DefaultParams)
	got := place(first, stacks[:250], 0)
	second := Restore(DefaultParams, stateOf(first))
	got = append(got, place(second, stacks[250:], 250)...)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("stack %d: %s, want %s", i, got[i], want[i])
		}
	}
	if whole.live < 20 || whole.live > 400 || whole.live == len(whole.clusters) {
		t.Errorf("%d clusters of 600 stacks, %d before some became one: does this test test anything?", whole.live, len(whole.clusters))
	}
}

func stateOf(m *Model) (out []Cluster) {
	for _, c := range m.clusters {
		if len(c.reps) == 0 {
			continue // it is a part of another
		}
		kept := Cluster{ID: c.id, Group: "g"}
		for _, r := range c.reps {
			k := Kind{ID: r.stack.id, Size: r.near}
			for _, e := range r.stack.entries {
				k.Frames = append(k.Frames, m.names[e.id].text)
			}
			kept.Kinds = append(kept.Kinds, k)
		}
		out = append(out, kept)
	}
	return out
}

func TestGroupsStayApart(t *testing.T) {
	m := New(DefaultParams)
	m.Place("a", "crash", frames("a!f a!g a!h"))
	if p := m.Place("b", "hang", frames("a!f a!g a!h")); !p.New {
		t.Error("a hang joined the cluster of a crash")
	}
	if p := m.Place("c", "crash", frames("a!f a!g a!h a!x")); p.Cluster != "a" {
		t.Errorf("a stack like the first's is in %+v", p)
	}
	if got := m.Nearest("hang", frames("a!f a!g"), 3); len(got) != 1 || got[0].Cluster != "b" {
		t.Errorf("nearest: %+v", got)
	}
	if got := m.Nearest("other", frames("a!f a!g"), 3); len(got) != 0 {
		t.Errorf("nearest of a group without clusters: %+v", got)
	}
}

// A member that tells something new is compared with, and what it says is tempered by
// the mean of all members.
func TestRepresentatives(t *testing.T) {
	p := plain
	p.Unite, p.Familiar = 90, 2
	w := math.Log(6 / 1.5) // of frames that the one cluster has
	way := w - 1.3         // for a stack that has the topmost frame alone
	like := 3*w - 0.9      // and for one that has three of the second representative's
	for mean, want := range map[float64]float64{0: like, 0.5: (like + (like+2*way)/3) / 2} {
		p.Mean = mean
		m := New(p)
		m.Place("lead", "g", frames("a!f a!g a!h a!i"))
		if got := m.Place("way", "g", frames("a!f a!x a!y a!z")); got.Cluster != "lead" || got.Kind != "way" || math.Abs(got.Score-way/(way+half)) > 1e-4 {
			t.Errorf("another way: %+v", got)
		}
		if got := m.Place("same", "g", frames("a!f a!g a!h a!i")); got.Cluster != "lead" || got.Kind != "lead" {
			t.Errorf("one that tells nothing new: %+v", got)
		}
		if got := m.Place("like way", "g", frames("a!f a!x a!y a!q")); got.Cluster != "lead" || math.Abs(got.Score-want/(want+half)) > 1e-4 {
			t.Errorf("like the second representative, mean %v: %+v", mean, got)
		}
	}
}

// What is met between whatever frames is a wrapper: it costs what wrappers cost, does not count
// when places are told, and is no caller.
func TestWrappers(t *testing.T) {
	p := plain
	p.Threshold, p.Unite, p.Position, p.Utility = 90, 90, 1, -0.25
	m := New(p)
	for i := range 7 {
		m.Place(fmt.Sprint(i), "g", frames(fmt.Sprintf("a!top%d b!wrap a!on%d a!end%d", i, i, i)))
	}
	if got := m.names[m.id("b!wrap")]; !got.wrapper {
		t.Fatalf("%+v is no wrapper: this test tests nothing", got)
	}
	w := math.Log(12 / 0.5)
	if got, want := evidence(m, "a!f b!wrap a!g", "a!f a!g"), w+w/2-0.02; math.Abs(got-want) > 1e-3 {
		t.Errorf("a wrapper between: %v, want %v", got, want)
	}
	if got, want := evidence(m, "b!wrap a!f a!g", "a!f a!g"), w+w/2-0.02; math.Abs(got-want) > 1e-3 {
		t.Errorf("a wrapper on top: %v, want %v", got, want)
	}
	for i := range 4 {
		m.Place(fmt.Sprint("u", i), "g", frames(fmt.Sprintf("a!u b!wrap a!caller%d", i/2)))
	}
	if got := m.names[m.id("a!u")].callers; got != 2 {
		t.Errorf("%d callers of a!u, want 2: those behind the wrapper", got)
	}
	for id := range m.names {
		if n := &m.names[id]; strings.HasPrefix(n.text, "a!top") && n.callers != 1 {
			t.Errorf("%s has %d callers, want 1: it was counted before the wrapper was known", n.text, n.callers)
		}
	}
}

// A cluster whose kinds of stacks turn out to be of two faults is taken apart: here by a
// utility that a few callers alone do not show.
func TestClusterComesApart(t *testing.T) {
	m := New(DefaultParams)
	at := map[string]string{} // by kind
	parts := 0
	add := func(id string, s string) Placed {
		p := m.Place(id, "g", frames(s))
		at[p.Kind] = p.Cluster
		for _, r := range p.Remade {
			if len(r.Kinds) > 0 && r.ID != p.Cluster {
				parts++
			}
			for _, k := range r.Kinds {
				at[k] = r.ID
			}
		}
		return p
	}
	for i := range 40 {
		add(fmt.Sprint("other", i), fmt.Sprintf("a!other%d a!x%d a!y%d", i, i, i))
	}
	first := add("first", "u!get a!one a!p a!q a!r1")
	second := add("second", "u!get a!two a!s a!t a!r2")
	if first.Cluster != "first" || second.Cluster != "first" {
		t.Fatalf("%+v and %+v are two from the beginning: this test tests nothing", first, second)
	}
	for i := range 9 {
		add(fmt.Sprint("caller", i), fmt.Sprintf("u!get a!c%d a!d%d a!e%d", i, i, i))
	}
	for i := range 30 {
		add(fmt.Sprint("one", i), fmt.Sprintf("u!get a!one a!p a!q a!r1 a!v%d", i))
		add(fmt.Sprint("two", i), fmt.Sprintf("u!get a!two a!s a!t a!r2 a!w%d", i))
	}
	if at["first"] != "first" || at["second"] == "first" || parts == 0 {
		t.Errorf("the first is in %s, the second in %s, %d parts", at["first"], at["second"], parts)
	}
}

// More stacks without a topmost frame than a fault may lose it are another fault's, and
// few are not.
func TestLostTop(t *testing.T) {
	for lost, want := range map[int]bool{2: true, 20: false} {
		m := New(DefaultParams)
		r := func(s string, near int) rep { return rep{m.Stack(frames(s)), near} }
		a := &cluster{reps: []rep{r("a!f a!g a!h a!i", 20)}, size: 20}
		b := &cluster{reps: []rep{r("a!g a!h a!i", lost)}, size: lost}
		if got := m.between(a, b) > fixed(DefaultParams.Unite); got != want {
			t.Errorf("%d stacks that lost their topmost frame beside 20 that have it: one fault %v, want %v", lost, got, want)
		}
	}
}

// twoWays are stacks of a fault that is reached in two ways, and of many others. While few
// are known the two ways look like two faults.
func twoWays() (out []Example) {
	way := func(i, n int) {
		out = append(out, Example{"g", frames(fmt.Sprintf("a!fault a!way%d a!on%d a!end%d_%d", i, i, i, n)), "two ways"})
	}
	way(1, 0)
	way(2, 0)
	for i := range 60 {
		out = append(out, Example{"g", frames(fmt.Sprintf("a!other%d a!x%d a!y%d", i, i, i)), fmt.Sprint("other", i)})
	}
	for n := range 8 {
		way(1, n+1)
		way(2, n+1)
	}
	return out
}

func TestClustersBecomeOne(t *testing.T) {
	m := New(DefaultParams)
	var remade []Remade
	for i, e := range twoWays() {
		p := m.Place(fmt.Sprint(i), e.Group, e.Frames)
		if i == 1 && !p.New {
			t.Error("the ways were not told apart from the beginning: this test tests nothing")
		}
		remade = append(remade, p.Remade...)
	}
	if len(remade) != 2 || remade[0].ID != "0" || remade[0].Group != "g" || len(remade[0].Kinds) < 2 || remade[0].Kinds[0] != "0" || remade[1].ID != "1" || len(remade[1].Kinds) != 0 {
		t.Errorf("remade: %v", remade)
	}
	for _, s := range []string{"a!fault a!way1 a!on1", "a!fault a!way2 a!on2"} {
		if got := m.Nearest("g", frames(s), 1); len(got) != 1 || got[0].Cluster != "0" {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// Of a stack that is deeper than what counts, the rest is left out.
func TestDeepStacks(t *testing.T) {
	var deep []string
	for i := range MaxDepth + 50 {
		deep = append(deep, fmt.Sprintf("app!f%d", i))
	}
	m := New(DefaultParams)
	if a, b := m.Score(m.Stack(deep), m.Stack(deep)), m.Score(m.Stack(deep), m.Stack(deep[:MaxDepth])); a != b || a < 0.4 {
		t.Errorf("scores %v and %v", a, b)
	}
}

func all(f float64) (p Params) {
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		v.Field(i).SetFloat(f)
	}
	return p
}

// Whatever the parameters are, sums keep their sign.
func TestWildParameters(t *testing.T) {
	for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -1e300, 0} {
		m := New(all(f))
		for i, s := range random(rand.New(rand.NewPCG(1, 1)), 100) {
			if got := m.Place(fmt.Sprint(i), "g", s); !(got.Score >= -1 && got.Score <= 1) {
				t.Fatalf("parameters %v: %+v", f, got)
			}
		}
	}
}

func FuzzScore(f *testing.F) {
	f.Add("a!b a!c c", "a!b x+12 c")
	f.Add("ntdll!RtlFreeHeap a!f a!g", "a!f_variant a!f")
	f.Fuzz(func(t *testing.T, a, b string) {
		m := New(DefaultParams)
		m.Place("a", "g", frames(a))
		m.Place("b", "g", frames(b))
		x, y := m.Stack(frames(a)), m.Stack(frames(b))
		if s := m.Score(x, y); s < -1 || s > 1 || m.Score(y, x) != s {
			t.Errorf("score %v and back %v", s, m.Score(y, x))
		}
	})
}

func BenchmarkScore(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	m := New(DefaultParams)
	var stacks []*Stack
	for _, s := range random(r, 1000) {
		stacks = append(stacks, m.Stack(s))
	}
	i := 0
	for b.Loop() {
		m.Score(stacks[i%1000], stacks[(i*7+13)%1000])
		i++
	}
}

// One incident among 100,000.
func BenchmarkPlaceAmong100000(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	m := New(DefaultParams)
	place(m, random(r, 100_000), 0)
	more := random(r, 10_000)
	i := 0
	b.ReportMetric(float64(m.live), "clusters")
	for b.Loop() {
		m.Place("new", "g", more[i%len(more)])
		i++
	}
}
