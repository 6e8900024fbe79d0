package dwarf

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stdFile answers as File does, by the standard library's debug/dwarf: a second
// reader to compare with. Its bytes must be trusted (docs/dependencies.md).
type stdFile struct {
	im     *image
	d      *dwarf.Data
	roots  []*dwarf.Entry // of units
	byAddr spans          // of roots
	bodies map[int32]*stdBody
}

// stdBody is a decoded unit.
type stdBody struct {
	funcs  []stdFunc
	byAddr spans // of funcs
	rows   []dwarf.LineEntry
	files  []*dwarf.LineFile
}

// stdFunc is a function or, with a depth, an inlined call in it.
type stdFunc struct {
	e       *dwarf.Entry
	ranges  [][2]uint64
	depth   int
	inlines []stdFunc
}

func openStd(im *image) (*stdFile, error) {
	whole := func(name string) []byte {
		s, err := im.openSection(name)
		if err != nil {
			return nil
		}
		c := s.from(0)
		return c.Bytes(c.Left())
	}
	d, err := dwarf.New(whole("debug_abbrev"), nil, nil, whole("debug_info"), whole("debug_line"), nil, whole("debug_ranges"), whole("debug_str"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"debug_addr", "debug_line_str", "debug_rnglists", "debug_str_offsets"} {
		if err := d.AddSection("."+name, whole(name)); err != nil {
			return nil, err
		}
	}
	f := &stdFile{im: im, d: d, bodies: map[int32]*stdBody{}}
	for r := d.Reader(); ; r.SkipChildren() {
		e, err := r.Next()
		if e == nil || err != nil {
			f.byAddr.sort()
			return f, err
		}
		if e.Tag != dwarf.TagCompileUnit {
			continue
		}
		list, err := f.code(e)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			f.byAddr.list = append(f.byAddr.list, span{s[0], s[1], int32(len(f.roots))})
		}
		f.roots = append(f.roots, e)
	}
}

// code is the ranges of an entry without those of code that the linker left out.
func (f *stdFile) code(e *dwarf.Entry) ([][2]uint64, error) {
	list, err := f.d.Ranges(e)
	return slices.DeleteFunc(list, func(s [2]uint64) bool { return s[0] < f.im.base || s[0] == 0 || s[1] <= s[0] }), err
}

func (f *stdFile) body(unit int32) (*stdBody, error) {
	if b := f.bodies[unit]; b != nil {
		return b, nil
	}
	b := &stdBody{}
	f.bodies[unit] = b
	r := f.d.Reader()
	r.Seek(f.roots[unit].Offset)
	if _, err := r.Next(); err != nil {
		return nil, err
	}
	if err := f.children(r, b, nil, 0); err != nil {
		return nil, err
	}
	b.byAddr.sort()
	return b, f.readLines(unit, b)
}

// children reads the entries below one, and below those.
func (f *stdFile) children(r *dwarf.Reader, b *stdBody, in *stdFunc, depth int) error {
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return err
		}
		below, belowDepth := in, depth
		list, err := f.code(e)
		switch {
		case err != nil:
			return err
		case e.Tag == dwarf.TagSubprogram:
			below, belowDepth = &stdFunc{e: e, ranges: list}, 0
		case e.Tag == dwarf.TagInlinedSubroutine && in != nil:
			belowDepth++
			in.inlines = append(in.inlines, stdFunc{e: e, ranges: list, depth: belowDepth})
		}
		if e.Children {
			if err := f.children(r, b, below, belowDepth); err != nil {
				return err
			}
		}
		if below != in && len(below.ranges) > 0 {
			for _, s := range below.ranges {
				b.byAddr.list = append(b.byAddr.list, span{s[0], s[1], int32(len(b.funcs))})
			}
			b.funcs = append(b.funcs, *below)
		}
	}
}

func (f *stdFile) readLines(unit int32, b *stdBody) error {
	r, err := f.d.LineReader(f.roots[unit])
	if r == nil || err != nil {
		return err
	}
	for {
		var row dwarf.LineEntry
		if err := r.Next(&row); err != nil {
			b.files = r.Files()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		b.rows = append(b.rows, row)
	}
}

// lookup returns names without scopes around them.
func (f *stdFile) lookup(rva uint32) (loc Location, ok bool, err error) {
	pc := f.im.base + uint64(rva)
	f.byAddr.each(pc, func(s span) bool {
		loc, ok, err = f.inUnit(s.index, pc)
		return !ok && err == nil
	})
	return loc, ok, err
}

func (f *stdFile) inUnit(unit int32, pc uint64) (loc Location, ok bool, err error) {
	b, err := f.body(unit)
	if err != nil {
		return loc, false, err
	}
	for i := 1; i < len(b.rows); i++ {
		if row := &b.rows[i-1]; row.Address <= pc && pc < b.rows[i].Address && !row.EndSequence {
			if loc.Line = uint32(row.Line); row.File != nil {
				loc.File = row.File.Name
			}
			break
		}
	}
	best := span{index: none}
	b.byAddr.each(pc, func(s span) bool {
		if best.index == none || s.end-s.begin < best.end-best.begin {
			best = s
		}
		return true
	})
	if best.index == none {
		return loc, false, nil
	}
	fn := &b.funcs[best.index]
	chain := slices.Clone(fn.inlines)
	chain = slices.DeleteFunc(chain, func(in stdFunc) bool {
		return !slices.ContainsFunc(in.ranges, func(s [2]uint64) bool { return s[0] <= pc && pc < s[1] })
	})
	slices.SortStableFunc(chain, func(a, b stdFunc) int { return cmp.Compare(b.depth, a.depth) })
	for _, in := range chain {
		loc.Inlines = append(loc.Inlines, Inline{f.nameOf(in.e), loc.File, loc.Line})
		line, _ := in.e.Val(dwarf.AttrCallLine).(int64)
		file, known := in.e.Val(dwarf.AttrCallFile).(int64)
		loc.Line, loc.File = uint32(line), ""
		if known && file < int64(len(b.files)) && b.files[file] != nil {
			loc.File = b.files[file].Name
		}
	}
	loc.Function, loc.RVA = f.nameOf(fn.e), uint32(fn.ranges[0][0]-f.im.base)
	return loc, true, nil
}

func (f *stdFile) nameOf(e *dwarf.Entry) (name string) {
	for r := f.d.Reader(); e != nil; e, _ = r.Next() {
		for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, attrLinkageOld} {
			if s, ok := e.Val(attr).(string); ok {
				return s
			}
		}
		if s, ok := e.Val(dwarf.AttrName).(string); ok {
			name = s
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		r.Seek(next)
	}
	return name
}

// alike reports whether both readers say the same. This one joins and cleans paths in
// its own way, and knows no scopes.
func alike(got, want Location) bool {
	call := func(a, b Inline) bool {
		file := func(path string) string {
			if path = path[strings.LastIndexAny(path, `/\`)+1:]; path == "?" { // of code that Go's compiler made itself
				return ""
			}
			return path
		}
		return (a.Function == b.Function || strings.HasSuffix(a.Function, "::"+b.Function)) && a.Line == b.Line && file(a.File) == file(b.File)
	}
	outer := func(loc Location) Inline { return Inline{loc.Function, loc.File, loc.Line} }
	return got.RVA == want.RVA && call(outer(got), outer(want)) && slices.EqualFunc(got.Inlines, want.Inlines, call)
}

// The standard library's reader gives the same functions, inlined calls and lines:
// of every byte of the images here, and of 20000 addresses of the image that
// DWARF_LARGE names.
func TestStandardLibrary(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.exe")
	if large := os.Getenv("DWARF_LARGE"); large != "" {
		files = append(files, large)
	}
	compared := 0
	for _, path := range files {
		f := open(t, path)
		if !f.HasDWARF() {
			continue
		}
		std, err := openStd(f.im)
		if err != nil {
			t.Fatal(path, err)
		}
		text, bad, named := f.im.sections[0], 0, 0
		step := max(1, text.vsize/20000)
		for rva := text.rva; rva < text.rva+text.vsize; rva += step {
			want, ok, err := std.lookup(rva)
			if err != nil {
				t.Fatalf("%s: %#x: %v", path, rva, err)
			}
			got, _ := f.Lookup(rva)
			if !ok || want.Function == "" || want.RVA > rva { // the symbol table may name those
				continue
			}
			named++
			if !alike(got, want) && bad < 5 {
				bad++
				t.Errorf("%s: %#x:\n got  %+v\n want %+v", path, rva, got, want)
			}
		}
		t.Logf("%s: %d addresses are named", path, named)
		compared += named
	}
	if compared < 1000 {
		t.Errorf("%d addresses were compared", compared)
	}
}

// BenchmarkStandardLibrary is BenchmarkLarge by debug/dwarf.
func BenchmarkStandardLibrary(b *testing.B) {
	path := os.Getenv("DWARF_LARGE")
	if path == "" {
		b.Skip("DWARF_LARGE names no file")
	}
	f := open(b, path)
	b.ReportAllocs()
	for b.Loop() {
		std, err := openStd(f.im)
		if err != nil {
			b.Fatal(err)
		}
		text := f.im.sections[0]
		for i := range uint32(100) {
			if _, _, err := std.lookup(text.rva + text.vsize/100*i); err != nil {
				b.Fatal(err)
			}
		}
	}
}
