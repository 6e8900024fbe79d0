package scrub

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/triage"
)

// kernelFile is a kernel dump that is scrubbed: what of its file is used, and what for.
type kernelFile struct {
	in        *triage.Dump // as it is
	src       *kdump.File  // the same, watched
	structure map[int64]*pageUse
	memory    map[int64]*pageUse
	present   map[int64]*pageUse // there as zeros; by page number of the file, as the others
	runs      []fileRun          // where memory that was read lies, by address when frozen
	joinAt    int
	systemMem bool // memory of user mode does not count
	frozen    bool

	// What is written in the place of what was there, by page number: 0 and 1, and for
	// folders 0 and backslashes.
	registers       map[int64]*pageUse // the first byte of each
	contexts        map[int64]*pageUse // the same of those of a CONTEXT
	zeros, ones     map[int64]*pageUse
	blanks, slashes map[int64]*pageUse
}

// fileRun says that n bytes of memory at va lie at off in the file.
type fileRun struct {
	va  uint64
	off int64
	n   int64
}

const maxRuns = 1 << 16 // reads that are noted before those that adjoin are joined

// watchKernel opens the dump once more, so that what is used of it is noted.
func watchKernel(in *triage.Dump, names bool) (*kernelFile, *triage.Dump, error) {
	k := &kernelFile{in: in, structure: map[int64]*pageUse{}, memory: map[int64]*pageUse{}, present: map[int64]*pageUse{},
		registers: map[int64]*pageUse{}, contexts: map[int64]*pageUse{}, blanks: map[int64]*pageUse{}, slashes: map[int64]*pageUse{}}
	d, err := in.Watched(k.used, names)
	if err != nil {
		return nil, nil, err
	}
	return k, d, nil
}

// used implements kdump.Watcher.
func (k *kernelFile) used(use kdump.Use, va uint64, off int64, n int) {
	if k.frozen || n <= 0 || off < 0 {
		return
	}
	switch use {
	case kdump.UseFolder, kdump.UseFolder8:
		width := 2 // bytes of a character
		if use == kdump.UseFolder8 {
			width = 1
		}
		mark(k.structure, off, n)
		mark(k.blanks, off, n)
		for i := 0; i < n; i += width {
			mark(k.slashes, off+int64(i), 1)
		}
	case kdump.UsePresence:
		mark(k.present, off, n)
	case kdump.UseRegister:
		mark(k.structure, off, n)
		for at := off; at+registerSize <= off+int64(n); at += registerSize {
			mark(k.registers, at, 1)
		}
	case kdump.UseContext:
		mark(k.structure, off, n)
		size := k.registerSize()
		for at := off; at+size <= off+int64(n); at += size {
			mark(k.contexts, at, 1)
		}
	case kdump.UseMemory:
		if k.systemMem && k.userAddress(va) {
			return
		}
		mark(k.memory, off, n)
		k.noteRun(fileRun{va, off, int64(n)})
	default:
		mark(k.structure, off, n)
	}
}

const registerSize = 8

func (k *kernelFile) userAddress(va uint64) bool {
	if k.in.Format() == dump.FormatKernel32 {
		return va < 1<<31
	}
	return va < 1<<63
}

// mark sets the bits of bytes of the file.
func mark(pages map[int64]*pageUse, off int64, n int) {
	for n > 0 {
		page := pages[off/pageSize]
		if page == nil {
			page = &pageUse{}
			pages[off/pageSize] = page
		}
		in := int(off % pageSize)
		part := min(n, pageSize-in)
		page.mark(in, part)
		off, n = off+int64(part), n-part
	}
}

func (k *kernelFile) noteRun(r fileRun) {
	if last := len(k.runs) - 1; last >= 0 {
		if l := &k.runs[last]; r.off-l.off == int64(r.va-l.va) && r.off >= l.off && r.off <= l.off+l.n {
			l.n = max(l.n, r.off+r.n-l.off)
			return
		}
	}
	if k.runs = append(k.runs, r); len(k.runs) >= max(k.joinAt, maxRuns) {
		k.joinRuns()
		k.joinAt = 2 * len(k.runs)
	}
}

// joinRuns sorts the runs by address and joins those that adjoin.
func (k *kernelFile) joinRuns() {
	slices.SortFunc(k.runs, func(a, b fileRun) int { return cmp.Or(cmp.Compare(a.va, b.va), cmp.Compare(a.off, b.off)) })
	out := k.runs[:0]
	for _, r := range k.runs {
		if n := len(out); n > 0 {
			if l := &out[n-1]; r.off-l.off == int64(r.va-l.va) && r.va-l.va <= uint64(l.n) {
				l.n = max(l.n, int64(r.va-l.va)+r.n)
				continue
			}
		}
		out = append(out, r)
	}
	k.runs = out
}

func (k *kernelFile) freeze() {
	k.frozen = true
	k.joinRuns()
}

// filePage is what is known of a page of the file; parts are nil where nothing is.
type filePage struct{ structure, memory, present, zeros, ones, blanks, slashes *pageUse }

func (k *kernelFile) page(number int64) filePage {
	return filePage{k.structure[number], k.memory[number], k.present[number], k.zeros[number], k.ones[number], k.blanks[number], k.slashes[number]}
}

func (p *pageUse) has(i int) bool { return p != nil && p[i/64]>>(i%64)&1 != 0 }

// used reports whether a byte of the page is kept.
func (p *filePage) used(i int) bool { return p.structure.has(i) || p.memory.has(i) }

// there reports whether a byte is kept, or something in its place.
func (p *filePage) there(i int) bool { return p.used(i) || p.present.has(i) }

// none reports whether nothing of the page is there.
func (p *filePage) none() bool { return p.structure == nil && p.memory == nil && p.present == nil }

// usedPages returns the numbers of the file's pages of which something is kept,
// ascending.
func (k *kernelFile) usedPages() []int64 {
	all := maps.Clone(k.structure)
	maps.Copy(all, k.memory)
	maps.Copy(all, k.present)
	return slices.Sorted(maps.Keys(all))
}

// bytes returns n bytes of the file at off as they are written: what is not kept is 0.
func (k *kernelFile) bytes(off int64, n int) ([]byte, error) {
	out := make([]byte, n)
	if got, err := k.in.File.ReadAt(out, off); got == 0 && n > 0 && err != nil {
		return nil, &dump.Error{Code: dump.IO, File: k.in.Path, Offset: off, Size: int64(n), Msg: "cannot be read", Err: err}
	}
	page, number := filePage{}, int64(-1)
	for i := range out {
		at := off + int64(i)
		if at/pageSize != number {
			number = at / pageSize
			page = k.page(number)
		}
		switch in := int(at % pageSize); {
		case page.slashes.has(in):
			out[i] = '\\'
		case page.blanks.has(in):
			out[i] = 0
		case page.ones.has(in):
			out[i] = 1
		case !page.used(in) || page.zeros.has(in):
			out[i] = 0
		}
	}
	return out, nil
}

// reduceStacks decides on the words of stacks that were looked at as memory, and are no
// field of a structure: one that is not kept becomes 1, or stays 0.
func (s *scrubber) reduceStacks() error {
	k := s.kernel
	k.zeros, k.ones = map[int64]*pageUse{}, map[int64]*pageUse{}
	if !s.loose() {
		if err := k.reduceRegisters(); err != nil {
			return err
		}
	}
	if err := k.hideContexts(); err != nil {
		return err
	}
	budget := uint64(2 * stackBudget)
	for i := range 2 * len(s.places) { // twice: what one stack keeps another one does not take away
		a, restore := &s.places[i%len(s.places)], i >= len(s.places)
		at, _ := slices.BinarySearchFunc(k.runs, a.lo, func(r fileRun, lo uint64) int { return cmp.Compare(r.va, lo) })
		for at > 0 && k.runs[at-1].va+uint64(k.runs[at-1].n-1) >= a.lo {
			at--
		}
		for ; at < len(k.runs) && k.runs[at].va < a.hi; at++ {
			r := &k.runs[at]
			if uint64(r.n) > budget {
				return &dump.Error{Code: dump.Limit, File: k.in.Path, Stream: "threads", Offset: -1, Size: -1, Msg: "the stacks of the threads overlap too often"}
			}
			budget -= uint64(r.n)
			if err := s.reduceRun(a, r, restore); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceRun decides on the words of one run that lie in a stack: replaces those that are
// not kept, or restores the others.
func (s *scrubber) reduceRun(a *area, r *fileRun, restore bool) error {
	k := s.kernel
	data := make([]byte, r.n)
	n, err := k.in.File.ReadAt(data, r.off)
	if n < len(data) && err != nil && n == 0 {
		return &dump.Error{Code: dump.IO, File: k.in.Path, Offset: r.off, Size: r.n, Msg: "cannot be read", Err: err}
	}
	b := block{r.va, data[:n]}
	if n == 0 {
		return nil
	}
	from, to := a.within(&b)
	size := a.word
	unaligned := int((r.va + uint64(from)) % uint64(size))
	for i := from; i < to; {
		n := min(size-unaligned, to-i)
		w := data[i : i+n]
		whole := n == size // a part of a word is no pointer
		unaligned = 0
		keep := s.levels[a.thread] == All || whole && (word(w) == 0 || s.keepWord(a, r.va+uint64(i), word(w)))
		if keep == restore {
			k.replace(r.off+int64(i), n, keep, !allZero(w))
		}
		i += n
	}
	return nil
}

// replace decides on n bytes at an offset: they are kept, or are 0, or 1 when one says
// so. Fields of structures stay.
func (k *kernelFile) replace(off int64, n int, keep, one bool) {
	number, page := int64(-1), filePage{}
	for i := range n {
		at := off + int64(i)
		in := int(at % pageSize)
		if at/pageSize != number {
			number = at / pageSize
			page = k.page(number)
		}
		switch {
		case page.structure.has(in):
		case keep:
			page.zeros.clear(in)
			page.ones.clear(in)
		case i == 0 && one:
			mark(k.ones, at, 1)
		default:
			mark(k.zeros, at, 1)
		}
	}
}

func (p *pageUse) clear(i int) {
	if p != nil {
		p[i/64] &^= 1 << (i % 64)
	}
}

func allZero(b []byte) bool {
	return !slices.ContainsFunc(b, func(v byte) bool { return v != 0 })
}

// keptMemory returns how many bytes of the file are kept, of a whole system's those of
// its pages.
func (k *kernelFile) keptMemory() int64 {
	n, first := int64(0), int64(0)
	if k.src.PhysicalMemory() != nil {
		for _, s := range k.src.Sections() {
			if s.Name == "pages" {
				first = s.Offset
			}
		}
	}
	for _, page := range k.usedPages() {
		if page < first/pageSize {
			continue
		}
		for i := range pageSize / 64 {
			var word uint64
			if p := k.structure[page]; p != nil {
				word |= p[i]
			}
			if p := k.memory[page]; p != nil {
				word |= p[i]
			}
			n += int64(bits.OnesCount64(word))
		}
	}
	return n
}
