package pdb

// Source says which kind of record named an address.
type Source uint8

// The sources of names. Names are as the records have them: mangled in public
// symbols, plain in the others.
const (
	SourceNone       Source = iota
	SourceProc              // a procedure, or code separated from it
	SourceThunk             // a thunk; its name is the function's that it leads to
	SourceTrampoline        // a jump of incremental linking, without name of its own
	SourceLabel             // a label of code that no procedure or public symbol names
	SourcePublic            // a public symbol at or below the address
)

var sourceNames = [...]string{"none", "proc", "thunk", "trampoline", "label", "public"}

// String returns the source as a word.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "none"
}

// Location is what is known about a code address.
type Location struct {
	Function    string // raw; "" when only a line is known
	FunctionRVA uint32 // where the function begins
	Offset      int64  // from FunctionRVA; negative in code separated to a place before it
	Size        uint32 // of the function's main part in bytes, 0 when not known
	File        string // as the compiler recorded it, "" when not known
	Line        uint32 // 0 when not known; in the function itself: with inlines, of the outermost call
	Column      uint16 // 0 when not known
	Inlines     []Inline
	Source      Source
	Module      string // object file, "" when not known
	// SamePiece says that a public symbol and the address lie in one contribution of
	// an object file; without it nothing says how far the symbol reaches.
	SamePiece bool
}

// Inline is a function inlined at an address. A chain is ordered innermost
// first: each line is where the address lies in that function, so the lines of
// all but the first are those of calls.
type Inline struct {
	Function string // qualified, without arguments
	File     string
	Line     uint32
}

// Lookup names a code address of the image as loaded. False means that the PDB
// knows nothing about it.
func (f *File) Lookup(rva uint32) (Location, bool) {
	source, ok := f.ToSource(rva)
	if !ok || len(f.sections) == 0 {
		return Location{}, false
	}
	var loc Location
	piece, known := f.contribs().find(source)
	if known {
		f.lookupModule(&loc, piece, source)
	}
	if loc.Source == SourceNone || loc.Source == SourceLabel {
		f.lookupPublic(&loc, source, piece, known)
	}
	if loc.Source == SourceNone {
		return loc, loc.Line != 0
	}
	if start, ok := f.FromSource(loc.FunctionRVA); ok {
		loc.FunctionRVA = start
	}
	loc.Offset = int64(rva) - int64(loc.FunctionRVA)
	return loc, true
}

// lookupModule fills in what the module that contributed the code knows.
func (f *File) lookupModule(loc *Location, piece contribution, rva uint32) {
	m := f.module(int(piece.module))
	if m == nil {
		h, _ := f.modules().header(int(piece.module))
		loc.Module = h.name
		return
	}
	loc.Module = m.name
	if p, ok := f.line(m, rva); ok {
		loc.File, loc.Line, loc.Column = p.file, p.line, p.column
	}
	if v, ok := m.code.innermost(rva); ok {
		f.lookupCode(loc, m, v, rva)
		return
	}
	if v, ok := m.labels.atOrBelow(rva); ok && v.start >= piece.rva {
		f.nameBy(loc, m, v)
	}
}

// lookupCode names an address by the record that covers it.
func (f *File) lookupCode(loc *Location, m *module, v interval, rva uint32) {
	in := chunkAddress{0, rva - v.start}
	if v.kind == symSeparatedCode {
		proc, chunk, ok := f.owner(m, v)
		if !ok {
			return
		}
		v, in.chunk = proc, chunk
	}
	f.nameBy(loc, m, v)
	if v.kind.isProc() {
		loc.Inlines = f.inlines(m, v.record, in)
	}
}

// nameBy takes a name from the record of an interval.
func (f *File) nameBy(loc *Location, m *module, v interval) {
	r, ok := m.recordAt(v.record)
	if !ok {
		return
	}
	s, ok := decodeCode(&r, true)
	if !ok {
		return
	}
	loc.Function, loc.FunctionRVA, loc.Size = s.name, v.start, v.end-v.start
	switch {
	case r.kind.isProc():
		loc.Source = SourceProc
	case r.kind == symThunk:
		loc.Source = SourceThunk
	case r.kind == symTrampoline:
		loc.Source = SourceTrampoline
	default:
		loc.Source = SourceLabel
	}
}

// owner finds the function that a piece of separated code belongs to, and which
// of its chunks the piece is: the first record of separated code is chunk 1.
func (f *File) owner(m *module, piece interval) (proc interval, chunk uint32, ok bool) {
	r, _ := m.recordAt(piece.record)
	s, ok := decodeCode(&r, false)
	if !ok {
		return interval{}, 0, false
	}
	start, ok := f.sourceRVA(s.parentS, s.parent)
	if !ok {
		return interval{}, 0, false
	}
	proc, ok = m.code.innermost(start)
	if !ok || !proc.kind.isProc() || proc.start != start {
		return interval{}, 0, false
	}
	return proc, f.chunkNumber(m, s, piece), true
}

// chunkNumber counts the separated pieces of the same function up to this one
// in the file's order.
func (f *File) chunkNumber(m *module, s codeSymbol, piece interval) uint32 {
	n := uint32(1)
	for _, v := range m.code {
		if v.kind != symSeparatedCode || v.record >= piece.record {
			continue
		}
		r, _ := m.recordAt(v.record)
		if o, ok := decodeCode(&r, false); ok && o.parent == s.parent && o.parentS == s.parentS {
			n++
		}
	}
	return n
}
