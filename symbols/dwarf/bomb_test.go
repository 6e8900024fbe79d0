package dwarf

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bomb is a small image that asks for much memory or time.
type bomb struct {
	name   string
	image  []byte
	damage string // what must be said, "" when all of it can be read
}

// covered is a unit with a function f from 0x1000 to 0x1020, before which other
// entries may stand.
func covered(before []byte) []byte {
	return unit4(root().raw(before).u8(2).str("f").u64(testBase+0x1000).u32(0x20).u8(0, 0).b)
}

// declare adds an abbreviation to testAbbrevs.
func declare(code ...uint8) []byte {
	all := testAbbrevs()
	return new(buf).raw(all[:len(all)-1]).raw(code).u8(0, 0, 0).b
}

// lines5 is a line table of version 5 with these lists of directories and files.
func lines5(lists, program []byte) []byte {
	head := new(buf).u8(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1).raw(lists)
	return new(buf).sized(new(buf).u16(5).u8(8, 0).sized(head.b).raw(program).b).b
}

func bombs() []bomb {
	withLines := func(name string, lists, program []byte, damage string) bomb {
		return bomb{name, build(part{".debug_info", covered(nil)}, part{".debug_abbrev", testAbbrevs()}, part{".debug_line", lines5(lists, program)},
			part{".debug_line_str", []byte("x.c\x00")}), damage}
	}
	directory := new(buf).u8(1, 1, 8, 1).str("/" + strings.Repeat("d", 50<<10))
	files := new(buf).raw(directory.b).u8(2, 1, 0x1f, 2, 0x0b).u8(0x90, 0x4e) // 10000
	for range 10000 {
		files.u32(0).u8(0)
	}
	var program buf
	for range 10000 {
		program.u8(0, 6, 3).str("a").u8(0, 0, 0)
	}
	out := []bomb{
		withLines("2^40 directories", []byte{1, 1, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20}, nil, "without an end"),
		withLines("2^26 files of no bytes", []byte{1, 1, 8, 1, '/', 0, 0, 0x80, 0x80, 0x80, 0x20}, nil, "more files"),
		withLines("10000 files in a long directory", files.b, nil, ""),
		withLines("10000 files that the program names", new(buf).raw(directory.b).u8(0, 0).b, program.b, ""),
	}
	wide := declare(append([]byte{9, 0x34, 0}, bytes.Repeat([]byte{0x34, 0x19}, 50000)...)...)
	names := declare(append([]byte{9, 0x34, 0}, bytes.Repeat([]byte{3, 0x0e}, 4000)...)...)
	var overlapping buf
	for i := range uint32(5000) {
		overlapping.sized(new(buf).u16(4).u32(i * 5).u8(8).u8(2).b)
	}
	return append(out,
		bomb{"50000 entries with 50000 attributes of no bytes", build(part{".debug_info", covered(bytes.Repeat([]byte{9}, 50000))}, part{".debug_abbrev", wide}), "more attributes"},
		bomb{"4000 attributes with one long string", build(part{".debug_info", covered(append([]byte{9}, make([]byte, 16000)...))}, part{".debug_abbrev", names},
			part{".debug_str", append(bytes.Repeat([]byte{'s'}, 100<<10), 0)}), ""},
		bomb{"5000 units with tables within each other", build(part{".debug_info", overlapping.b}, part{".debug_abbrev", append(bytes.Repeat([]byte{1, 0x11, 0, 0, 0}, 10000), 0)}), "lacks code 2"},
		bomb{"inlined calls with long names in long scopes", longNames(60, 2000), "the names at one address"},
		bomb{"much of nothing, compressed", build(part{".zdebug_info", zipped(make([]byte, 64<<20), 64<<20)}), "claim to unfold"},
	)
}

// longNames has inlined calls at 256 addresses, of a function whose name is as long
// as can be, in namespaces with such names.
func longNames(scopes, calls int) []byte {
	abbrevs := declare(9, 0x39, 1, 3, 0x0e, 0, 0, 10, 0x2e, 0, 3, 0x0e)
	e := new(buf)
	for range scopes {
		e.u8(9).u32(0)
	}
	origin := uint32(11 + root().len() + e.len()) // 11 bytes are the unit's header
	e.u8(10).u32(0).fill(scopes).u8(2).str("f").u64(testBase + 0x1000).u32(0x100)
	for range calls {
		e.u8(3).u32(origin).u64(testBase + 0x1000).u32(0x100).u8(1)
	}
	e.fill(calls).u8(0, 0)
	return build(part{".debug_info", unit4(root().raw(e.b).b)}, part{".debug_abbrev", abbrevs},
		part{".debug_str", append(bytes.Repeat([]byte{'s'}, maxString-1), 0)})
}

// Small images take little memory and time, whatever they claim.
func TestBombs(t *testing.T) {
	const most = 32 << 20 // bytes allocated in all, kept or not
	for _, b := range bombs() {
		if testing.Short() && len(b.image) > 106<<10 {
			continue // the race detector makes a second of work twenty
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		f, err := openBuilt(b.image)
		if err != nil {
			t.Fatal(b.name, err)
		}
		loc, _ := f.Lookup(0x1000)
		runtime.ReadMemStats(&after)
		made, took := after.TotalAlloc-before.TotalAlloc, time.Since(begun)
		t.Logf("%s: %d KB, allocated %d KB in %v", b.name, len(b.image)>>10, made>>10, took.Round(time.Millisecond))
		if made > most || took > 20*time.Second {
			t.Errorf("%s: of %d bytes %d were made, in %v", b.name, len(b.image), made, took)
		}
		for _, in := range loc.Inlines {
			if strings.HasPrefix(in.Function, "(anonymous") {
				t.Errorf("%s: a scope that was not read is called %.40q", b.name, in.Function)
			}
		}
		all := ""
		for _, e := range f.Damage() {
			all += e.Error() + "\n"
		}
		if !strings.Contains(all, b.damage) {
			t.Errorf("%s: damage %q, want %q", b.name, all, b.damage)
		}
		if strings.Contains(b.damage, "names") && (loc.Function != "f" || len(loc.Inlines) != 2000) {
			t.Errorf("%s: %q with %d calls", b.name, loc.Function, len(loc.Inlines))
		}
	}
}

// The files of a line table, of the old form and the new, are bounded, and count
// for how many units are kept.
func TestManyFiles(t *testing.T) {
	old := new(buf).u8(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1).u8(0)
	for range maxFiles + 1 {
		old.u8('f', 0, 0, 0, 0)
	}
	inNew := new(buf).u8(1, 1, 8, 1, '/', 0, 1, 1, 8).u8(0x81, 0x80, 0x10) // 2^18+1
	for range maxFiles + 1 {
		inNew.u8(0)
	}
	for name, table := range map[string][]byte{
		"old": new(buf).sized(new(buf).u16(4).sized(old.u8(0).b).b).b,
		"new": lines5(inNew.b, nil),
	} {
		f, err := openBuilt(build(part{".debug_info", covered(nil)}, part{".debug_abbrev", testAbbrevs()}, part{".debug_line", table}))
		if err != nil {
			t.Fatal(err)
		}
		f.Lookup(0x1000)
		if d := f.Damage(); len(d) != 1 || !strings.Contains(d[0].Error(), "more files than are read") {
			t.Errorf("%s: %v", name, d)
		}
		if f.weight < maxFiles || f.work < maxFiles {
			t.Errorf("%s: weight %d, work %d", name, f.weight, f.work)
		}
	}
}

// Answers that are kept do not grow with the number of questions.
func TestHeldText(t *testing.T) {
	f, err := openBuilt(longNames(0, 10))
	if err != nil {
		t.Fatal(err)
	}
	for rva := uint32(0x1000); rva < 0x1100; rva++ {
		if loc, _ := f.Lookup(rva); len(loc.Inlines) != 10 || len(loc.Inlines[9].Function) != maxString-1 {
			t.Fatalf("%#x: %d calls", rva, len(loc.Inlines))
		}
	}
	held := 0
	for _, loc := range f.places {
		for _, in := range loc.Inlines {
			held += len(in.Function)
		}
	}
	if held > maxHeld {
		t.Errorf("%d bytes are kept", held)
	}
}
