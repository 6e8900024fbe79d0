package pdb

import (
	"cmp"
	"slices"
	"sort"
)

// interval is a range of addresses with the place of the record that says so.
type interval struct {
	start, end uint32
	record     uint32
	kind       symbolKind
	maxEnd     uint32 // largest end of this and all earlier intervals
}

// intervals are sorted by start; they may nest.
type intervals []interval

// maxBack bounds how far a look-up goes back over intervals that end too early.
const maxBack = 4096

func sortIntervals(list []interval) intervals {
	slices.SortFunc(list, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.record, b.record))
	})
	var top uint32
	for i := range list {
		top = max(top, list[i].end)
		list[i].maxEnd = top
	}
	return list
}

// innermost returns the interval with the latest start that covers an address;
// of those that begin together the shortest, then the first in the file.
func (l intervals) innermost(rva uint32) (interval, bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].start > rva }) - 1
	var best interval
	found := false
	for back := 0; i >= 0 && back < maxBack && l[i].maxEnd > rva; back++ {
		v := l[i]
		if found && v.start != best.start {
			break
		}
		if rva < v.end && (!found || v.end <= best.end) {
			best, found = v, true
		}
		i--
	}
	return best, found
}

// atOrBelow returns the interval with the latest start at or below an address.
func (l intervals) atOrBelow(rva uint32) (interval, bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].start > rva }) - 1
	if i < 0 {
		return interval{}, false
	}
	for i > 0 && l[i-1].start == l[i].start {
		i--
	}
	return l[i], true
}
