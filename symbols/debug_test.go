package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
)

// appIdentity is a debug identity: the GUID's first three fields are
// little-endian in the file, so the id begins 30BE4E48 D1D8 4E3E.
var appIdentity = dump.CodeView{Signature: "RSDS", GUID: [16]byte{0x48, 0x4e, 0xbe, 0x30, 0xd8, 0xd1, 0x3e, 0x4e, 0x96, 0x1d, 0x1a, 0x7e, 0x3b, 0x6b, 0x1f, 0x1b}, Age: 0x2a, PDB: `D:\build\App.pdb`}

const appID = "30BE4E48D1D84E3E961D1A7E3B6B1F1B2a"

func symFile(id string) []byte {
	return []byte("MODULE windows x86 " + id + " App.pdb\nFILE 1 c:\\app\\main.cc\nINLINE_ORIGIN 0 helper(char)\nFUNC 1000 40 0 ns::run(int, void (*)(char)) const\n" +
		"INLINE 0 7 1 0 1020 10\n1000 20 5 1\n1020 10 99 1\nPUBLIC 2000 0 ?stop@Job@@QAEXH@Z\nPUBLIC 3000 0 far\n")
}

func TestFindDebug(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(symFile(appID))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	other := symFile(strings.Replace(appID, "2a", "2b", 1))
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		want  string
		state DebugState
	}{
		{"flat", map[string][]byte{"App.sym": symFile(appID)}, "App.sym", DebugLoaded},
		{"other case", map[string][]byte{"aPP.SYM": symFile(strings.ToUpper(appID))}, "aPP.SYM", DebugLoaded},
		{"tree", map[string][]byte{"App.pdb/" + appID + "/App.sym": symFile(appID), "App.pdb/0/App.sym": other}, "App.pdb/" + appID + "/App.sym", DebugLoaded},
		{"compressed", map[string][]byte{"App.sym.zst": packed.Bytes()}, "App.sym.zst", DebugLoaded},
		{"broken PDB", map[string][]byte{"App.pdb": []byte("Microsoft C/C++ MSF 7.00"), "App.sym": symFile(appID)}, "App.sym", DebugLoaded},
		{"another build", map[string][]byte{"App.sym": other}, "", DebugMismatch},
		{"no symbols", map[string][]byte{"App.sym": []byte("FILE 1 a")}, "", DebugMissing},
		{"another name", map[string][]byte{"App2.sym": symFile(appID)}, "", DebugMissing},
	} {
		dir := tree(t, tc.files)
		s := NewStore([]string{dir})
		d, file, state := s.FindDebug(appIdentity, "")
		if rel, _ := filepath.Rel(dir, file); state != tc.state || file != "" && filepath.ToSlash(rel) != tc.want || (d != nil) != (state == DebugLoaded) {
			t.Errorf("%s: %q, state %d, want %q, %d", tc.name, file, state, tc.want, tc.state)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, state := NewStore(nil).FindDebug(dump.CodeView{}, ""); state != DebugNotNeeded {
		t.Errorf("without an identity: %d", state)
	}
}

// A PDB is taken before a Breakpad file, which says less.
func TestPDBBeforeSym(t *testing.T) {
	b, err := os.ReadFile("pdb/testdata/inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	p, err := openPDB(bytes.NewReader(b), int64(len(b)), "inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	info := p.(PDB).Info()
	cv := dump.CodeView{Signature: "RSDS", GUID: info.GUID, Age: info.Age, PDB: "inline-x64.pdb"}
	s := NewStore([]string{tree(t, map[string][]byte{"a/inline-x64.sym": symFile(cv.DebugID()), "b/inline-x64.pdb": b})})
	defer s.Close()
	if d, file, _ := s.FindDebug(cv, ""); d == nil || filepath.Base(file) != "inline-x64.pdb" {
		t.Errorf("%q", file)
	}
}

func TestSymName(t *testing.T) {
	b := symFile(appID)
	d, err := openSym(bytes.NewReader(b), int64(len(b)), "App.sym")
	if err != nil {
		t.Fatal(err)
	}
	const full = "ns::run(int, void (*)(char)) const"
	for _, tc := range []struct {
		lookup, ip uint32
		want       Name
	}{
		{0x1004, 0x1005, Name{Function: "ns::run", Full: full, Offset: 5, Source: SourceSym, File: `c:\app\main.cc`, Line: 5}},
		{0x1020, 0x1020, Name{Function: "ns::run", Full: full, Offset: 0x20, Source: SourceSym, File: `c:\app\main.cc`, Line: 7,
			Inlines: []Inline{{"helper", `c:\app\main.cc`, 99}}}},
		{0x2001, 0x2002, Name{Function: "Job::stop", Full: "public: void __thiscall Job::stop(int)", Offset: 2, Source: SourceSym, Public: true}},
		{0x1fff, 0x2000, Name{}},
		{0x3000 + exportReach - 1, 0x3000 + exportReach, Name{Function: "far", Offset: exportReach, Source: SourceSym, Public: true}},
		{0x3000 + exportReach, 0x3000 + exportReach, Name{}}, // too far to be the same function
	} {
		got, ok := d.Name(tc.lookup, tc.ip)
		if ok != (tc.want.Function != "") || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%#x: %+v\nwant %+v", tc.lookup, got, tc.want)
		}
	}
}

// What a PDB's public symbols name is mangled, as *.publics.txt beside it has it;
// what its other records name is not.
func TestPDBName(t *testing.T) {
	for file, names := range map[string]map[uint32]Name{
		"inline-x64.pdb": {
			0x3000: {Function: "shapes::Box::count", Full: "public: static int shapes::Box::count", Source: SourcePDB, Public: true},
			0x3008: {Function: "_fltused", Source: SourcePDB, Public: true},
		},
		"inline-x86.pdb": {
			0x2000: {Function: "shapes::Box::`vftable'", Full: "const shapes::Box::`vftable'", Source: SourcePDB, Public: true},
			0x3008: {Function: "_fltused", Source: SourcePDB, Public: true}, // __fltused there
		},
	} {
		b, err := os.ReadFile("pdb/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := openPDB(bytes.NewReader(b), int64(len(b)), file)
		if err != nil {
			t.Fatal(err)
		}
		for rva, want := range names {
			if got, ok := d.Name(rva, rva); !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("%s %#x: %+v, want %+v", file, rva, got, want)
			}
		}
	}
}

func TestPDBKey(t *testing.T) {
	if got := PDBKey(appIdentity); got != "30BE4E48D1D84E3E961D1A7E3B6B1F1B2A" {
		t.Error(got)
	}
	if got := PDBKey(dump.CodeView{Signature: "NB10", Stamp: 0x4c1a9d3f, Age: 0x1f}); got != "4C1A9D3F1F" {
		t.Error(got)
	}
}

// Without the contributions of the object files nothing tells how far a public
// symbol reaches, and one far away is not taken. The file is altered so that the
// contributions are of an unknown version and the code goes on for 32 KiB.
func TestFarPublic(t *testing.T) {
	b, err := os.ReadFile("pdb/testdata/inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	version, text := []byte{0x2d, 0xba, 0x2e, 0xf1}, []byte(".text\x00\x00\x00\x49\x01\x00\x00")
	if bytes.Count(b, version) != 1 || bytes.Count(b, text) != 1 {
		t.Fatal("not the file that was meant")
	}
	altered := bytes.Clone(b)
	altered[bytes.Index(b, version)] ^= 1
	altered[bytes.Index(b, text)+9] = 0x80 // VirtualSize
	m, err := openPDB(bytes.NewReader(altered), int64(len(altered)), "x.pdb")
	if err != nil {
		t.Fatal(err)
	}
	last := uint32(0)
	for p := range m.(PDB).Publics() {
		if p.RVA >= 0x1000 && p.RVA < 0x2000 && p.Function {
			last = max(last, p.RVA)
		}
	}
	for off, want := range map[uint32]bool{0: true, exportReach - 1: true, exportReach: false, 0x5000: false} {
		if n, ok := m.Name(last+off, last+off); ok != want || want && (!n.Public || n.Offset != uint64(off)) {
			t.Errorf("%#x behind the last public symbol: %+v, %v", off, n, ok)
		}
	}
}
