package sym

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"dumptriage/dump"
)

// written is a file in the forms that the format's description gives: outer is
// 0x1000 to 0x1040; middle is inlined into it at 0x1010 to 0x1030, and inner into
// middle at 0x1018 to 0x1020.
const written = `MODULE windows x86_64 30BE4E48D1D84E3E961D1A7E3B6B1F1B1 my app.pdb
INFO CODE_ID 4B4B4B4B1000 app.exe
FILE 0 c:\src\outer file.cc
FILE 1 c:\src\middle.h
FILE 7 c:\src\inner.h
INLINE_ORIGIN 0 middle(int)
INLINE_ORIGIN 3 ns::inner
FUNC 1000 40 8 ns::outer(int, char const *)
INLINE 0 12 0 0 1010 20
INLINE 1 34 1 3 1018 8 1028 4
1000 10 11 0
1010 8 33 1
1018 8 56 7
1020 10 35 1
1030 10 14 0
FUNC m 1100 10 0 folded
1100 10 -1 0
FUNC 1200 10 0 bare
PUBLIC 1300 0 ?pub@@YAXXZ
PUBLIC m 1400 8 second name
STACK WIN 4 1000 40 3 2 8 c 14 0 1 $T0 $ebp = $eip $T0 4 + ^ =
STACK WIN 0 1000 40 0 0 0 0 0 0 0 0
STACK WIN 0 1100 10 1 2 3 4 5 6 0 1
STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa 8 - ^
STACK CFI 1004 .cfa: $rsp 16 + $rbx: .cfa 16 - ^
STACK CFI 1020 .cfa: $rbp 16 +
STACK CFI INIT 1100 10 .cfa: $rsp 8 +
`

func open(tb testing.TB, text string) *File {
	tb.Helper()
	f, err := Open(strings.NewReader(text), int64(len(text)), "app.sym")
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func TestModule(t *testing.T) {
	f := open(t, written)
	if want := (Module{"windows", "x86_64", "30BE4E48D1D84E3E961D1A7E3B6B1F1B1", "my app.pdb"}); f.Module() != want {
		t.Errorf("%+v, want %+v", f.Module(), want)
	}
	// The GUID in file order: its first three fields are little-endian.
	cv := dump.CodeView{Signature: "RSDS", GUID: [16]byte{0x48, 0x4e, 0xbe, 0x30, 0xd8, 0xd1, 0x3e, 0x4e, 0x96, 0x1d, 0x1a, 0x7e, 0x3b, 0x6b, 0x1f, 0x1b}, Age: 1}
	if err := f.Matches(cv); err != nil {
		t.Error(err)
	}
	cv.Age = 2
	var e *dump.Error
	if err := f.Matches(cv); !errors.As(err, &e) || e.Code != dump.Mismatch {
		t.Errorf("of another age: %v", err)
	}
	if err := f.Matches(dump.CodeView{}); !errors.As(err, &e) || e.Code != dump.Mismatch {
		t.Errorf("without an identity: %v", err)
	}
}

func TestLookup(t *testing.T) {
	const outer = "ns::outer(int, char const *)"
	inOuter := func(line uint32, in ...Inline) Location {
		return Location{Function: outer, RVA: 0x1000, Size: 0x40, File: `c:\src\outer file.cc`, Line: line, Inlines: in}
	}
	for _, nl := range []string{"\n", "\r\n"} {
		f := open(t, strings.ReplaceAll(written, "\n", nl))
		for _, tc := range []struct {
			rva  uint32
			want Location
		}{
			{0x0fff, Location{}},
			{0x1000, inOuter(11)},
			{0x100f, inOuter(11)},
			{0x1010, inOuter(12, Inline{"middle(int)", `c:\src\middle.h`, 33})},
			{0x1018, inOuter(12, Inline{"ns::inner", `c:\src\inner.h`, 56}, Inline{"middle(int)", `c:\src\middle.h`, 34})},
			{0x1020, inOuter(12, Inline{"middle(int)", `c:\src\middle.h`, 35})},
			{0x1028, inOuter(12, Inline{"ns::inner", `c:\src\middle.h`, 35}, Inline{"middle(int)", `c:\src\middle.h`, 34})},
			{0x103f, inOuter(14)},
			{0x1040, Location{}}, // behind a function, and no public symbol since
			{0x1100, Location{Function: "folded", RVA: 0x1100, Size: 0x10, Shared: true}},
			{0x120f, Location{Function: "bare", RVA: 0x1200, Size: 0x10}},
			{0x1300, Location{Function: "?pub@@YAXXZ", RVA: 0x1300, Public: true}},
			{0x13ff, Location{Function: "?pub@@YAXXZ", RVA: 0x1300, Public: true}},
			{0x9000, Location{Function: "second name", RVA: 0x1400, Public: true, Shared: true}},
		} {
			got, ok := f.Lookup(tc.rva)
			if ok != (tc.want.Function != "") || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%#x: %+v\nwant %+v", tc.rva, got, tc.want)
			}
		}
		if d := f.Damage(); d != nil {
			t.Errorf("damage in a whole file: %v", d)
		}
	}
}

// Functions need not be in order, and one may lie in another.
func TestDisorder(t *testing.T) {
	f := open(t, "MODULE windows x86 0 a.pdb\nFUNC 3000 10 0 third\nFUNC 1000 100 0 first\n1080 10 5 1\n1000 80 4 1\nFUNC 1040 10 0 part\nFILE 1 f.c\n")
	for rva, want := range map[uint32]string{0x3000: "third", 0x1000: "first 4", 0x1045: "part", 0x1050: "first 4", 0x1080: "first 5", 0x10f0: "first", 0x1100: ""} {
		loc, _ := f.Lookup(rva)
		got := loc.Function
		if loc.Line != 0 {
			got += fmt.Sprintf(" %d", loc.Line)
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", rva, got, want)
		}
	}
}

func TestWinFrame(t *testing.T) {
	f := open(t, written)
	for _, tc := range []struct {
		rva  uint32
		want WinFrame
	}{
		{0x1020, WinFrame{RVA: 0x1000, Size: 0x40, Prolog: 3, Epilog: 2, Parameters: 8, Saved: 12, Locals: 20, Program: "$T0 $ebp = $eip $T0 4 + ^ ="}},
		{0x1100, WinFrame{RVA: 0x1100, Size: 0x10, Prolog: 1, Epilog: 2, Parameters: 3, Saved: 4, Locals: 5, MaxStack: 6, AllocatesEBP: true}},
		{0x1040, WinFrame{}},
	} {
		if got, ok := f.WinFrame(tc.rva); got != tc.want || ok != (tc.want.Size != 0) {
			t.Errorf("%#x: %+v, want %+v", tc.rva, got, tc.want)
		}
	}
}

func TestCFI(t *testing.T) {
	f := open(t, written)
	ra := Rule{".ra", ".cfa 8 - ^"}
	rbx := Rule{"$rbx", ".cfa 16 - ^"}
	for rva, want := range map[uint32][]Rule{
		0x1000: {{".cfa", "$rsp 8 +"}, ra},
		0x1004: {{".cfa", "$rsp 16 +"}, ra, rbx},
		0x103f: {{".cfa", "$rbp 16 +"}, ra, rbx},
		0x1100: {{".cfa", "$rsp 8 +"}},
		0x1040: nil,
	} {
		if got, ok := f.CFI(rva); !reflect.DeepEqual(got, want) || ok != (want != nil) {
			t.Errorf("%#x: %v, want %v", rva, got, want)
		}
	}
}

func TestNotSymbols(t *testing.T) {
	for text, code := range map[string]dump.Code{
		"":                                dump.UnsupportedFormat,
		"MZ":                              dump.UnsupportedFormat,
		"MODULES windows x86 0 a.pdb":     dump.UnsupportedFormat,
		"MODULE":                          dump.BadRecord,
		"MODULE windows x86 0123":         dump.BadRecord,
		"FILE 0 a\nMODULE windows x 0 a":  dump.UnsupportedFormat,
		"MODULE windows x86 \nFILE 0 a\n": dump.BadRecord,
	} {
		_, err := Open(strings.NewReader(text), int64(len(text)), "x.sym")
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != code || e.File != "x.sym" {
			t.Errorf("%q: %v, want %s", text, err, code)
		}
	}
}

// Bad records are left out and counted; what is good is used.
func TestDamage(t *testing.T) {
	long := strings.Repeat("x", 3*scanBlock)
	f := open(t, "MODULE windows x86 0 a.pdb\nFILE x a.c\nFILE 4294967296 a.c\nFILE 1 a.c\nFUNC zz 10 0 bad\nFUNC 1000\nFUNC 100000000 1 0 far\n"+
		"PUBLIC "+long+"\n"+long+"\nFUNC 2000 10 0 good\n2000 8 5 1\nnot hex\n2008 8 x 1\n2008 8 6 1\nINLINE 0 1\nSTACK WIN 4 2000 10 zz\nSTACK WIN x\nSTACK CFI INIT q\nSTACK\nFUNC 3000 10 0 last")
	loc, ok := f.Lookup(0x2000)
	if want := (Location{Function: "good", RVA: 0x2000, Size: 0x10, File: "a.c", Line: 5}); !ok || !reflect.DeepEqual(loc, want) {
		t.Errorf("%+v", loc)
	}
	if loc, ok := f.Lookup(0x3008); !ok || loc.Function != "last" {
		t.Errorf("without an end of line: %+v", loc)
	}
	if w, ok := f.WinFrame(0x2000); ok {
		t.Errorf("%+v of a bad record", w)
	}
	var got []string
	for _, e := range f.Damage() {
		if e.Code != dump.BadRecord || e.File != "app.sym" {
			t.Errorf("%v", e)
		}
		got = append(got, e.Stream+": "+e.Msg)
	}
	want := []string{
		"FILE: cannot be read (2 times)", "FUNC: cannot be read (3 times)", "STACK WIN: cannot be read (2 times)",
		"STACK CFI INIT: cannot be read", "line: longer than 1 MB",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("damage\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// failing is a reader that fails from an offset on.
type failing struct {
	r    io.ReaderAt
	from int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, iotest.ErrTimeout
	}
	return f.r.ReadAt(p, off)
}

func TestReadError(t *testing.T) {
	if _, err := Open(failing{strings.NewReader(written), 0}, int64(len(written)), "x"); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("%v", err)
	}
	f, err := Open(failing{strings.NewReader(written), maxHead}, 1<<20, "x")
	if err == nil {
		_, ok := f.Lookup(0x1000)
		if d := f.Damage(); ok || len(d) != 1 || !errors.Is(d[0], iotest.ErrTimeout) {
			t.Errorf("%v, damage %v", ok, d)
		}
	} else {
		t.Error(err)
	}
}

// Lines that lie across the blocks that are read come out whole.
func TestBlocks(t *testing.T) {
	for _, pad := range []int{scanBlock - 40, scanBlock - 20, scanBlock - 8, scanBlock - 1, scanBlock, 2*scanBlock - 9} {
		var b strings.Builder
		b.WriteString("MODULE windows x86 0 a.pdb\n")
		for b.Len() < pad-200 {
			b.WriteString("INFO " + strings.Repeat("i", 90) + "\n")
		}
		b.WriteString("INFO " + strings.Repeat("i", pad-b.Len()-6) + "\n")
		if b.Len() != pad {
			t.Fatal(b.Len(), pad)
		}
		b.WriteString("FUNC 1000 10 0 across\n1000 10 7 3\nFILE 3 across.c\n")
		loc, ok := open(t, b.String()).Lookup(0x1000)
		if !ok || loc.Function != "across" || loc.File != "across.c" || loc.Line != 7 {
			t.Errorf("at %d: %+v", pad, loc)
		}
	}
}

func FuzzSym(f *testing.F) {
	f.Add([]byte(written))
	f.Add([]byte("MODULE windows x86 0 a.pdb\nFUNC 0 ffffffff 0 a\n0 ffffffff 1 1\nINLINE 0 1 1 1 0 ffffffff\nPUBLIC ffffffff 0 z\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(strings.NewReader(string(b)), int64(len(b)), "fuzz")
		if err != nil {
			return
		}
		for _, rva := range []uint32{0, 1, 0xfff, 0x1000, 0x1018, 0x1028, 0x1100, 0x1300, 0x7fffffff, 0xffffffff} {
			if loc, ok := s.Lookup(rva); ok && loc.RVA > rva {
				t.Errorf("%#x is in a function at %#x", rva, loc.RVA)
			}
			s.WinFrame(rva)
			s.CFI(rva)
		}
		s.Damage()
	})
}
