package dwarf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

func open(t testing.TB, path string) *File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b), int64(len(b)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shortName is the last part of a function's name, which is all that the other tool
// was asked for: what else it says comes from the symbol table.
func shortName(name string) string {
	name = demangle.Filter(name, demangle.NoParams, demangle.NoTemplateParams)
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	name, _, _ = strings.Cut(name, "<")
	return name
}

// answer writes a location as llvm-symbolizer does: a line for each function,
// innermost first, and one for its place.
func answer(loc Location) []string {
	var out []string
	add := func(function, file string, line uint32) {
		if file == "" {
			file = "??"
		}
		out = append(out, shortName(function), fmt.Sprintf("%s:%d", file, line))
	}
	for _, in := range loc.Inlines {
		add(in.Function, in.File, in.Line)
	}
	add(loc.Function, loc.File, loc.Line)
	return out
}

// read parses the output of llvm-symbolizer --print-address.
func read(t *testing.T, b []byte) (rvas []uint32, want [][]string) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		lines := strings.Split(block, "\n")
		rva, err := strconv.ParseUint(lines[0], 0, 32)
		if err != nil || len(lines)%2 != 1 {
			t.Fatalf("%q", block)
		}
		for i := 2; i < len(lines); i += 2 { // without the column
			lines[i] = lines[i][:strings.LastIndexByte(lines[i], ':')]
			lines[i-1], _, _ = strings.Cut(lines[i-1], "<")
		}
		rvas, want = append(rvas, uint32(rva)), append(want, lines[1:])
	}
	return rvas, want
}

// Every byte of code has the functions and lines that llvm-symbolizer gives it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, strings.TrimSuffix(file, ".txt")+".exe")
		rvas, want := read(t, b)
		inlined, bad := 0, 0
		for i, rva := range rvas {
			loc, _ := f.Lookup(rva)
			if want[i][0] == "??" { // filling between functions
				if !loc.Public && loc.Function != "" {
					t.Errorf("%s: %#x is in %q, want nothing", file, rva, loc.Function)
				}
				continue
			}
			if len(want[i]) > 2 {
				inlined++
			}
			if got := answer(loc); strings.Join(got, "\n") != strings.Join(want[i], "\n") && bad < 5 {
				bad++
				t.Errorf("%s: %#x\n got  %q\n want %q", file, rva, got, want[i])
			}
		}
		if inlined == 0 && !strings.Contains(file, "scopes") || len(f.Damage()) != 0 {
			t.Errorf("%s: %d of %d addresses are in inlined calls; damage %v", file, inlined, len(rvas), f.Damage())
		}
	}
}

// Names stand in their namespaces and classes, as the declarations in scopes.cpp.
func TestScopes(t *testing.T) {
	f := open(t, "testdata/scopes.exe")
	got := map[string]bool{}
	for rva := uint32(0x1000); rva < 0x1100; rva++ {
		if loc, _ := f.Lookup(rva); !loc.Public && loc.Function != "" {
			got[loc.Function] = true
		}
	}
	for _, want := range []string{"_ZN3app3Job3runEi", "app::(anonymous namespace)::Local::go", "_ZN3app5twiceIiEET_S1_", "start"} {
		if !got[want] {
			t.Errorf("no address is in %s: %v", want, got)
		}
	}
}

// Without DWARF the symbol table has the names, and nothing else.
func TestSymbolTable(t *testing.T) {
	f, whole := open(t, "testdata/names.exe"), open(t, "testdata/gcc-5.exe")
	if f.HasDWARF() || !f.HasSymbols() || !whole.HasDWARF() {
		t.Fatal("not the files that were meant")
	}
	deep := uint32(0)
	for rva := uint32(0x1000); rva < 0x1100; rva++ {
		want, _ := whole.Lookup(rva)
		if want.Function != "deep" {
			continue
		}
		deep++
		if loc, ok := f.Lookup(rva); !ok || loc.Function != "deep" || !loc.Public || loc.RVA != want.RVA || loc.Line != 0 {
			t.Errorf("%#x: %+v, want the beginning %#x", rva, loc, want.RVA)
		}
	}
	if deep == 0 {
		t.Error("no address is in deep")
	}
	if loc, ok := f.Lookup(0x500); ok {
		t.Errorf("before all code: %+v", loc)
	}
}

// What was stripped off names the file that has it.
func TestLink(t *testing.T) {
	f := open(t, "testdata/linked.exe")
	name, sum, ok := f.Link()
	b, err := os.ReadFile("testdata/gcc-5.debug")
	if err != nil {
		t.Fatal(err)
	}
	if !ok || name != "gcc-5.debug" || sum != bitwiseCRC(b) || f.HasDWARF() {
		t.Errorf("%q, %#x, %v", name, sum, ok)
	}
	if _, _, ok := open(t, "testdata/gcc-5.exe").Link(); ok {
		t.Error("a link without the section")
	}
	loc, ok := open(t, "testdata/gcc-5.debug").Lookup(0x1000)
	want, _ := open(t, "testdata/gcc-5.exe").Lookup(0x1000)
	if !ok || loc.Function != want.Function || loc.Line != want.Line {
		t.Errorf("%+v, want %+v", loc, want)
	}
}

// bitwiseCRC is CRC-32 by its definition (polynomial 04C11DB7, reflected).
func bitwiseCRC(b []byte) uint32 {
	crc := ^uint32(0)
	for _, ch := range b {
		crc ^= uint32(ch)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320*(crc&1)
		}
	}
	return ^crc
}
