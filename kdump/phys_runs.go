package kdump

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// runMap is a page map made of runs in ascending order, disjoint.
type runMap struct {
	list  []pageRun
	total uint64
}

// newRunMap sorts runs given in the order of the file. Where two overlap the one
// with the lower start keeps its pages; overlapped says that there were such.
func newRunMap(list []pageRun) (m *runMap, overlapped bool) {
	slices.SortStableFunc(list, func(a, b pageRun) int { return cmp.Compare(a.pfn, b.pfn) })
	m = &runMap{}
	for _, r := range list {
		if n := len(m.list); n > 0 {
			last := &m.list[n-1]
			if over := last.end() - min(last.end(), r.pfn); over > 0 {
				overlapped = true
				if over >= r.count {
					continue
				}
				r = pageRun{r.pfn + over, r.count - over, pageOffset(r.off, over)}
			}
			if last.end() == r.pfn && pageOffset(last.off, last.count) == r.off {
				last.count += r.count
				m.total += r.count
				continue
			}
		}
		m.list = append(m.list, r)
		m.total += r.count
	}
	return m, overlapped
}

func (m *runMap) locate(pfn uint64) (int64, bool) {
	i := sort.Search(len(m.list), func(i int) bool { return m.list[i].pfn > pfn })
	if i == 0 || pfn-m.list[i-1].pfn >= m.list[i-1].count {
		return 0, false
	}
	return pageOffset(m.list[i-1].off, pfn-m.list[i-1].pfn), true
}

func (m *runMap) runs() iter.Seq[pageRun] { return slices.Values(m.list) }
func (m *runMap) count() uint64           { return m.total }
func (m *runMap) end() uint64             { return m.list[len(m.list)-1].end() }

func (m *runMap) first() int64 {
	first := int64(math.MaxInt64)
	for _, r := range m.list {
		first = min(first, r.off)
	}
	return first
}

func (m *runMap) beyond(size int64) (n uint64) {
	for _, r := range m.list {
		n += r.count - min(r.count, pagesUntil(size, r.off))
	}
	return n
}

// pagesUntil returns how many whole pages stored from off on a file holds.
func pagesUntil(size, off int64) uint64 { return uint64(max(0, size-off)) >> pageShift }

// runReader collects the runs of a file, whose pages follow each other in the
// order in which they are listed.
type runReader struct {
	list []pageRun
	off  int64 // of the next page
	sum  uint64
	bad  int
}

// add appends a run. One that no machine has is left out, but for the room that
// it would take in the file.
func (r *runReader) add(pfn, count uint64) {
	if count == 0 {
		return
	}
	if pfn >= maxPFN || count > maxPFN-pfn {
		r.bad++
		return
	}
	r.list = append(r.list, pageRun{pfn, count, r.off})
	r.off = pageOffset(r.off, count)
	r.sum += count
}

// finish makes the map and says what was wrong with the list.
func (f *File) finishRuns(r *runReader, stream string, claimed uint64) pageMap {
	if r.bad > 0 {
		f.damage(dump.Errorf(dump.OutOfRange, stream, "%d runs of pages lie where no machine has memory: the pages behind them cannot be placed", r.bad))
	}
	if claimed != r.sum && r.bad == 0 {
		f.damage(dump.Errorf(dump.BadCount, stream, "claims %d pages, its runs have %d", claimed, r.sum))
	}
	m, overlapped := newRunMap(r.list)
	if overlapped {
		f.damage(dump.Errorf(dump.BadRecord, stream, "runs of pages overlap: the first of each keeps its pages"))
	}
	if len(m.list) == 0 {
		f.damage(dump.Errorf(dump.BadRecord, stream, "holds no run of pages: there is no memory to read"))
		return nil
	}
	return m
}

const (
	runStream     = "PHYSICAL_MEMORY_DESCRIPTOR"
	physicalBlock = 700 // bytes of the header's union
)

// openRuns reads PHYSICAL_MEMORY_DESCRIPTOR64 {NumberOfRuns u32, pad,
// NumberOfPages u64, runs {BasePage u64, PageCount u64}} or its 32-bit form,
// without the pad and all u32. The pages follow the header.
func (f *File) openRuns() pageMap {
	ptr := f.hdr.ptr
	c := cursor.At(f.r, f.size, int64(f.hdr.physical), physicalBlock, runStream)
	claimed := c.U32()
	if ptr == 8 {
		c.Skip(4)
	}
	pages := c.Pointer(ptr)
	if claimed == filler32 {
		f.damage(dump.Errorf(dump.BadRecord, runStream, "was never written: there is no memory to read"))
		return nil
	}
	n, err := c.Count(uint64(claimed), 2*ptr)
	f.damageErr(err)
	r := &runReader{off: int64(f.hdr.size)}
	for range n {
		base, count := c.Pointer(ptr), c.Pointer(ptr)
		if r.add(base, count); r.bad > 0 {
			break
		}
	}
	return f.finishRuns(r, runStream, pages)
}
