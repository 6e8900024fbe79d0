package sym

import (
	"cmp"
	"slices"
	"sort"
)

// place is where a record with an address is.
type place struct {
	rva, size uint32
	off       int64
}

// numbered is where a record with a number is.
type numbered struct {
	n   uint32
	off int64
}

// index is where everything is, by address or number.
type index struct {
	funcs   []place
	publics []place
	files   []numbered
	origins []numbered
	win     [4][]place // FPO records, frame data, trap frames, task gates
	cfi     []place
}

// Kinds of STACK WIN records.
const (
	winFPO       = 0
	winTrap      = 1
	winTaskGate  = 2
	winFrameData = 4
)

// load indexes the file once.
func (f *File) load() *index {
	f.once.Do(func() {
		s := newScanner(f.r, 0, f.size, scanBlock)
		defer s.release()
		var d damage
		for {
			line, off, ok := s.next()
			if !ok {
				break
			}
			// Most lines are those of functions, which are read with these.
			if len(line) == 0 || hexDigit[line[0]] != 0 && line[0] != 'F' {
				continue
			}
			if stream := f.index.add(line, off); stream != "" {
				d.add(stream, "cannot be read", off, nil)
			}
		}
		if s.long > 0 {
			d.add("line", "longer than 1 MB", s.off, nil)
		}
		if s.err != nil {
			d.add("symbols", "cannot be read to the end", s.off, s.err)
		}
		f.index.sort()
		f.mu.Lock()
		f.damage.kinds = append(f.damage.kinds, d.kinds...)
		f.mu.Unlock()
	})
	return &f.index
}

// add indexes one line. It returns the kind of a record that cannot be read.
func (x *index) add(line []byte, off int64) (bad string) {
	f := fields(line)
	switch kind := f.word(); string(kind) {
	case "FUNC":
		f.take("m")
		return x.place(&x.funcs, &f, off, true, "FUNC")
	case "PUBLIC":
		f.take("m")
		return x.place(&x.publics, &f, off, false, "PUBLIC")
	case "FILE":
		return x.number(&x.files, &f, off, "FILE")
	case "INLINE_ORIGIN":
		return x.number(&x.origins, &f, off, "INLINE_ORIGIN")
	case "STACK":
		return x.stack(&f, off)
	}
	return "" // INLINE, INFO, and what later writers may add
}

func (x *index) stack(f *fields, off int64) (bad string) {
	switch string(f.word()) {
	case "WIN":
		kind, ok := f.hex()
		if !ok {
			return "STACK WIN"
		}
		switch kind {
		case winFPO:
			return x.place(&x.win[0], f, off, true, "STACK WIN")
		case winFrameData:
			return x.place(&x.win[1], f, off, true, "STACK WIN")
		case winTrap:
			return x.place(&x.win[2], f, off, true, "STACK WIN")
		case winTaskGate:
			return x.place(&x.win[3], f, off, true, "STACK WIN")
		}
	case "CFI":
		if f.take("INIT") { // the lines that change its rules follow it
			return x.place(&x.cfi, f, off, true, "STACK CFI INIT")
		}
	}
	return ""
}

func (x *index) place(to *[]place, f *fields, off int64, sized bool, stream string) (bad string) {
	p := place{off: off}
	var ok bool
	if p.rva, ok = f.hex(); !ok {
		return stream
	}
	if sized {
		if p.size, ok = f.hex(); !ok {
			return stream
		}
	}
	*to = append(*to, p)
	return ""
}

func (x *index) number(to *[]numbered, f *fields, off int64, stream string) (bad string) {
	n, ok := f.decimal()
	if !ok {
		return stream
	}
	*to = append(*to, numbered{n, off})
	return ""
}

func (x *index) sort() {
	byRVA := func(a, b place) int { return cmp.Compare(a.rva, b.rva) }
	for _, list := range []*[]place{&x.funcs, &x.publics, &x.win[0], &x.win[1], &x.win[2], &x.win[3], &x.cfi} {
		if !slices.IsSortedFunc(*list, byRVA) {
			slices.SortStableFunc(*list, byRVA)
		}
	}
	byNumber := func(a, b numbered) int { return cmp.Compare(a.n, b.n) }
	for _, list := range []*[]numbered{&x.files, &x.origins} {
		if !slices.IsSortedFunc(*list, byNumber) {
			slices.SortStableFunc(*list, byNumber)
		}
	}
}

// maxOverlap is how many records are looked at that begin before an address and
// may reach over a shorter one that begins later.
const maxOverlap = 32

// covering returns the record that covers an address; of several the one that
// begins last, which is the innermost.
func covering(list []place, rva uint32) (place, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].rva > rva })
	for n := 0; n < maxOverlap && i > 0; n++ {
		i--
		if p := list[i]; rva-p.rva < p.size {
			for i > 0 && list[i-1].rva == p.rva && list[i-1].size == p.size {
				i-- // the first that the file has
				p = list[i]
			}
			return p, true
		}
	}
	return place{}, false
}

// below returns the first record at the last address that is not above one.
func below(list []place, rva uint32) (place, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].rva > rva })
	if i == 0 {
		return place{}, false
	}
	at := list[i-1].rva
	i = sort.Search(i, func(i int) bool { return list[i].rva >= at })
	return list[i], true
}

func byNumber(list []numbered, n uint32) (int64, bool) {
	i, ok := slices.BinarySearchFunc(list, n, func(a numbered, n uint32) int { return cmp.Compare(a.n, n) })
	if !ok {
		return 0, false
	}
	return list[i].off, true
}
