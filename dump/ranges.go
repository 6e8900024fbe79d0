package dump

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"math"
	"slices"
	"sort"
)

// Range says that Size bytes of virtual memory at VA are stored at file offset
// Off.
type Range struct {
	VA, Size uint64
	Off      int64
}

// End returns the address just past the range.
func (r Range) End() uint64 { return r.VA + r.Size }

// FileMemory is memory that lies in a file as a list of ranges.
type FileMemory struct {
	r      io.ReaderAt
	ranges []Range // ascending, disjoint
}

// NewFileMemory builds a memory from ranges in any order. Where ranges overlap,
// the one that comes first in the list wins, and only what the others add
// around it is used. Ranges that are empty, that wrap around the address space
// or that lie before the file's beginning are dropped. The list is copied.
func NewFileMemory(r io.ReaderAt, ranges []Range) *FileMemory {
	keep := make([]prioritised, 0, len(ranges))
	for i, rg := range ranges {
		if rg.Size == 0 || rg.Off < 0 || rg.VA+(rg.Size-1) < rg.VA || rg.Size > math.MaxInt64-uint64(rg.Off) {
			continue
		}
		if rg.VA+rg.Size < rg.VA { // touches the very top: drop the last byte rather than wrap
			rg.Size--
		}
		keep = append(keep, prioritised{rg, i})
	}
	slices.SortStableFunc(keep, func(a, b prioritised) int { return cmp.Compare(a.VA, b.VA) })
	return &FileMemory{r: r, ranges: flatten(keep)}
}

type prioritised struct {
	Range
	rank int
}

// flatten sweeps ranges sorted by address into disjoint ones, the lowest rank
// winning each byte. Every range enters and leaves the heap once, so hostile
// overlaps cost no more than a sort.
func flatten(in []prioritised) []Range {
	out := make([]Range, 0, len(in))
	var open rankHeap // ranges that began at or before pos, best rank first
	pos, i := uint64(0), 0
	for {
		for len(open) > 0 && open[0].End() <= pos {
			heap.Pop(&open)
		}
		if len(open) == 0 {
			if i == len(in) {
				return out
			}
			pos = max(pos, in[i].VA)
			// Most ranges meet no other: they need no heap.
			if end := in[i].End(); pos < end && (i+1 == len(in) || in[i+1].VA >= end) {
				out = appendRange(out, Range{pos, end - pos, in[i].Off + int64(pos-in[i].VA)})
				pos = end
				i++
				continue
			}
		}
		for i < len(in) && in[i].VA <= pos {
			heap.Push(&open, in[i])
			i++
		}
		top := open[0]
		if top.End() <= pos {
			continue
		}
		for i < len(in) && in[i].VA < top.End() && in[i].rank > top.rank {
			heap.Push(&open, in[i])
			i++
		}
		limit := top.End()
		if i < len(in) {
			limit = min(limit, in[i].VA) // a better range begins inside this one
		}
		out = appendRange(out, Range{pos, limit - pos, top.Off + int64(pos-top.VA)})
		pos = limit
	}
}

func appendRange(out []Range, r Range) []Range {
	if n := len(out); n > 0 && out[n-1].End() == r.VA && out[n-1].Off+int64(out[n-1].Size) == r.Off {
		out[n-1].Size += r.Size
		return out
	}
	return append(out, r)
}

// rankHeap is the set of ranges that cover the sweep's position, best first.
type rankHeap []prioritised

func (h rankHeap) Len() int           { return len(h) }
func (h rankHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h rankHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *rankHeap) Push(x any)        { *h = append(*h, x.(prioritised)) }
func (h *rankHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Ranges returns the disjoint ranges in ascending order. The slice is the
// memory's own: do not change it.
func (m *FileMemory) Ranges() []Range { return m.ranges }

// Find returns the range that holds va.
func (m *FileMemory) Find(va uint64) (Range, bool) {
	i := sort.Search(len(m.ranges), func(i int) bool { return m.ranges[i].End() > va })
	if i < len(m.ranges) && m.ranges[i].VA <= va {
		return m.ranges[i], true
	}
	return Range{}, false
}

// ReadAt implements Memory; reads go on across adjoining ranges.
func (m *FileMemory) ReadAt(p []byte, va uint64) (int, error) {
	done := 0
	i := sort.Search(len(m.ranges), func(i int) bool { return m.ranges[i].End() > va })
	for ; done < len(p) && i < len(m.ranges); i++ {
		at := va + uint64(done)
		rg := m.ranges[i]
		if at < rg.VA {
			break
		}
		skip := at - rg.VA
		want := min(uint64(len(p)-done), rg.Size-skip)
		n, err := m.r.ReadAt(p[done:done+int(want)], rg.Off+int64(skip))
		done += n
		if uint64(n) < want {
			if errors.Is(err, io.EOF) {
				err = nil // the file is cut short: the bytes are simply not there
			}
			return done, &MemoryError{VA: va + uint64(done), Size: len(p) - done, Err: err}
		}
	}
	if done < len(p) {
		return done, &MemoryError{VA: va + uint64(done), Size: len(p) - done}
	}
	return done, nil
}
