package pdb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dumptriage/dump"
)

func readTestdata(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func openTestdata(tb testing.TB, name string) *File {
	return openBytes(tb, readTestdata(tb, name), name)
}

// The answers of llvm-symbolizer at every second byte of code.
func TestLookupGolden(t *testing.T) {
	for _, name := range []string{"inline-x64", "inline-x86"} {
		f := openTestdata(t, name+".pdb")
		inlines, functions := 0, map[string]bool{}
		lines := bufio.NewScanner(bytes.NewReader(readTestdata(t, name+".txt")))
		for lines.Scan() {
			var s symbolized
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			rva, err := strconv.ParseUint(s.Address, 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			loc, _ := f.Lookup(uint32(rva))
			if got, want := frames(loc), wanted(s); !slices.Equal(got, want) {
				t.Errorf("%s %#x:\n got %+v\nwant %+v", name, rva, got, want)
			}
			inlines += len(loc.Inlines)
			functions[loc.Function] = true
		}
		// leaf, measure, entry, two operators and a destructor at least.
		if inlines < 40 || len(functions) < 6 {
			t.Errorf("%s: %d inlined frames in %d functions: the golden covers too little", name, inlines, len(functions))
		}
		if d := f.Damage(); len(d) > 0 {
			t.Errorf("%s: damage %v", name, d)
		}
	}
}

var (
	fpoLine     = regexp.MustCompile(`^([0-9A-F]{8}) \| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \| +(true|false) \| +(true|false) \| +(true|false) \| (.*)$`)
	publicName  = regexp.MustCompile("S_PUB32 \\[size = \\d+\\] `(.*)`$")
	publicPlace = regexp.MustCompile(`flags = (.*), addr = (\d{4}):(\d+)`)
)

// compareFPO compares FrameData with what llvm-pdbutil prints and returns the
// number of records.
func compareFPO(t *testing.T, f *File, text []byte) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(string(text)) {
		m := fpoLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		n++
		rva, _ := strconv.ParseUint(m[1], 16, 32)
		d, ok := f.FrameData(uint32(rva))
		got := fmt.Sprintln(ok, d.RVA, d.Size, d.LocalSize, d.ParamSize, d.MaxStack, d.PrologSize, d.SavedRegsSize, d.HasSEH, d.HasEH, d.FunctionStart, d.Program)
		want := fmt.Sprint(true, rva, " ", strings.Join(m[2:8], " "), " ", strings.Join(m[8:11], " "), " ", m[11])
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%#x:\n got %s\nwant %s", rva, got, want)
		}
	}
	return n
}

func TestFrameDataGolden(t *testing.T) {
	f := openTestdata(t, "inline-x86.pdb")
	if n := compareFPO(t, f, readTestdata(t, "inline-x86.fpo.txt")); n < 20 {
		t.Errorf("the golden has %d records", n)
	}
	// 0x100C lies in the third record of leaf: its prolog is over.
	if d, ok := f.FrameData(0x100C); !ok || d.RVA != 0x1003 || d.FunctionStart {
		t.Errorf("inside a function: %+v %v", d, ok)
	}
	if d, ok := f.FrameData(0xFFF); ok {
		t.Errorf("before the first: %+v", d)
	}
	if _, ok := openTestdata(t, "inline-x64.pdb").FrameData(0x1000); ok {
		t.Error("x64 code has frame data")
	}
}

// comparePublics compares Publics with what llvm-pdbutil prints.
func comparePublics(t *testing.T, f *File, text []byte) int {
	t.Helper()
	var want []string
	name := ""
	for line := range strings.Lines(string(text)) {
		if m := publicName.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			name = m[1]
		} else if m := publicPlace.FindStringSubmatch(line); m != nil {
			section, _ := strconv.Atoi(m[2])
			offset, _ := strconv.Atoi(m[3])
			if rva, ok := f.sourceRVA(uint16(section), uint32(offset)); ok {
				want = append(want, fmt.Sprintf("%08x %s %v", rva, name, strings.Contains(m[1], "function")))
			}
		}
	}
	var got []string
	for p := range f.Publics() {
		got = append(got, fmt.Sprintf("%08x %s %v", p.RVA, p.Name, p.Function))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("public %d: got %q want %q", i, got[i], want[i])
				break
			}
		}
		t.Errorf("%d public symbols, want %d", len(got), len(want))
	}
	return len(want)
}

func TestPublicsGolden(t *testing.T) {
	if n := comparePublics(t, openTestdata(t, "inline-x64.pdb"), readTestdata(t, "inline-x64.publics.txt")); n < 5 {
		t.Errorf("the golden has %d symbols", n)
	}
}

// The layout of inline.cpp's structures by the rules of the Microsoft x64 ABI:
// natural alignment, the pointer to the virtual table first, bases before
// members.
func TestStruct(t *testing.T) {
	f := openTestdata(t, "inline-x64.pdb")
	want := map[string]Struct{
		"shapes::Point": {Name: "shapes::Point", Kind: "struct", Size: 16, Fields: []Field{
			{Name: "x", Offset: 0, Type: "int"},
			{Name: "y", Offset: 4, Type: "int", Bits: 5, BitStart: 0},
			{Name: "z", Offset: 4, Type: "int", Bits: 27, BitStart: 5},
			{Name: "name", Offset: 8, Type: "const char*"},
		}},
		"shapes::Box": {Name: "shapes::Box", Kind: "struct", Size: 80, Fields: []Field{
			{Type: "shapes::Base", Base: true},
			{Name: "corner", Offset: 16, Type: "shapes::Point[2]"},
			{Name: "depth", Offset: 48, Type: "unsigned short[3][4]"},
			{Name: "tag", Offset: 72, Type: "shapes::Box::<unnamed-type-tag>"},
		}},
		"shapes::Base": {Name: "shapes::Base", Kind: "struct", Size: 16, Fields: []Field{
			{Name: "id", Offset: 8, Type: "__int64"},
		}},
		"shapes::Box::<unnamed-type-tag>": {Name: "shapes::Box::<unnamed-type-tag>", Kind: "union", Size: 4, Fields: []Field{
			{Name: "f", Type: "float"}, {Name: "u", Type: "unsigned int"},
		}},
	}
	for name, w := range want {
		got, err := f.Struct(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(*got, w) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, w)
		}
	}
	if s, err := f.Struct("no::Such"); err == nil {
		t.Errorf("an unknown structure: %+v", s)
	}
}

func TestMatches(t *testing.T) {
	f := openTestdata(t, "inline-x64.pdb")
	info := f.Info()
	if info.Machine != 0x8664 || !info.HasDBI || info.Stripped || info.FastLink || info.Age != 1 {
		t.Errorf("%+v", info)
	}
	cv := dump.CodeView{Signature: "RSDS", GUID: info.GUID, Age: 1}
	if err := f.Matches(cv); err != nil {
		t.Error(err)
	}
	cv.Age = 2
	if err := f.Matches(cv); err == nil || !strings.Contains(err.Error(), "age is 1") {
		t.Errorf("another age: %v", err)
	}
	cv.Age = 1
	cv.GUID[3]++
	if err := f.Matches(cv); err == nil || !strings.Contains(err.Error(), "GUID") {
		t.Errorf("another GUID: %v", err)
	}
}
