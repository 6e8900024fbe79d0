package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// showErrors tells which faults were taken for one, which fell apart, and what had
// been done to the stacks that cost most.
func showErrors(all []stack) {
	of := placed(all)
	p, r, f1 := bcubed(all, of)
	fmt.Printf("%d stacks: precision %.3f, recall %.3f, F1 %.3f\n", len(all), p, r, f1)
	showMerges(all, of)
	showSplits(all, of)
}

type pair struct{ cluster, family int }

func cells(all []stack, of []int) (both map[pair]int, inCluster, inFamily map[int]int, site map[int]string) {
	both, inCluster, inFamily, site = map[pair]int{}, map[int]int{}, map[int]int{}, map[int]string{}
	for i, s := range all {
		both[pair{of[i], s.family}]++
		inCluster[of[i]]++
		inFamily[s.family]++
		site[s.family] = s.site
	}
	return both, inCluster, inFamily, site
}

// showMerges lists clusters of several faults by the precision that they cost.
func showMerges(all []stack, of []int) {
	both, inCluster, inFamily, site := cells(all, of)
	cost := map[int]float64{}
	for c, n := range both {
		cost[c.cluster] += float64(n) * (1 - float64(n)/float64(inCluster[c.cluster])) / float64(len(all))
	}
	order := slices.SortedFunc(maps.Keys(cost), func(a, b int) int { return cmp.Or(cmp.Compare(cost[b], cost[a]), cmp.Compare(a, b)) })
	for _, c := range order[:min(12, len(order))] {
		if cost[c] == 0 {
			break
		}
		fmt.Printf("  merged, costs %.4f:\n", cost[c])
		for _, f := range slices.Sorted(maps.Keys(inFamily)) {
			if n := both[pair{c, f}]; n > 0 {
				fmt.Printf("    %3d of %3d of fault %d: %s\n", n, inFamily[f], f, site[f])
			}
		}
	}
}

// showSplits tells how much recall each disturbance costs, and the faults that
// cost most.
func showSplits(all []stack, of []int) {
	both, _, inFamily, _ := cells(all, of)
	lost, n := map[string]float64{}, map[string]int{}
	family := map[int]float64{}
	ways := map[int]map[int]bool{}
	for i, s := range all {
		loss := 1 - float64(both[pair{of[i], s.family}])/float64(inFamily[s.family])
		family[s.family] += loss / float64(len(all))
		for _, d := range append(s.done, "any") {
			lost[d] += loss
			n[d]++
		}
		if ways[s.family] == nil {
			ways[s.family] = map[int]bool{}
		}
		ways[s.family][s.way] = true
	}
	for _, d := range slices.Sorted(maps.Keys(lost)) {
		fmt.Printf("  %-12s %4d stacks, recall %.3f\n", d, n[d], 1-lost[d]/float64(n[d]))
	}
	order := slices.SortedFunc(maps.Keys(family), func(a, b int) int { return cmp.Or(cmp.Compare(family[b], family[a]), cmp.Compare(a, b)) })
	for _, f := range order[:8] {
		clusters := 0
		for c := range both {
			if c.family == f {
				clusters++
			}
		}
		fmt.Printf("  fault %d of %d stacks, %d ways, is in %d clusters, costs %.4f\n", f, inFamily[f], len(ways[f]), clusters, family[f])
	}
}
