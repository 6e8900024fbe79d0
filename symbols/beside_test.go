package symbols

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of several files that would all do, the nearest is taken: beside the image, beside
// the dump, then the folders of the path.
func TestBesideOrder(t *testing.T) {
	root := tree(t, map[string][]byte{"image/App.sym": symFile(appID), "dump/app.SYM": symFile(appID), "named/App.sym": symFile(appID), "dump/below/App.sym": symFile(appID)})
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, want := range []string{at("image", "App.sym"), at("dump", "app.SYM"), at("named", "App.sym"), ""} {
		s := NewPathStore(slices.Concat(BesidePath(at("dump", "x.dmp"), at("dump", "x.Kernel.dmp"), "-", ""), DirPath(at("named"))), StoreOptions{})
		d, file, _ := s.FindDebug(appIdentity, at("image", "App.exe"))
		if file != want || (d != nil) != (want != "") {
			t.Errorf("%q, want %q", file, want)
		}
		f := s.findDebug(appIdentity, at("image", "App.exe"))
		places := tried(f.queries...)
		if all := []string{at("image"), at("dump"), at("named")}; want == "" && !slices.Equal(places, all) {
			t.Errorf("tried %q, want %q", places, all)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if want != "" {
			if err := os.Remove(want); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Files beside a dump are proved like all others: those of other builds are refused.
func TestBesideVerified(t *testing.T) {
	dir := tree(t, map[string][]byte{"ntdll.dll": build("ntdll.dll", 1, wantSize), "App.sym": symFile(strings.Replace(appID, "2a", "2b", 1))})
	s := NewPathStore(BesidePath(filepath.Join(dir, "x.dmp")), StoreOptions{})
	defer s.Close()
	if im, file, miss := s.Find(wanted("ntdll.dll")); im != nil || !strings.Contains(miss.Reason, "another build") {
		t.Errorf("%q, %+v", file, miss)
	}
	if d, _, state := s.FindDebug(appIdentity, ""); d != nil || state != DebugMismatch {
		t.Errorf("state %d", state)
	}
}

// The directory that a dump records for a PDB is not opened.
func TestRecordedDirectory(t *testing.T) {
	dir := tree(t, map[string][]byte{"App.pdb": nil, "App.sym": symFile(appID)})
	cv := appIdentity
	cv.PDB = filepath.Join(dir, "App.pdb")
	if d, file, _ := NewPathStore(nil, StoreOptions{}).FindDebug(cv, ""); d != nil {
		t.Errorf("used %q", file)
	}
}

// In a folder of very many files only names as the dump spells them are found,
// and that is said.
func TestBesideMany(t *testing.T) {
	files := map[string][]byte{}
	for i := range maxBeside + 1 {
		files[fmt.Sprintf("%05d.dmp", i)] = nil
	}
	dir := tree(t, files)
	if err := os.WriteFile(filepath.Join(dir, "App.sym"), symFile(appID), 0o666); err != nil {
		t.Fatal(err)
	}
	if f := listFolder(dir); len(f.byName) != 0 {
		t.Errorf("%d names are listed, which ones the file system decides", len(f.byName))
	}
	s := NewPathStore(BesidePath(filepath.Join(dir, "x.dmp")), StoreOptions{})
	defer s.Close()
	if d, _, _ := s.FindDebug(appIdentity, ""); d == nil {
		t.Error("not found")
	}
	if _, _, miss := s.Find(wanted("ntdll.dll")); len(miss.Tried) != 1 || !strings.Contains(miss.Tried[0], "more than 4096 files") {
		t.Errorf("tried %q", miss.Tried)
	}
}

// An image in a store's tree has no symbols beside it; there is no point in
// naming the folder.
func TestBesideImage(t *testing.T) {
	for image, want := range map[string]string{
		"":                              "",
		filepath.Join("bin", "app.exe"): "bin",
		filepath.Join("store", "App.exe", "7E57AB606000", "app.exe"): "",
	} {
		if got := besideImage(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}

// A pipe beside a dump is not opened: reading it would never end.
func TestBesideNoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "App.sym"), 0o777); err != nil {
		t.Fatal(err)
	}
	s := NewPathStore(BesidePath(filepath.Join(dir, "x.dmp")), StoreOptions{})
	f := s.findDebug(appIdentity, "")
	if f.state != DebugMissing || f.queries[1].reason != "" {
		t.Errorf("%+v", f)
	}
	f = NewPathStore(BesidePath(filepath.Join(dir, "none", "x.dmp")), StoreOptions{}).findDebug(appIdentity, "")
	if places := tried(f.queries...); len(places) != 1 || !strings.Contains(places[0], "cannot be read") {
		t.Errorf("tried %q", places)
	}
}
