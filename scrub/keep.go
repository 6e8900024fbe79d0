package scrub

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"dumptriage/dump"
	"dumptriage/minidump"
	"dumptriage/triage"
)

// block is a run of memory that is kept.
type block struct {
	va   uint64
	data []byte // never empty
}

// last is the address of the last byte: the end may be that of the address space,
// which no number is.
func (b *block) last() uint64 { return b.va + uint64(len(b.data)-1) }

// area is a stack, in which words are chosen one by one.
type area struct {
	lo, hi uint64 // hi of math.MaxUint64 takes in the last byte of the address space
	word   int    // bytes
	thread int    // index
}

// within returns the part of a block that lies in the area, as offsets in its bytes.
func (a *area) within(b *block) (from, to int) {
	if a.lo > b.last() || a.hi <= b.va {
		return 0, 0
	}
	from, to = 0, len(b.data)
	if a.lo > b.va {
		from = int(a.lo - b.va)
	}
	if a.hi <= b.last() && a.hi < math.MaxUint64 {
		to = int(a.hi - b.va)
	}
	return from, to
}

// reach is how far a stack is taken to go around frames that lie outside of the
// bounds that the dump gives.
const reachBelow, reachAbove = 0x1000, 0x2000

// findAreas finds the stacks by their bounds and by the frames on them, and what the
// frames' addresses are.
func (s *scrubber) findAreas() {
	s.frames = map[uint64]bool{}
	s.stacks = make([][]area, len(s.walks))
	for i := range s.walks {
		w := &s.walks[i]
		for _, b := range w.bounds {
			s.addArea(b.lo, b.hi, b.arch, i)
		}
		for _, h := range w.halves {
			if h.Half == nil || len(h.Frames) == 0 {
				continue
			}
			lo, hi := h.Frames[0].SP, h.Frames[0].SP
			for _, f := range h.Frames {
				s.frames[f.IP], s.frames[f.Lookup] = true, true
				lo, hi = min(lo, f.SP), max(hi, f.SP)
			}
			if !w.bounded(lo, hi) {
				above := hi + min(reachAbove, math.MaxUint64-hi)
				s.addArea(lo-min(lo, reachBelow), above, h.Registers.Arch, i)
			}
		}
	}
	slices.SortStableFunc(s.places, func(a, b area) int { return cmp.Compare(a.lo, b.lo) })
	s.sorted = slices.Sorted(maps.Keys(s.frames))
}

func (s *scrubber) addArea(lo, hi uint64, arch dump.Arch, thread int) {
	if word := arch.PointerSize(); hi > lo && word > 0 {
		a := area{lo &^ uint64(word-1), hi, word, thread}
		s.places = append(s.places, a)
		s.stacks[thread] = append(s.stacks[thread], a)
	}
}

// keepThreadBlocks counts as used what readers take from a thread's and a process's
// block: that it is one, the last error, the process's image.
func (s *scrubber) keepThreadBlocks() {
	p := s.in.System().Arch.PointerSize()
	self, peb, lastError, imageBase := uint64(0x30), uint64(0x60), uint64(0x68), uint64(0x10)
	if p == 4 {
		self, peb, lastError, imageBase = 0x18, 0x30, 0x34, 0x08
	}
	for _, t := range s.in.Threads() {
		v, err := dump.ReadPointer(s.rec.mem, s.in.System().Arch, t.TEB+self)
		if t.TEB == 0 || err != nil || v != t.TEB {
			continue
		}
		s.use(t.TEB+self, p)
		s.use(t.TEB+peb, p)
		s.use(t.TEB+lastError, 4)
	}
	if at := s.in.Process().PEB; at != 0 {
		s.use(at+imageBase, p)
	}
}

// use counts bytes as used, if they are there.
func (s *scrubber) use(va uint64, n int) {
	_, _ = s.rec.ReadAt(make([]byte, n), va)
}

// gap is how many unused bytes between used ones cost less as zeros than as the end
// of one range and the begin of another.
const gap = 16

// memory returns the used memory in runs, with stacks reduced to the words that are
// kept.
func (s *scrubber) memory() ([]block, error) {
	var out []block
	for _, number := range slices.Sorted(maps.Keys(s.rec.used)) {
		page := s.rec.used[number]
		for off := 0; off < pageSize; {
			if !page.all(off, 1) {
				off++
				continue
			}
			n := 1
			for off+n < pageSize && page.all(off+n, 1) {
				n++
			}
			out = s.appendRun(out, number*pageSize+uint64(off), n)
			off += n
		}
	}
	s.hideFolders(out)
	return s.reduce(out)
}

func (s *scrubber) appendRun(out []block, va uint64, n int) []block {
	data := make([]byte, n)
	n, _ = s.rec.mem.ReadAt(data, va)
	if data = data[:n]; n == 0 {
		return out
	}
	if last := len(out) - 1; last >= 0 {
		if b := &out[last]; va-b.va-uint64(len(b.data)) <= gap {
			b.data = append(append(b.data, make([]byte, int(va-b.va)-len(b.data))...), data...)
			return out
		}
	}
	return append(out, block{va, data})
}

// stackBudget bounds the bytes of stacks that are cleared and looked at: stacks of a
// hostile dump may all lie on each other.
const stackBudget = 1 << 28

// reduce replaces the words of stacks that are not kept: by 1, which no address is,
// or by 0 what was 0. Where stacks overlap, a word
// is kept if one of them keeps it.
func (s *scrubber) reduce(blocks []block) ([]block, error) {
	budget := uint64(stackBudget)
	for i := range blocks {
		b := &blocks[i]
		old := slices.Clone(b.data)
		for _, restore := range []bool{false, true} {
			for k := range s.places {
				a := &s.places[k]
				if a.lo > b.last() {
					break
				}
				from, to := a.within(b)
				if from >= to {
					continue
				}
				if uint64(to-from) > budget {
					return nil, &dump.Error{Code: dump.Limit, File: s.in.Path, Stream: "threads", Offset: -1, Size: -1, Msg: "the stacks of the threads overlap too often"}
				}
				budget -= uint64(to - from)
				if !restore {
					clear(b.data[from:to])
					continue
				}
				s.restore(a, b, old, from, to)
			}
		}
	}
	return blocks, nil
}

// restore puts the words between two offsets in a block that are kept back into it. A
// word of which a part is beyond them is no pointer.
func (s *scrubber) restore(a *area, b *block, old []byte, from, to int) {
	if s.levels[a.thread] == All {
		copy(b.data[from:to], old[from:to])
		return
	}
	size := a.word
	unaligned := int((b.va + uint64(from)) % uint64(size))
	for at := from + (size-unaligned)%size; at+size <= to; at += size {
		va, w := b.va+uint64(at), old[at:at+size]
		switch v := word(w); {
		case v == 0:
		case s.keepWord(a, va, v):
			copy(b.data[at:], w)
		case word(b.data[at:at+size]) == 0:
			b.data[at] = 1 // that a word is 0 ends chains: one that was not must not be
		}
	}
}

func word(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(le.Uint32(b))
	}
	return le.Uint64(b)
}

// keepWord decides on a word of a stack. ARM64 signs return addresses in their
// highest bits.
func (s *scrubber) keepWord(a *area, va, v uint64) bool {
	if s.inc.System.Arch == dump.ARM64 {
		const address = 1<<48 - 1
		if kernel := v | ^uint64(address); s.frames[kernel] || s.inStack(a.thread, kernel) {
			return true
		}
		v &= address
	}
	if s.frames[v] || s.inStack(a.thread, v) {
		return true
	}
	inStep := func(p span) bool { return va+uint64(a.word-1) >= p.lo && va <= p.hi-1 }
	return s.levels[a.thread] >= Code && s.isCode(v) || slices.ContainsFunc(s.steps[a.thread], inStep)
}

func (s *scrubber) inStack(thread int, v uint64) bool {
	return slices.ContainsFunc(s.stacks[thread], func(a area) bool { return v >= a.lo && v <= a.hi })
}

// isCode reports whether an address may be one of code.
func (s *scrubber) isCode(v uint64) bool {
	for _, space := range []*triage.View{s.inc.UserSpace, s.inc.KernelSpace} {
		if executable, known := space.Executable(v); known && executable {
			return true
		} else if !known && space.Module(v) != nil {
			return true
		}
	}
	return false
}

// contextOf returns the registers of a thread that are written. Those of the one that
// failed tell why.
func (s *scrubber) contextOf(t *dump.Thread) *dump.Registers {
	if e := s.in.Exception(); s.loose() || e != nil && e.ThreadID == t.ID {
		return &t.Context
	}
	return withoutData(t.Context)
}

// regions returns what is kept of the protections: of code and of what is in the
// dump, or all when that did not do.
func (s *scrubber) regions() []dump.Region {
	all := s.in.Regions()
	if s.loose() {
		return all
	}
	used := slices.Sorted(maps.Keys(s.rec.used))
	var out []dump.Region
	for _, r := range all {
		i, _ := slices.BinarySearch(used, r.Base/pageSize)
		if r.Executable() || r.Size > 0 && i < len(used) && used[i] <= (r.Base+r.Size-1)/pageSize {
			out = append(out, r)
		}
	}
	return out
}

// functionTable is a table of code made at run time, reduced to some entries.
type functionTable struct {
	min, max, base uint64
	size           int // bytes of an entry
	entries        []byte
}

// tables returns the tables that frames lie in, with the entries around them; all of
// them when that did not do. One stays in any case: that there are tables is a
// fact of its own.
func (s *scrubber) tables() []functionTable {
	src, ok := s.in.Source.(tableSource)
	if !ok {
		return nil
	}
	all, _ := src.FunctionTables()
	var out []functionTable
	for i := range all {
		t := functionTable{min: all[i].Min, max: all[i].Max, base: all[i].Base, size: all[i].EntrySize}
		for k := range all[i].Count {
			if s.loose() || s.around(&all[i], k) {
				t.entries = append(t.entries, all[i].EntryBytes(k)...)
			}
		}
		if len(t.entries) > 0 {
			out = append(out, t)
		}
	}
	if len(out) == 0 && len(all) > 0 && all[0].Count > 0 {
		t := &all[0]
		out = []functionTable{{t.Min, t.Max, t.Base, t.EntrySize, t.EntryBytes(0)}}
	}
	return out
}

// around reports whether entry k of a table, or one beside it, covers a frame.
func (s *scrubber) around(t *minidump.FunctionTable, k int) bool {
	for _, i := range []int{k - 1, k, k + 1} {
		e, ok := t.Entry(i)
		if !ok {
			continue
		}
		at, _ := slices.BinarySearch(s.sorted, t.Base+uint64(e.Begin))
		if at < len(s.sorted) && s.sorted[at] < t.Base+uint64(e.End) {
			return true
		}
	}
	return false
}
