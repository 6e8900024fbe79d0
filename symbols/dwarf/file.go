package dwarf

import (
	"errors"
	"io"
	"sync"

	"dumptriage/dump"
)

const (
	maxDamage     = 16       // errors that are kept
	maxWeight     = 1 << 20  // entries and lines of the units that are kept
	restingWeight = 1 << 16  // the same, from one dump to the next
	maxPlaces     = 1 << 14  // answers that are kept
	maxHeld       = 16 << 20 // bytes of names in them
	// maxText caps the names and paths of one answer, which may be a chain of calls
	// that all have the longest name there is.
	maxText = 1 << 20

	// maxWork caps the records that are decoded for one file: some seconds. No
	// real program comes near it, and one made to waste time gets no further.
	maxWork = 1 << 27
)

// Location is what an address is called.
type Location struct {
	Function string // "" unknown; mangled where the compiler mangles, else without arguments
	RVA      uint32 // where the function begins, which may be above the address when a part was moved away
	Public   bool   // the name is the symbol table's: how far the function reaches is not known
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

// File is the debug information of an image.
type File struct {
	im   *image
	name string

	info, abbrev, line, str, lineStr, strOffsets, addr, ranges, rnglists *section

	mu          sync.Mutex
	work        int
	indexed     bool
	units       []unit
	byAddr      spans // of units
	bodies      map[int32]*body
	weight      int
	tables      map[uint64]*abbrevs
	attrs       int // in tables
	symbols     []symbol
	symbolsRead bool
	places      map[uint32]Location
	held        int // bytes of text in places
	text        int // bytes of text in the answer that is being made
	damage      []*dump.Error
}

// Open reads the headers of an image. The name is for messages. It fails, with a
// *dump.Error, when the file is no PE image. The reader must stay usable.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	im, err := openImage(r, size)
	if err != nil {
		return nil, named(err, name)
	}
	f := &File{im: im, name: name, bodies: map[int32]*body{}, places: map[uint32]Location{}}
	return f, nil
}

func named(err error, name string) error {
	if e, ok := errors.AsType[*dump.Error](err); ok {
		withName := *e
		withName.File = name
		return &withName
	}
	return err
}

// HasDWARF reports whether the image has DWARF debug information.
func (f *File) HasDWARF() bool {
	return f.im.find(".debug_info") != nil || f.im.find(".zdebug_info") != nil
}

// HasSymbols reports whether the image has a COFF symbol table.
func (f *File) HasSymbols() bool { return f.im.count > 0 }

// X86 reports whether the image is of a machine whose linkers put an underscore
// before the names of C.
func (f *File) X86() bool { return f.im.machine == machineI386 }

// openSections finds the sections, and unpacks those that are compressed.
func (f *File) openSections() {
	for _, s := range []struct {
		to   **section
		name string
	}{
		{&f.info, "debug_info"}, {&f.abbrev, "debug_abbrev"}, {&f.line, "debug_line"}, {&f.str, "debug_str"},
		{&f.lineStr, "debug_line_str"}, {&f.strOffsets, "debug_str_offsets"}, {&f.addr, "debug_addr"},
		{&f.ranges, "debug_ranges"}, {&f.rnglists, "debug_rnglists"},
	} {
		var err error
		if *s.to, err = f.im.openSection(s.name); err != nil {
			f.note(err)
		}
	}
}

// Damage returns what could not be read so far.
func (f *File) Damage() []*dump.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*dump.Error(nil), f.damage...)
}

func (f *File) note(err error) {
	e, ok := errors.AsType[*dump.Error](named(err, f.name))
	if !ok || len(f.damage) >= maxDamage {
		return
	}
	for _, old := range f.damage {
		if old.Code == e.Code && old.Stream == e.Stream && old.Msg == e.Msg {
			return // the first of a kind shows where to look
		}
	}
	f.damage = append(f.damage, e)
}

// spend takes n records from what may be decoded; false means that it is used up.
func (f *File) spend(n int) bool {
	f.work += n
	return f.work <= maxWork
}

// Renew lets as much be decoded for what is asked from now on as of a file that was
// just opened. Units that weigh much are let go: who keeps many files open has memory
// for little of each.
func (f *File) Renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work = 0
	if f.weight > restingWeight {
		clear(f.bodies)
		f.weight = 0
	}
}

// read reads a string for an answer, "" when there is none or the answer has become
// too long; crowded tells which.
func (f *File) read(s *section, off uint64) string {
	if f.crowded() {
		return ""
	}
	t := s.string(off)
	if f.text += len(t); f.crowded() {
		f.note(dump.Errorf(dump.Limit, s.name, "the names at one address have more than %d bytes", maxText))
	}
	return t
}

func (f *File) crowded() bool { return f.text > maxText }

// most is how many records n bytes are believed to hold: what a compiler writes
// takes more, and a few bytes of a forged file must not become much memory.
func most(n int64) int { return int(n/4) + 4096 }

// Lookup names an address.
func (f *File) Lookup(rva uint32) (Location, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	loc, done := f.places[rva]
	if !done {
		f.text = 0
		loc = f.lookup(rva)
		if f.held += f.text; len(f.places) >= maxPlaces || f.held > maxHeld {
			clear(f.places)
			f.held = f.text
		}
		f.places[rva] = loc
	}
	return loc, loc.Function != "" || loc.Line != 0
}

func (f *File) lookup(rva uint32) Location {
	if !f.indexed {
		f.indexed = true
		f.openSections()
		f.index()
	}
	pc := f.im.base + uint64(rva)
	var loc Location
	found := false
	f.byAddr.each(pc, func(s span) bool {
		loc, found = f.inUnit(s.index, pc)
		return !found
	})
	if found && loc.Function != "" && loc.RVA <= rva {
		return loc
	}
	if s, ok := f.symbolAt(rva); ok { // lines are kept
		loc.Function, loc.RVA, loc.Public = s.Function, s.RVA, true
	}
	return loc
}

// inUnit names an address by one unit; false means that no function of it covers
// the address.
func (f *File) inUnit(unit int32, pc uint64) (Location, bool) {
	b := f.body(unit)
	file, line := b.lines.at(pc)
	fn, ok := b.functionAt(pc)
	if !ok {
		return Location{File: f.fileName(unit, b.lines, file), Line: line}, false
	}
	loc := Location{Function: f.nameOf(unit, b, b.funcs[fn].entry), RVA: uint32(b.funcs[fn].start - f.im.base)}
	chain, ok := f.chain(b, fn, pc)
	if !ok { // the line is that of the innermost call, whichever that is
		f.note(dump.Errorf(dump.Limit, f.info.name, "more inlined calls than are looked at"))
		return loc, true
	}
	// From the inside out: each call's place is where its caller stands.
	for _, in := range chain {
		loc.Inlines = append(loc.Inlines, Inline{f.nameOf(unit, b, in.entry), f.fileName(unit, b.lines, file), line})
		file, line = in.file, uint32(min(in.line, 1<<32-1))
	}
	loc.File, loc.Line = f.fileName(unit, b.lines, file), line
	return loc, true
}

// body decodes a unit, or takes it from those kept.
func (f *File) body(unit int32) *body {
	if b := f.bodies[unit]; b != nil {
		return b
	}
	b := f.decode(&f.units[unit])
	if w := b.weight(); f.weight+w > maxWeight {
		clear(f.bodies)
		f.weight = w
	} else {
		f.weight += w
	}
	f.bodies[unit] = b
	return b
}
