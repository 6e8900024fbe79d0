package similar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func frames(s string) []string { return strings.Fields(s) }

// With all parameters 0 but the position's, each score can be worked out by hand:
// weights 1, 1/2, 1/3 ... by position.
func TestScoreByHand(t *testing.T) {
	m := New(Params{Position: 1})
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"f g h", "f g h", 1},
		{"f g", "x y", -1},
		{"", "", 0},
		{"f", "", -1},
		// f matches with 1+1, g and x miss with 1/2 each; all weights are 3.
		{"f g", "f x", (2 - 1) / 3.0},
		// g moved from 2 to 1: matches with 1/2+1; f misses with 1.
		{"f g", "g", (1.5 - 1) / 2.5},
		// Two of the three f match, in order: (1+1)+(1/2+1/2), minus 1/3.
		{"f f f", "f f", (3 - 1/3.0) / (3 + 1/3.0)},
	} {
		got := m.Score(m.Stack(frames(c.a)), m.Stack(frames(c.b)))
		if back := m.Score(m.Stack(frames(c.b)), m.Stack(frames(c.a))); math.Abs(got-c.want) > 1e-5 || back != got {
			t.Errorf("%q and %q: %v and back %v, want %v", c.a, c.b, got, back, c.want)
		}
	}
}

func TestParametersMatter(t *testing.T) {
	shifted := New(Params{Position: 0, Shift: 1})
	// One frame moved by one: (1+1)/e, the new one above misses with 1, of 3.
	if got, want := shifted.Score(shifted.Stack(frames("f")), shifted.Stack(frames("x f"))), (2/math.E-1)/3; math.Abs(got-want) > 1e-5 {
		t.Errorf("shift: %v, want %v", got, want)
	}
	m := New(Params{Frequency: 1})
	for range 10 {
		m.Count(m.Stack(frames("common")))
	}
	m.Count(m.Stack(frames("rare")))
	m.snapshot()
	a, b, c := m.Stack(frames("common rare")), m.Stack(frames("common x")), m.Stack(frames("y rare"))
	if m.Score(a, b) >= m.Score(a, c) {
		t.Errorf("sharing a common frame (%v) is worth as much as sharing a rare one (%v)", m.Score(a, b), m.Score(a, c))
	}
}

// What is known of Windows frames, by hand, with weights 1, 1/2, 1/3 by the program's
// frames above.
func TestWhatFramesAre(t *testing.T) {
	m := New(Params{Position: 1})
	for _, c := range []struct {
		what, a, b string
		want       float64
	}{
		// The heap's frame weighs a quarter, and the program's are first and second below
		// it all the same: 3 of 3.25.
		{"the system's on top", "ntdll!RtlFreeHeap a!f a!g", "a!f a!g", (3 - 0.25) / 3.25},
		{"the system's alone", "ntdll!RtlFreeHeap", "ntdll!RtlAllocateHeap", -1},
		// x's frame g may be the place; it counts a quarter of its half. The place itself
		// weighs a quarter of its half.
		{"no name, the module's", "a!f x!g", "a!f x+12", (2 - 0.125 - 0.125) / 2.25},
		{"no name but a begin", "a!f x!g", "a!f x!fn@12", (2 - 0.125 - 0.125) / 2.25},
		{"the body's hash is a name", "a!f x!g", "a!f x!fn#12", (2 - 0.5 - 0.5) / 3},
		{"no name, another module's", "a!f x!g", "a!f y+12", (2 - 0.5 - 0.125) / 2.625},
		{"the same place", "a!f x+12", "a!f x+12", 1},
	} {
		got := m.Score(m.Stack(frames(c.a)), m.Stack(frames(c.b)))
		if back := m.Score(m.Stack(frames(c.b)), m.Stack(frames(c.a))); math.Abs(got-c.want) > 1e-5 || back != got {
			t.Errorf("%s: %v and back %v, want %v", c.what, got, back, c.want)
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
		out = append(out, fmt.Sprintf("%s %.6f %v", p.Cluster, p.Score, p.New))
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
	if len(whole.clusters) < 20 || len(whole.clusters) > 400 {
		t.Errorf("%d clusters of 600 stacks: does this test test anything?", len(whole.clusters))
	}
}

func stateOf(m *Model) State {
	st := State{Stacks: m.Stacks(), Frequencies: map[string]Frequency{}}
	for _, name := range m.names {
		if f := m.Frequency(name); f.Now > 0 {
			st.Frequencies[name] = f
		}
	}
	list := func(s *Stack) []string {
		out := make([]string, len(s.entries))
		for _, e := range s.entries {
			out[e.pos] = m.names[e.id]
		}
		return out
	}
	for _, c := range m.clusters {
		kept := Cluster{ID: c.id, Group: "g", Size: c.size}
		for _, r := range c.reps {
			kept.Representatives = append(kept.Representatives, list(r))
		}
		st.Clusters = append(st.Clusters, kept)
	}
	return st
}

func TestGroupsStayApart(t *testing.T) {
	m := New(DefaultParams)
	m.Place("a", "crash", frames("f g h"))
	if p := m.Place("b", "hang", frames("f g h")); !p.New {
		t.Error("a hang joined the cluster of a crash")
	}
	if p := m.Place("c", "crash", frames("f g h x")); p.Cluster != "a" {
		t.Errorf("a stack like the first's is in %+v", p)
	}
	if got := m.Nearest("hang", frames("f g"), 3); len(got) != 1 || got[0].Cluster != "b" {
		t.Errorf("nearest: %+v", got)
	}
}

// A member that tells something new is compared with, and a chain of stacks, each
// like the next, does not become one cluster.
func TestRepresentatives(t *testing.T) {
	m := New(Params{Threshold: 0.3, Far: 0.3})
	m.Place("lead", "g", frames("a b c d e f g h i j"))
	if got := m.Place("left", "g", frames("x1 x2 x3 d e f g h i j")); got.New || !got.Represents {
		t.Fatalf("%+v", got)
	}
	if got := m.Place("right", "g", frames("a b c d e f g y1 y2 y3")); !got.New {
		t.Errorf("like the leader and unlike a member, and yet in: %+v", got)
	}
	m = New(Params{Threshold: 0.3, Far: -1})
	m.Place("lead", "g", frames("a b c d e f g h i j"))
	m.Place("left", "g", frames("x1 x2 x3 d e f g h i j"))
	if got := m.Place("right", "g", frames("a b c d e f g y1 y2 y3")); got.New {
		t.Errorf("the leader alone would take it: %+v", got)
	}
	// 7 frames of left's, 4 of the leader's.
	if got := m.Place("like left", "g", frames("x1 x2 x3 d e f g z1 z2 z3")); got.Cluster != "lead" || math.Abs(got.Score-0.4) > 1e-5 {
		t.Errorf("like the second representative: %+v", got)
	}
}

// Of a stack that is deeper than what counts, the rest is left out.
func TestDeepStacks(t *testing.T) {
	var deep []string
	for i := range MaxDepth + 50 {
		deep = append(deep, fmt.Sprintf("app!f%d", i))
	}
	m := New(DefaultParams)
	if got := m.Score(m.Stack(deep), m.Stack(deep[:MaxDepth])); got < 0.999 {
		t.Errorf("score %v", got)
	}
}

func FuzzScore(f *testing.F) {
	f.Add("a b c", "a x c")
	f.Fuzz(func(t *testing.T, a, b string) {
		m := New(DefaultParams)
		x, y := m.Stack(frames(a)), m.Stack(frames(b))
		m.Count(x)
		m.Count(y)
		if s := m.Score(x, y); s < -1 || s > 1 || m.Score(y, x) != s {
			t.Errorf("score %v", s)
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
	b.ReportMetric(float64(len(m.clusters)), "clusters")
	for b.Loop() {
		m.Place("new", "g", more[i%len(more)])
		i++
	}
}
