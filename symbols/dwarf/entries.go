package dwarf

import (
	"debug/dwarf"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxNesting = 1 << 12 // entries within entries
	none       = -1
	noFile     = ^uint64(0)
)

// entry is a function, an inlined call or what they lie in: what has a name that
// matters.
type entry struct {
	off           uint64 // in .debug_info
	parent        int32  // in the unit's entries, none for the outermost
	tag           dwarf.Tag
	name, linkage value
	// ref is where the name is when it is not here: the declaration, or the
	// function that was inlined.
	ref value
}

// function is a function with code.
type function struct {
	entry    int32
	start    uint64 // where it is entered
	firstIn  int32  // its inlined calls, with those of functions inside it
	behindIn int32
}

// inlined is an inlined call.
type inlined struct {
	entry, function int32
	depth           int32 // 1 for one in the function itself
	file, line      uint64
	first, behind   int32 // in the unit's ranges
}

// body is a decoded unit.
type body struct {
	entries []entry // by offset
	funcs   []function
	byAddr  spans // of funcs
	inlines []inlined
	ranges  []span // of inlines
	lines   *lineTable
}

func (b *body) weight() int {
	return len(b.entries) + len(b.inlines) + len(b.ranges) + len(b.byAddr.list) + len(b.lines.rows) + len(b.lines.dirs) + len(b.lines.files)
}

// scope is what an entry's children lie in.
type scope struct {
	entry, function int32
	depth           int32 // of inlined calls
}

// walk decodes the entries of a unit.
type walk struct {
	maxEntries, maxSpans int
	f                    *File
	u                    *unit
	c                    *cursor.Cursor
	b                    *body
	stack                []scope
}

// attributes are those of an entry that matter.
type attributes struct {
	name, linkage, ref, low, high, ranges, callFile, callLine value
}

// decode reads a unit's entries and lines. Damage is noted; what came before it
// counts.
func (f *File) decode(u *unit) *body {
	b := &body{lines: &lineTable{}}
	if err := f.decodeEntries(u, b); err != nil {
		f.note(err)
	}
	b.byAddr.sort()
	if u.lines.there() {
		lines, err := f.readLines(u)
		if err != nil {
			f.note(err)
		}
		b.lines = lines
	}
	return b
}

func (f *File) decodeEntries(u *unit, b *body) error {
	if u.end-u.off > maxUnit {
		return dump.Errorf(dump.Limit, f.info.name, "a unit of %d bytes", u.end-u.off)
	}
	t, err := f.table(u.abbrev)
	if err != nil {
		return err
	}
	w := &walk{f: f, u: u, b: b, c: f.info.at(u.off, int64(u.end-u.off))}
	w.maxEntries = most(int64(u.end - u.off))
	w.maxSpans = most(int64(u.end-u.off) + f.ranges.size + f.rnglists.size)
	w.c.Seek(int(u.first - u.off))
	for w.c.Err() == nil && w.c.Left() > 0 {
		if !f.spend(1) || len(b.entries) > w.maxEntries {
			w.c.Fail(dump.Limit, "more entries than are read")
			break
		}
		off := u.off + uint64(w.c.Offset())
		code := w.c.ULEB128()
		if code == 0 { // the end of a list of children
			if len(w.stack) <= 1 {
				break
			}
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		a := t.find(code)
		if a == nil {
			w.c.Fail(dump.BadRecord, "the abbreviations lack code %d", code)
			break
		}
		w.entry(off, a)
		if len(w.stack) == 0 {
			break // the unit's own entry has no children
		}
	}
	return w.c.Err()
}

// entry reads one entry and makes room for its children.
func (w *walk) entry(off uint64, a *abbrev) {
	begin := w.c.Offset()
	at := w.attributes(a)
	// Attributes that fill no bytes are not bounded by those of the unit.
	if idle := len(a.attrs) - (w.c.Offset() - begin); idle > 0 && !w.f.spend(idle) {
		w.c.Fail(dump.Limit, "more attributes than are read")
	}
	in := scope{entry: none, function: none}
	if n := len(w.stack); n > 0 {
		in = w.stack[n-1]
	}
	if w.c.Err() != nil {
		return
	}
	switch a.tag {
	case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagInterfaceType:
		in.entry = w.add(off, a.tag, in.entry, &at)
	case dwarf.TagSubprogram:
		in.entry = w.add(off, a.tag, in.entry, &at)
		in.function, in.depth = w.function(in.entry, &at), 0
	case dwarf.TagInlinedSubroutine:
		in.entry = w.add(off, a.tag, in.entry, &at)
		in.depth++
		w.inlined(in, &at)
	}
	if in.function != none {
		w.b.funcs[in.function].behindIn = int32(len(w.b.inlines))
	}
	if a.children {
		if len(w.stack) >= maxNesting {
			w.c.Fail(dump.Limit, "entries are nested more than %d deep", maxNesting)
			return
		}
		w.stack = append(w.stack, in)
	}
}

func (w *walk) attributes(a *abbrev) (at attributes) {
	for _, form := range a.attrs {
		v := w.u.read(w.c, form.form, form.implicit)
		switch form.name {
		case dwarf.AttrName:
			at.name = v
		case dwarf.AttrLinkageName, attrLinkageOld:
			at.linkage = v
		case dwarf.AttrAbstractOrigin, dwarf.AttrSpecification:
			at.ref = v
		case dwarf.AttrLowpc:
			at.low = v
		case dwarf.AttrHighpc:
			at.high = v
		case dwarf.AttrRanges:
			at.ranges = v
		case dwarf.AttrCallFile:
			at.callFile = v
		case dwarf.AttrCallLine:
			at.callLine = v
		}
	}
	return at
}

func (w *walk) add(off uint64, tag dwarf.Tag, parent int32, at *attributes) int32 {
	w.b.entries = append(w.b.entries, entry{off: off, parent: parent, tag: tag, name: at.name, linkage: at.linkage, ref: at.ref})
	return int32(len(w.b.entries) - 1)
}

// function keeps a function that has code, and returns its index or none.
func (w *walk) function(entry int32, at *attributes) int32 {
	list := w.extent(at)
	if len(list) == 0 {
		return none
	}
	index := int32(len(w.b.funcs))
	w.b.funcs = append(w.b.funcs, function{entry: entry, start: list[0].begin, firstIn: int32(len(w.b.inlines))})
	for _, s := range list {
		w.b.byAddr.list = append(w.b.byAddr.list, span{s.begin, s.end, index})
	}
	return index
}

func (w *walk) inlined(in scope, at *attributes) {
	if in.function == none {
		return
	}
	i := inlined{entry: in.entry, function: in.function, depth: in.depth, file: at.callFile.u, line: at.callLine.u, first: int32(len(w.b.ranges))}
	if !at.callFile.there() {
		i.file = noFile
	}
	w.b.ranges = append(w.b.ranges, w.extent(at)...)
	i.behind = int32(len(w.b.ranges))
	w.b.inlines = append(w.b.inlines, i)
}

func (w *walk) extent(at *attributes) []span {
	list, err := w.f.extent(w.u, at.low, at.high, at.ranges)
	if err != nil {
		w.f.note(err)
	}
	if len(w.b.byAddr.list)+len(w.b.ranges)+len(list) > w.maxSpans {
		w.c.Fail(dump.Limit, "more ranges than are read")
		return nil
	}
	return list
}

// functionAt returns the innermost function at an address.
func (b *body) functionAt(pc uint64) (int32, bool) {
	best := span{index: none}
	b.byAddr.each(pc, func(s span) bool {
		if best.index == none || s.end-s.begin < best.end-best.begin {
			best = s
		}
		return true
	})
	return best.index, best.index != none
}

// chain returns the inlined calls of a function at an address, innermost first; false
// when that would take more than may be spent.
func (f *File) chain(b *body, fn int32, pc uint64) ([]*inlined, bool) {
	var out []*inlined
	for i := b.funcs[fn].firstIn; i < b.funcs[fn].behindIn; i++ {
		in := &b.inlines[i]
		if !f.spend(1 + int(in.behind-in.first)) {
			return nil, false
		}
		if in.function != fn || !covers(b.ranges[in.first:in.behind], pc) {
			continue
		}
		out = append(out, in)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].depth > out[j].depth })
	return out, true
}

func covers(list []span, pc uint64) bool {
	for _, s := range list {
		if s.begin <= pc && pc < s.end {
			return true
		}
	}
	return false
}
