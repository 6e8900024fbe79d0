package sym

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// Location is what an address is called.
type Location struct {
	Function string // as the file has it, with or without arguments, or mangled
	RVA      uint32 // where the function begins
	Size     uint32 // of the function, 0 unknown
	Public   bool   // the name is a public symbol's: no function is known to cover the address
	Shared   bool   // other functions were folded into this one
	File     string // "" unknown
	Line     uint32 // 0 unknown; with Inlines that of the outermost call
	Inlines  []Inline
}

// Inline is a function inlined at an address. A chain is ordered innermost first.
type Inline struct {
	Function string
	File     string
	Line     uint32 // where the address lies in it, 0 unknown
}

// Caps on what one function may have.
const (
	maxLines    = 1 << 18
	maxInlines  = 1 << 16
	maxRanges   = 1 << 12 // of one inline record
	maxDepth    = 1 << 10 // of an inline chain
	maxCached   = 64      // functions that are kept
	maxLookLine = 1 << 16 // lines kept of all cached functions
)

// function is a FUNC record with what belongs to it.
type function struct {
	place
	name    string
	shared  bool
	lines   []line
	inlines []inline
}

type line struct{ rva, size, line, file uint32 }

// inline is one range of an INLINE record.
type inline struct{ rva, size, level, callLine, callFile, origin uint32 }

// Lookup names an address.
func (f *File) Lookup(rva uint32) (Location, bool) {
	x := f.load()
	p, ok := covering(x.funcs, rva)
	if !ok {
		return f.lookupPublic(x, rva)
	}
	fn := f.function(p)
	loc := Location{Function: fn.name, RVA: fn.rva, Size: fn.size, Shared: fn.shared}
	file, num := fn.lineAt(rva)
	chain := fn.chainAt(rva)
	// From the inside out: each call's place is where its caller stands.
	for _, in := range slices.Backward(chain) {
		loc.Inlines = append(loc.Inlines, Inline{f.originName(x, in.origin), f.fileName(x, file, num), num})
		file, num = in.callFile, in.callLine
	}
	loc.File, loc.Line = f.fileName(x, file, num), num
	return loc, true
}

// lookupPublic takes the public symbol below an address, unless a function ends
// between them: then the address belongs to neither.
func (f *File) lookupPublic(x *index, rva uint32) (Location, bool) {
	p, ok := below(x.publics, rva)
	if !ok {
		return Location{}, false
	}
	if fn, ok := below(x.funcs, rva); ok && fn.rva >= p.rva {
		return Location{}, false
	}
	fl, ok, done := f.record(p.off)
	defer done()
	if !ok {
		return Location{}, false
	}
	loc := Location{RVA: p.rva, Public: true}
	fl.word()
	loc.Shared = fl.take("m")
	fl.word()
	fl.word() // size of the parameters
	loc.Function = string(fl.rest())
	return loc, loc.Function != ""
}

// record reads one line, which is valid until it is given back.
func (f *File) record(off int64) (fl fields, ok bool, done func()) {
	s := newScanner(f.r, off, f.size, 256)
	b, _, ok := s.next()
	if !ok && s.err != nil {
		f.note("line", "cannot be read", off, s.err)
	}
	return fields(b), ok, s.release
}

func (f *File) note(stream, msg string, off int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.damage.add(stream, msg, off, err)
}

// function reads a function, or takes it from those read before.
func (f *File) function(p place) *function {
	f.mu.Lock()
	fn := f.funcs[p.off]
	f.mu.Unlock()
	if fn != nil {
		return fn
	}
	fn = f.readFunction(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.funcs) >= maxCached {
		clear(f.funcs)
	}
	if len(fn.lines)+len(fn.inlines) < maxLookLine/maxCached {
		f.funcs[p.off] = fn
	}
	return fn
}

func (f *File) readFunction(p place) *function {
	fn := &function{place: p, lines: make([]line, 0, 32)}
	s := newScanner(f.r, p.off, f.size, peekBlock)
	defer s.release()
	if head, _, ok := s.next(); ok {
		fl := fields(head)
		fl.word()
		fn.shared = fl.take("m")
		fl.word()
		fl.word()
		fl.word() // size of the parameters
		fn.name = string(fl.rest())
	}
	for len(fn.lines) < maxLines && len(fn.inlines) < maxInlines {
		b, off, ok := s.next()
		if !ok {
			break
		}
		belongs, good := fn.add(b)
		if !belongs {
			break
		}
		if !good {
			f.note("line record", "cannot be read", off, nil)
		}
	}
	if s.err != nil {
		f.note("line record", "cannot be read", p.off, s.err)
	}
	slices.SortStableFunc(fn.lines, func(a, b line) int { return cmp.Compare(a.rva, b.rva) })
	return fn
}

// add takes a line that may belong to the function and reports whether it does,
// and whether it could be read; if not it is left out.
func (fn *function) add(b []byte) (belongs, good bool) {
	f := fields(b)
	switch {
	case len(b) == 0:
		return true, true
	case f.take("INLINE"):
		return true, fn.addInline(&f)
	case hexDigit[b[0]] == 0, f.take("FUNC"), f.take("FILE"):
		return false, true
	}
	var l line
	var ok [4]bool
	l.rva, ok[0] = f.hex()
	l.size, ok[1] = f.hex()
	l.line, ok[2] = f.decimal()
	l.file, ok[3] = f.decimal()
	if ok != allRead {
		return true, false
	}
	fn.lines = append(fn.lines, l)
	return true, true
}

var allRead = [4]bool{true, true, true, true}

func (fn *function) addInline(f *fields) bool {
	var in inline
	var ok [4]bool
	in.level, ok[0] = f.decimal()
	in.callLine, ok[1] = f.decimal()
	in.callFile, ok[2] = f.decimal()
	in.origin, ok[3] = f.decimal()
	if ok != allRead {
		return false
	}
	for n := 0; n < maxRanges && len(bytes.TrimLeft(*f, " ")) > 0; n++ {
		in.rva, ok[0] = f.hex()
		in.size, ok[1] = f.hex()
		if ok != allRead {
			return false
		}
		fn.inlines = append(fn.inlines, in)
	}
	return true
}

// lineAt returns file and line of an address, 0 unknown.
func (fn *function) lineAt(rva uint32) (file, num uint32) {
	i := sort.Search(len(fn.lines), func(i int) bool { return fn.lines[i].rva > rva })
	for n := 0; n < maxOverlap && i > 0; n++ {
		i--
		if l := fn.lines[i]; rva-l.rva < l.size {
			return l.file, l.line
		}
	}
	return 0, 0
}

// chainAt returns the inlined functions that cover an address, outermost first.
// A level that is missing ends the chain: what is beyond it hangs in the air.
func (fn *function) chainAt(rva uint32) []inline {
	var chain []inline
	for level := uint32(0); level < maxDepth; level++ {
		i := slices.IndexFunc(fn.inlines, func(in inline) bool { return in.level == level && rva >= in.rva && rva-in.rva < in.size })
		if i < 0 {
			break
		}
		chain = append(chain, fn.inlines[i])
	}
	return chain
}

// fileName returns the name of a file by its number; a place without a line has
// none.
func (f *File) fileName(x *index, n, num uint32) string {
	if num == 0 {
		return ""
	}
	return f.numberedName(x.files, n)
}

func (f *File) originName(x *index, n uint32) string { return f.numberedName(x.origins, n) }

// numberedName reads the name of a FILE or INLINE_ORIGIN record.
func (f *File) numberedName(list []numbered, n uint32) string {
	off, ok := byNumber(list, n)
	if !ok {
		return ""
	}
	fl, _, done := f.record(off)
	defer done()
	fl.word()
	fl.word()
	return string(fl.rest())
}
