// Command buckets compares ways of putting stacks of one fault together, on
// stacks of which the truth is known because they are made (generate.go).
//
// Methods are developed, and their parameters and thresholds chosen, on some programs'
// crashes; they are judged on others'. No stack of the latter may be looked at. All make clusters in the same way: a stack joins the cluster
// with the most similar of up to four members over the threshold, or begins one.
//
//	go run ./bench/buckets
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"dumptriage/fleet/similar"
)

func main() {
	families := flag.Int("families", 60, "faults of each program")
	seed := flag.Uint64("seed", 1, "of the first of the programs to develop by")
	fresh := flag.Uint64("judge", 5001, "seed of the first program to judge by")
	worlds := flag.Int("worlds", 60, "programs to judge by")
	only := flag.String("only", "", "run only the `METHOD` of this name")
	largest := flag.Int("largest", 50, "stacks of the largest fault; the first has twice as many")
	show := flag.Bool("show", false, "print some stacks and stop")
	errs := flag.Bool("errors", false, "tell what the default parameters get wrong, and stop")
	filled := flag.String("fill", "", "make a database `FILE` of incidents instead")
	size := flag.Int("incidents", 100_000, "in that database")
	flag.Parse()
	if *filled != "" {
		if err := fill(*filled, *size); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	train := series(*seed, developing, *families, *largest)
	switch {
	case *show:
		for _, s := range train[0][:10] {
			fmt.Println(s.family, s.frames)
		}
		return
	case *errs:
		for _, t := range train {
			showErrors(t)
		}
		return
	}
	tests := series(*fresh, *worlds, *families, *largest)
	fmt.Printf("%d stacks of %d faults to choose by, %d stacks of %d faults to judge by\n\n", count(train), *families*len(train), count(tests), *families**worlds)
	fmt.Println("| method | F1, chosen by | B-cubed precision | recall | F1 | RR@1 | AUC | us a pair | chosen |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---|")
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
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f | %s |\n", m.name, best.f1, sum.precision/k, sum.recall/k, sum.f1/k, sum.rr1/k, sum.auc/k, sum.micros/k, chosen(m, best))
	}
	showPlaced(train, tests)
}

// showPlaced prints how fleet/similar itself does.
func showPlaced(train, tests [][]stack) {
	developed, judged := meanPlaced(train), meanPlaced(tests)
	fmt.Printf("| fleet/similar, as the store does it | %.3f | %.3f | %.3f | %.3f | | | | |\n", developed.f1, judged.precision, judged.recall, judged.f1)
}

func meanPlaced(worlds [][]stack) (mean result) {
	k := float64(len(worlds))
	for _, w := range worlds {
		precision, recall, f1 := bcubed(w, placed(w))
		mean.add(result{precision: precision / k, recall: recall / k, f1: f1 / k})
	}
	return mean
}

// developing is how many programs methods are developed and their parameters chosen
// by.
const developing = 4

// series makes the crashes of n programs.
func series(seed uint64, n, families, largest int) (out [][]stack) {
	for i := range n {
		out = append(out, prepared(seed+uint64(i), families, largest))
	}
	return out
}

func count(worlds [][]stack) (n int) {
	for _, w := range worlds {
		n += len(w)
	}
	return n
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
		return fmt.Sprintf("position %g, frequency %g, shift %g, threshold %.2f", x.a, x.b, x.g, c.threshold)
	case *pdm:
		return fmt.Sprintf("c %g, o %g, threshold %.2f", x.c, x.o, c.threshold)
	}
	return fmt.Sprintf("threshold %.2f", c.threshold)
}

func tune(m method, worlds [][]stack) (best choice) {
	k := float64(len(worlds))
	for setting := range m.make {
		f1 := map[float64]float64{}
		for _, w := range worlds {
			x := m.make[setting]()
			x.prepare(w)
			for threshold := -0.6; threshold < 0.96; threshold += 0.06 {
				_, _, f := bcubed(w, clusters(x, w, threshold))
				f1[threshold] += f / k
			}
		}
		for threshold, f := range f1 {
			if f > best.f1 || f == best.f1 && threshold < best.threshold {
				best = choice{setting, threshold, f}
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
			if all[members[0]].class != all[i].class {
				continue
			}
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
func placed(all []stack) []int {
	known := map[string]int{}
	var distinct []similar.Example
	which := make([]int, len(all))
	for i, s := range all {
		text := s.class + "\n" + strings.Join(s.frames, "\n")
		at, ok := known[text]
		if !ok {
			at = len(distinct)
			distinct = append(distinct, similar.Example{Group: s.class, Frames: s.frames})
			known[text] = at
		}
		which[i] = at
	}
	clusters := similar.Assign(similar.DefaultParams, distinct)
	of := make([]int, len(all))
	for i, at := range which {
		of[i] = clusters[at]
	}
	return of
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
			if all[i].class != all[k].class {
				continue
			}
			pairs++
			if s := x.score(i, k); s > best {
				best, at = s, k
			}
		}
		if seen[all[i].family] {
			dups++
			if at >= 0 && all[at].family == all[i].family {
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
