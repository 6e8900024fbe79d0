package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// imageDebug finds the debug information of an image of the dwarf package's tests,
// which lies alone in a folder with the other files.
func imageDebug(t *testing.T, path Path, image string, with ...string) (Debug, string) {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range append([]string{image}, with...) {
		from, to, _ := strings.Cut(name, "=")
		b, err := os.ReadFile(filepath.Join("dwarf", "testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if to == "" {
			to = from
		}
		files[to] = b
	}
	file := filepath.Join(tree(t, files), image)
	im, err := pdata.OpenFile(bytes.NewReader(files[image]), int64(len(files[image])), image)
	if err != nil {
		t.Fatal(err)
	}
	s := NewPathStore(path, StoreOptions{})
	t.Cleanup(func() { s.Close() })
	return s.FindImageDebug(im, file)
}

// The debug information comes from the image, from the file that was split off it,
// from the symbol table, in this order. The names and lines are those of mini.c.
func TestImageDebug(t *testing.T) {
	const leaf = 0x1000
	elsewhere := tree(t, map[string][]byte{"deep/below/x": nil})
	b, err := os.ReadFile("dwarf/testdata/gcc-5.debug")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "deep", "GCC-5.debug"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		image  string
		path   Path
		with   []string
		file   string
		source SourceKind
		line   uint32
	}{
		{"gcc-5.exe", nil, nil, "gcc-5.exe", SourceDWARF, 5},
		{"linked.exe", nil, []string{"gcc-5.debug"}, "gcc-5.debug", SourceDWARF, 5},
		{"linked.exe", nil, []string{"gcc-5.debug=.debug/gcc-5.debug"}, "gcc-5.debug", SourceDWARF, 5},
		{"linked.exe", DirPath(elsewhere), nil, "GCC-5.debug", SourceDWARF, 5},
		{"linked.exe", BesidePath(filepath.Join(elsewhere, "deep", "x.dmp")), nil, "GCC-5.debug", SourceDWARF, 5},
		{"linked.exe", nil, []string{"gcc-5.exe=gcc-5.debug"}, "", "", 0}, // another file under the name
		{"linked.exe", nil, nil, "", "", 0},
		{"names.exe", nil, nil, "names.exe", SourceCOFF, 0},
	} {
		d, file := imageDebug(t, tc.path, tc.image, tc.with...)
		if file != "" {
			file = filepath.Base(file)
		}
		if file != tc.file || (d == nil) != (tc.file == "") {
			t.Errorf("%s with %v: %q, want %q", tc.image, tc.with, file, tc.file)
			continue
		}
		if d == nil {
			continue
		}
		n, ok := d.Name(leaf, leaf+1)
		if !ok || n.Source != tc.source || n.Line != tc.line || n.Function != "leaf" || n.Offset != 1 {
			t.Errorf("%s: %+v", tc.image, n)
		}
	}
}

// A mangled name is made readable, with its arguments in the full form only.
func TestImageDebugNames(t *testing.T) {
	d, _ := imageDebug(t, nil, "scopes.exe")
	got := map[string]string{}
	for rva := uint32(0x1000); rva < 0x1100; rva++ {
		if n, ok := d.Name(rva, rva); ok && n.Source == SourceDWARF {
			got[n.Function] = n.Full
		}
	}
	for short, full := range map[string]string{"app::Job::run": "app::Job::run(int)", "app::(anonymous namespace)::Local::go": "", "app::twice<int>": "int app::twice<int>(int)", "start": ""} {
		if f, ok := got[short]; !ok || f != full {
			t.Errorf("%q: %q, want %q; have %v", short, f, full, got)
		}
	}
}

// A module's need of symbols is met by DWARF in its image or split off it, not by a
// symbol table alone. None of the images names a PDB.
func TestNeedsOfDWARF(t *testing.T) {
	for _, tc := range []struct {
		image   string
		with    []string
		file    string // "" when there is no need
		inImage bool
	}{
		{"gcc-5.exe", nil, "gcc-5.exe", true},
		{"linked.exe", []string{"gcc-5.debug"}, "gcc-5.debug", false},
		{"linked.exe", nil, "", false},
		{"names.exe", nil, "", false},
	} {
		files := map[string][]byte{}
		for _, name := range append([]string{tc.image}, tc.with...) {
			b, err := os.ReadFile(filepath.Join("dwarf", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = b
		}
		dir := tree(t, files)
		im, err := pdata.OpenFile(bytes.NewReader(files[tc.image]), int64(len(files[tc.image])), tc.image)
		if err != nil {
			t.Fatal(err)
		}
		id := im.Identity()
		m := &dump.Module{Path: tc.image, Size: uint64(id.SizeOfImage), TimeDateStamp: id.TimeDateStamp}
		path, err := ParsePath(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := NewPathStore(path, StoreOptions{})
		needs := s.Needs(m, nil)
		s.Close()
		if len(needs) == 0 || needs[0].File != filepath.Join(dir, tc.image) {
			t.Fatalf("%s: %+v", tc.image, needs)
		}
		if tc.file == "" {
			if len(needs) != 1 {
				t.Errorf("%s: %+v", tc.image, needs)
			}
			continue
		}
		if len(needs) != 2 || needs[1].File != filepath.Join(dir, tc.file) || needs[1].InImage != tc.inImage || needs[1].Missing() {
			t.Errorf("%s: %+v", tc.image, needs)
		}
	}
}
