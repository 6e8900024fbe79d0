// Command buckets compares ways of putting stacks of one fault together, on
// stacks of which the truth is known because they are made (generate.go).
//
// Each method's parameters and threshold are chosen on one program's crashes and
// judged on another's. All make clusters in the same way: a stack joins the cluster
// with the most similar of up to four members over the threshold, or begins one.
//
//	go run ./bench/buckets
package main

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dumptriage/fleet/similar"
)

func main() {
	families := flag.Int("families", 60, "faults of each program")
	seed := flag.Uint64("seed", 1, "of the generator")
	worlds := flag.Int("worlds", 3, "programs to judge by")
	only := flag.String("only", "", "run only the `METHOD` of this name")
	largest := flag.Int("largest", 50, "stacks of the largest fault; the first has twice as many")
	show := flag.Bool("show", false, "print some stacks and stop")
	flag.Parse()
	train := prepared(*seed, *families, *largest)
	if *show {
		for _, s := range train[:10] {
			fmt.Println(s.family, s.frames)
		}
		return
	}
	var tests [][]stack
	n := 0
	for i := range *worlds {
		tests = append(tests, prepared(*seed+1+uint64(i), *families, *largest))
		n += len(tests[i])
	}
	fmt.Printf("%d stacks of %d faults to choose by, %d stacks of %d faults to judge by\n\n", len(train), *families, n, *families**worlds)
	fmt.Println("| method | B-cubed precision | recall | F1 | RR@1 | AUC | us a pair | chosen |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---|")
	for _, m := range methods {
		if *only != "" && m.name != *only {
			continue
		}
		best := tune(m, train)
		var sum result
		for _, t := range tests {
			r := judge(m.make[best.setting](), t, best.threshold)
			sum.add(r)
		}
		k := float64(len(tests))
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f | %s |\n", m.name, sum.precision/k, sum.recall/k, sum.f1/k, sum.rr1/k, sum.auc/k, sum.micros/k, chosen(m, best))
		if x, ok := m.make[best.setting]().(*fast); ok {
			showPlaced("as the store does it", tunePlaced(x.p, train), tests)
		}
	}
	showPlaced("by default", similar.DefaultParams, tests)
}

// showPlaced prints how fleet/similar itself does.
func showPlaced(name string, p similar.Params, tests [][]stack) {
	var sum result
	for _, t := range tests {
		var r result
		r.precision, r.recall, r.f1 = bcubed(t, placed(p, t))
		sum.add(r)
	}
	k := float64(len(tests))
	fmt.Printf("| FaST, %s | %.3f | %.3f | %.3f | | | | threshold %.2f, far %.2f |\n", name, sum.precision/k, sum.recall/k, sum.f1/k, p.Threshold, p.Far)
}

func prepared(seed uint64, families, largest int) []stack {
	all := generate(seed, families, largest)
	for i := range all {
		all[i].frames = collapse(all[i].frames)
	}
	return all
}

// choice is a setting of a method and a threshold.
type choice struct {
	setting   int
	threshold float64
	f1        float64
}

func chosen(m method, c choice) string {
	switch x := m.make[c.setting]().(type) {
	case *fast:
		return fmt.Sprintf("position %g, frequency %g, shift %g, threshold %.2f", x.p.Position, x.p.Frequency, x.p.Shift, c.threshold)
	case *pdm:
		return fmt.Sprintf("c %g, o %g, threshold %.2f", x.c, x.o, c.threshold)
	}
	return fmt.Sprintf("threshold %.2f", c.threshold)
}

func tune(m method, all []stack) (best choice) {
	for setting := range m.make {
		x := m.make[setting]()
		x.prepare(all)
		for threshold := -0.6; threshold < 0.96; threshold += 0.06 {
			if _, _, f1 := bcubed(all, clusters(x, all, threshold)); f1 > best.f1 {
				best = choice{setting, threshold, f1}
			}
		}
	}
	return best
}

// maxReps is how many members a cluster is known by.
const maxReps = 4

// clusters returns each stack's cluster.
func clusters(x measure, all []stack, threshold float64) []int {
	of := make([]int, len(all))
	var reps [][]int
	for i := range all {
		best, at := math.Inf(-1), -1
		for c, members := range reps {
			for _, m := range members {
				if s := x.score(i, m); s > best {
					best, at = s, c
				}
			}
		}
		switch {
		case at < 0 || best < threshold:
			at = len(reps)
			reps = append(reps, []int{i})
		case len(reps[at]) < maxReps && best < threshold+0.7*(1-threshold):
			reps[at] = append(reps[at], i)
		}
		of[i] = at
	}
	return of
}

// placed returns each stack's cluster as fleet/similar decides, one stack after
// the other and each distinct stack once, by what is known until then.
func placed(p similar.Params, all []stack) []int {
	m := similar.New(p)
	known, ids := map[string]int{}, map[string]int{}
	of := make([]int, len(all))
	for i, s := range all {
		text := strings.Join(s.frames, "\n")
		at, ok := known[text]
		if !ok {
			id := m.Place(fmt.Sprint(i), "", s.frames).Cluster
			if at, ok = ids[id]; !ok {
				at = len(ids)
				ids[id] = at
			}
			known[text] = at
		}
		of[i] = at
	}
	return of
}

// tunePlaced chooses the bounds of clusters for parameters of the measure.
func tunePlaced(p similar.Params, all []stack) (best similar.Params) {
	bestF1 := -1.0
	for p.Threshold = -0.6; p.Threshold < 0.5; p.Threshold += 0.04 {
		for _, p.Far = range []float64{-1, -0.9, -0.8, -0.7, -0.5} {
			if _, _, f1 := bcubed(all, placed(p, all)); f1 > bestF1 {
				best, bestF1 = p, f1
			}
		}
	}
	return best
}

// result is how a method did.
type result struct{ precision, recall, f1, rr1, auc, micros float64 }

func (r *result) add(o result) {
	r.precision += o.precision
	r.recall += o.recall
	r.f1 += o.f1
	r.rr1 += o.rr1
	r.auc += o.auc
	r.micros += o.micros
}

func judge(x measure, all []stack, threshold float64) (r result) {
	x.prepare(all)
	r.precision, r.recall, r.f1 = bcubed(all, clusters(x, all, threshold))
	seen := map[int]bool{}
	var hits, dups, pairs int
	var known, fresh []float64 // the best scores of stacks whose family was known, and was not
	begun := time.Now()
	for i := range all {
		best, at := math.Inf(-1), -1
		for k := range i {
			if s := x.score(i, k); s > best {
				best, at = s, k
			}
		}
		pairs += i
		if seen[all[i].family] {
			dups++
			if all[at].family == all[i].family {
				hits++
			}
			known = append(known, best)
		} else if i > 0 {
			fresh = append(fresh, best)
		}
		seen[all[i].family] = true
	}
	r.micros = float64(time.Since(begun).Nanoseconds()) / 1000 / float64(pairs)
	r.rr1, r.auc = float64(hits)/float64(dups), auc(known, fresh)
	return r
}

// bcubed is precision, recall and F1 averaged over stacks.
func bcubed(all []stack, of []int) (p, r, f1 float64) {
	type cell struct{ cluster, family int }
	both, inCluster, inFamily := map[cell]int{}, map[int]int{}, map[int]int{}
	for i, s := range all {
		both[cell{of[i], s.family}]++
		inCluster[of[i]]++
		inFamily[s.family]++
	}
	for i, s := range all {
		n := float64(both[cell{of[i], s.family}])
		p += n / float64(inCluster[of[i]])
		r += n / float64(inFamily[s.family])
	}
	p, r = p/float64(len(all)), r/float64(len(all))
	return p, r, 2 * p * r / (p + r)
}

// auc is the chance that a stack of a known family scores higher than one of a
// new family.
func auc(known, fresh []float64) float64 {
	slices.Sort(fresh)
	sum := 0.0
	for _, s := range known {
		below, _ := slices.BinarySearch(fresh, s)
		above := below
		for above < len(fresh) && fresh[above] == s {
			above++
		}
		sum += float64(below) + float64(above-below)/2
	}
	return sum / float64(len(known)*len(fresh))
}
