package dwarf

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

// simple is an image with one unit.
func simple(entries []byte, more ...part) []byte {
	return build(append([]part{{".debug_info", unit4(entries)}, {".debug_abbrev", testAbbrevs()}, {".debug_line", lines()}}, more...)...)
}

// The tests' writer and the reader agree on what all that follows is bent from.
func TestBuilt(t *testing.T) {
	e := root().u8(5).str("ns").u8(2).str("f").u64(testBase + 0x1000).u32(0x20)
	origin := uint32(len(e.b) + 11) // of g; 11 bytes of header come before
	origin += 2                     // behind the ends of f and ns
	e.u8(0, 0).u8(7).str("g").u8(4).u32(origin).u64(testBase + 0x1800).u32(0x10)
	e.u8(3).u32(origin).u64(testBase+0x1804).u32(4).u8(77).u8(0, 0, 0)
	f, err := openBuilt(simple(e.b))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rva, start uint32
		function   string
		line       uint32
		inlines    int
	}{
		{0x1000, 0x1000, "ns::f", 10, 0}, {0x100f, 0x1000, "ns::f", 10, 0}, {0x1010, 0x1000, "ns::f", 13, 0}, {0x101f, 0x1000, "ns::f", 13, 0},
		{0x1020, 0, "", 0, 0}, {0x1800, 0x1800, "g", 0, 0}, {0x1804, 0x1800, "g", 77, 1}, {0x1808, 0x1800, "g", 0, 0}, {0xfff, 0, "", 0, 0},
	} {
		loc, _ := f.Lookup(tc.rva)
		if loc.Function != tc.function || loc.RVA != tc.start || loc.Line != tc.line || len(loc.Inlines) != tc.inlines {
			t.Errorf("%#x: %+v, want %+v", tc.rva, loc, tc)
		}
	}
	if d := f.Damage(); len(d) != 0 {
		t.Error(d)
	}
}

// A unit's own abbreviation need not be among the first: gcc orders them by use.
func TestLateAbbreviation(t *testing.T) {
	var abbrevs buf
	for i := range 1000 {
		abbrevs.u8(uint8(i)|0x80, uint8(i>>7|8)).u8(0x34, 0, 3, 8, 0, 0) // codes from 1024 on
	}
	abbrevs.raw(testAbbrevs())
	f, err := openBuilt(build(part{".debug_info", covered(nil)}, part{".debug_abbrev", abbrevs.b}, part{".debug_line", lines()}))
	if err != nil {
		t.Fatal(err)
	}
	if loc, _ := f.Lookup(0x1010); loc.Function != "f" || loc.Line != 13 || len(f.Damage()) != 0 {
		t.Errorf("%+v, %v", loc, f.Damage())
	}
}

// Where no line is known no file is, though version 5 has one of number 0.
func TestNoLine(t *testing.T) {
	lists := new(buf).u8(1, 1, 8, 1).str("/d").u8(1, 1, 8, 1).str("a.c")
	program := new(buf).u8(4, 0, 0, 9, 2).u64(testBase+0x1000).u8(3, 9, 1).u8(2, 0x10, 0, 1, 1) // file 0, line 10, to 0x1010
	f, err := openBuilt(build(part{".debug_info", covered(nil)}, part{".debug_abbrev", testAbbrevs()}, part{".debug_line", lines5(lists.b, program.b)}))
	if err != nil {
		t.Fatal(err)
	}
	for rva, want := range map[uint32]Location{0x100f: {Function: "f", RVA: 0x1000, File: "/d/a.c", Line: 10}, 0x1010: {Function: "f", RVA: 0x1000}} {
		if loc, _ := f.Lookup(rva); loc.Function != want.Function || loc.File != want.File || loc.Line != want.Line {
			t.Errorf("%#x: %+v, want %+v", rva, loc, want)
		}
	}
}

// Sections that Go's linker compressed are read, and no more than they claim.
func TestCompressed(t *testing.T) {
	info := unit4(root().u8(2).str("f").u64(testBase+0x1000).u32(0x20).u8(0, 0).b)
	f, err := openBuilt(build(part{".zdebug_info", zipped(info, uint64(len(info)))}, part{".zdebug_abbrev", zipped(testAbbrevs(), uint64(len(testAbbrevs())))}))
	if err != nil {
		t.Fatal(err)
	}
	if loc, _ := f.Lookup(0x1000); loc.Function != "f" {
		t.Errorf("%+v, %v", loc, f.Damage())
	}
	f, err = openBuilt(build(part{".zdebug_info", zipped(make([]byte, 1<<20), 1<<60)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Lookup(0x1000); ok || len(f.Damage()) == 0 {
		t.Errorf("a bomb: %v", f.Damage())
	}
}

// What is bent says so, or names nothing; it neither panics nor goes on for ever.
func TestHostile(t *testing.T) {
	self := uint32(root().len() + 11)
	rangesLoop := new(buf)
	for range 1 << 16 {
		rangesLoop.u64(testBase + 0x1000).u64(testBase + 0x1001)
	}
	manyRanges := root()
	for range 1 << 14 {
		manyRanges.u8(6).str("r").u32(0).u8(0)
	}
	deep := root()
	for range maxNesting + 10 {
		deep.u8(5).str("n")
	}
	for _, tc := range []struct {
		name, want string
		image      []byte
	}{
		{"its own origin", "", simple(root().u8(4).u32(self).u64(testBase+0x1000).u32(0x10).u8(0, 0).b)},
		{"an origin beyond the unit", "", simple(root().u8(4).u32(0x7fffffff).u64(testBase+0x1000).u32(0x10).u8(0, 0).b)},
		{"an unknown code", "lack code 99", simple(root().u8(99).b)},
		{"an entry cut short", "needs", simple(root().u8(2).str("f").u32(1).b)},
		{"addresses that wrap", "", simple(root().u8(2).str("f").u64(^uint64(0)).u32(0x10).u8(0, 0).b)},
		{"nested for ever", "nested more than", simple(deep.b)},
		{"ranges without an end", "needs", simple(root().u8(6).str("r").u32(0).u8(0, 0).b, part{".debug_ranges", rangesLoop.b})},
		{"many long range lists", "more ranges than are read", simple(manyRanges.b, part{".debug_ranges", rangesLoop.b})},
		{"ranges beyond their section", "lies beyond", simple(root().u8(6).str("r").u32(0x999).u8(0, 0).b, part{".debug_ranges", make([]byte, 16)})},
		{"a unit longer than the section", "a unit of", build(part{".debug_info", new(buf).u32(0xffffff).u16(4).u32(0).u8(8).b}, part{".debug_abbrev", testAbbrevs()})},
		{"an unknown version", "version 77", build(part{".debug_info", new(buf).sized(new(buf).u16(77).fill(20).b).b})},
		{"no abbreviations", "needs 1 bytes", build(part{".debug_info", unit4(root().b)})},
		{"abbreviations that never end", "needs", build(part{".debug_info", unit4(root().b)}, part{".debug_abbrev", bytes.Repeat([]byte{2, 0x2e, 1, 3, 8, 0, 0}, 50)})},
		{"no line range", "without a line range", build(part{".debug_info", unit4(root().u8(0).b)}, part{".debug_abbrev", testAbbrevs()},
			part{".debug_line", new(buf).sized(new(buf).u16(4).u32(0).u8(1, 1, 1, 1, 0, 13).fill(20).b).b})},
	} {
		begun := time.Now()
		f, err := openBuilt(tc.image)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		f.work = maxWork - 1<<22 // a part of it shows as much, sooner
		for rva := uint32(0xff0); rva < 0x1100; rva++ {
			f.Lookup(rva)
		}
		all := ""
		for _, e := range f.Damage() {
			all += e.Error() + "\n"
		}
		if !strings.Contains(all, tc.want) {
			t.Errorf("%s: damage %q, want %q", tc.name, all, tc.want)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s: took %v", tc.name, took)
		}
		for _, b := range f.bodies {
			if n := b.weight(); n > len(tc.image)+8192 {
				t.Errorf("%s: %d records of %d bytes", tc.name, n, len(tc.image))
			}
		}
	}
}

func (w *buf) len() int { return len(w.b) }

// Files that are none, or end anywhere, give an error or a partial answer.
func TestCut(t *testing.T) {
	b, err := os.ReadFile("testdata/gcc-5.exe")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(b); n += 7 {
		f, err := Open(bytes.NewReader(b[:n]), int64(n), "cut")
		if err != nil {
			if _, ok := err.(*dump.Error); !ok {
				t.Fatalf("%d bytes: %T", n, err)
			}
			continue
		}
		for rva := uint32(0x1000); rva < 0x1100; rva += 16 {
			f.Lookup(rva)
		}
	}
}

// FuzzOpen alters whole images.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"gcc-2.exe", "gcc-5.exe", "clang-x86.exe", "names.exe", "linked.exe"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := openBuilt(b)
		if err != nil {
			return
		}
		d.Link()
		exercise(t, d)
	})
}

// exercise looks a few addresses up and checks what must always hold.
func exercise(t *testing.T, d *File) {
	for _, rva := range []uint32{0, 0xfff, 0x1000, 0x1001, 0x1010, 0x1034, 0x1080, 0x10c0, 0x1100, 0x1ffc, 1<<32 - 1} {
		loc, ok := d.Lookup(rva)
		again, _ := d.Lookup(rva)
		if ok != (loc.Function != "" || loc.Line != 0) || loc.Function != again.Function || loc.Line != again.Line {
			t.Fatalf("%#x: %+v, then %+v", rva, loc, again)
		}
		if len(loc.Inlines) > maxNesting {
			t.Fatalf("%d inlined calls", len(loc.Inlines))
		}
	}
	if len(d.Damage()) > maxDamage {
		t.Fatal("more damage than is kept")
	}
}

// FuzzEntries alters the entries of a unit, its abbreviations and its ranges.
func FuzzEntries(f *testing.F) {
	f.Add(root().u8(5).str("ns").u8(2).str("f").u64(testBase+0x1000).u32(0x20).u8(0, 0, 0).b, testAbbrevs(), make([]byte, 32), uint8(4))
	f.Add(root().u8(6).str("f").u32(0).u8(0, 0).b, testAbbrevs(), new(buf).u64(testBase+0x1000).u64(testBase+0x1010).u64(0).u64(0).b, uint8(4))
	f.Add(root().u8(6).str("f").u32(0).u8(0, 0).b, testAbbrevs(), new(buf).u8(7).u64(testBase+0x1000).u8(0x10, 4, 1, 9, 0).b, uint8(5))
	f.Fuzz(func(t *testing.T, entries, abbrevs, ranges []byte, version uint8) {
		header := new(buf).u16(uint16(version)).u32(0).u8(8)
		if version >= 5 {
			header = new(buf).u16(uint16(version)).u8(1, 8).u32(0)
		}
		info := new(buf).sized(header.raw(entries).b)
		d, err := openBuilt(build(part{".debug_info", info.b}, part{".debug_abbrev", abbrevs}, part{".debug_ranges", ranges}, part{".debug_rnglists", ranges},
			part{".debug_addr", ranges}, part{".debug_str", []byte("a\x00b\x00")}, part{".debug_line", lines()}))
		if err != nil {
			t.Fatal(err)
		}
		exercise(t, d)
	})
}

// FuzzLines alters a line program.
func FuzzLines(f *testing.F) {
	f.Add(lines())
	new5 := new(buf).u8(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1).u8(1, 1, 0x08, 1).str("/d").u8(2, 1, 0x1f, 2, 0x0b, 1).u32(0).u8(0)
	f.Add(new(buf).sized(new(buf).u16(5).u8(8, 0).sized(new5.b).u8(0, 9, 2).u64(testBase+0x1000).u8(0x20, 0x40, 0, 1, 1).b).b)
	info := unit4(root().u8(2).str("f").u64(testBase+0x1000).u32(0x100).u8(0, 0).b)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := openBuilt(build(part{".debug_info", info}, part{".debug_abbrev", testAbbrevs()}, part{".debug_line", b}, part{".debug_line_str", []byte("x.c\x00")}))
		if err != nil {
			t.Fatal(err)
		}
		exercise(t, d)
	})
}
