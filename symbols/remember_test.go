package symbols

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// TestRememberDamaged: a damaged file is opened once for many dumps, and each dump is
// told of the damage that it meets itself.
func TestRememberDamaged(t *testing.T) {
	dir := tree(t, map[string][]byte{"App.sym": append(symFile(appID), "FUNC zz\n"...)})
	s := NewPathStore(DirPath(dir), StoreOptions{Remember: true})
	defer s.Close()
	var first Debug
	for i := range 3 {
		d, _, state := s.FindDebug(appIdentity, "")
		if state != DebugLoaded {
			t.Fatalf("question %d: state %d", i, state)
		}
		d.Name(0x1000, 0x1000)
		damage := d.(interface{ Damage() []*dump.Error }).Damage()
		if len(damage) != 1 {
			t.Errorf("question %d: the damage is %v", i, damage)
		}
		if i == 0 {
			first = d
			if err := os.Remove(filepath.Join(dir, "App.sym")); err != nil {
				t.Skip("an open file cannot be removed here:", err)
			}
		} else if d == first {
			t.Errorf("question %d: the file is not read anew", i)
		}
		if n := s.Opened(); n != 1 {
			t.Errorf("question %d: %d files are open", i, n)
		}
	}
}

// TestFailedOnce: what could not be read for one module is not read again for another
// one that looks for the same file.
func TestFailedOnce(t *testing.T) {
	dir := tree(t, map[string][]byte{"App.pdb": []byte("Microsoft C/C++ MSF 7.00"), "App.exe": []byte("MZ")})
	s := NewPathStore(DirPath(dir), StoreOptions{Remember: true})
	defer s.Close()
	find := func(age uint32) DebugState {
		cv := appIdentity
		cv.Age = age
		_, _, state := s.FindDebug(cv, "")
		return state
	}
	findImage := func(stamp uint32) *pdata.Image {
		m := wanted(`C:\App.exe`)
		m.TimeDateStamp = stamp
		im, _, _ := s.Find(m)
		return im
	}
	if find(1) != DebugMissing || findImage(1) != nil {
		t.Fatal("a broken file is used")
	}
	m := wanted(`C:\App.exe`)
	good := map[string][]byte{"App.exe": build("App.exe", m.TimeDateStamp, uint32(m.Size))}
	for name, b := range good {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if find(2) != DebugMissing || findImage(m.TimeDateStamp) != nil {
		t.Error("the file was read again")
	}
	fresh := NewStore([]string{dir})
	defer fresh.Close()
	if im, _, _ := fresh.Find(m); im == nil {
		t.Error("the new file is none: the test shows nothing")
	}
}

func TestFailuresBounded(t *testing.T) {
	f := failures{}
	for i := range 2 * maxFailures {
		f.keep(fmt.Sprint(i), &dump.Error{Code: dump.Truncated})
	}
	if len(f) != maxFailures {
		t.Errorf("%d failures are kept", len(f))
	}
	f = failures{}
	f.keep("other", &dump.Error{Code: dump.Mismatch})
	if len(f) != 0 {
		t.Error("another build is kept as a failure")
	}
}

// linked returns a store and the image of the dwarf package's tests whose debug
// information was split off, beside a file of the name that it records.
func linked(t *testing.T, debug string, remember bool) (s *Store, im *pdata.Image, image string) {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("dwarf", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := read("linked.exe")
	dir := tree(t, map[string][]byte{"linked.exe": b, "gcc-5.debug": read(debug)})
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "linked.exe")
	if err != nil {
		t.Fatal(err)
	}
	s = NewPathStore(nil, StoreOptions{Remember: remember})
	t.Cleanup(func() { s.Close() })
	return s, im, filepath.Join(dir, "linked.exe")
}

// TestRememberLinked: the checksum of a file that was split off is made once.
func TestRememberLinked(t *testing.T) {
	s, im, image := linked(t, "gcc-5.debug", true)
	first, file := s.FindImageDebug(im, image)
	if first == nil {
		t.Fatal("nothing was found")
	}
	if err := os.Remove(file); err != nil {
		t.Skip("an open file cannot be removed here:", err)
	}
	again, same := s.FindImageDebug(im, image)
	if again != first || same != file || s.Opened() != 1 {
		t.Errorf("found %v in %q, %d files are open", again, same, s.Opened())
	}
}

// TestWrongSumOnce: a file of another checksum is not read again, however often it is
// asked for.
func TestWrongSumOnce(t *testing.T) {
	s, im, image := linked(t, "gcc-5.exe", false)
	if d, _ := s.FindImageDebug(im, image); d != nil {
		t.Fatal("a file of another checksum is used")
	}
	right, err := os.ReadFile("dwarf/testdata/gcc-5.debug")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(image), "gcc-5.debug"), right, 0o666); err != nil {
		t.Fatal(err)
	}
	if d, _ := s.FindImageDebug(im, image); d != nil {
		t.Error("the file was read again")
	}
}

// TestLookBeside: a store that goes on to the folder of another dump answers as a new one
// would, and opens nothing again.
func TestLookBeside(t *testing.T) {
	m := wanted(`C:\App.exe`)
	image := build("App.exe", m.TimeDateStamp, uint32(m.Size))
	shared := tree(t, map[string][]byte{"App.sym": append(symFile(appID), "FUNC zz\n"...), "App.exe": image})
	own := tree(t, map[string][]byte{"App.sym": symFile(appID), "App.exe": image})
	other := tree(t, map[string][]byte{"App.sym": symFile("000000000000000000000000000000001")})
	path := func(dir string) Path { return append(BesidePath(filepath.Join(dir, "a.dmp")), DirPath(shared)...) }
	s := NewPathStore(path(t.TempDir()), StoreOptions{Remember: true})
	defer s.Close()
	opened := map[string]Debug{}
	for i, dir := range []string{"", own, "", other, own, ""} {
		if dir == "" {
			dir = t.TempDir()
		}
		s.LookBeside(path(dir))
		fresh := NewPathStore(path(dir), StoreOptions{})
		defer fresh.Close()
		d, file, state := s.FindDebug(appIdentity, "")
		_, wantFile, wantState := fresh.FindDebug(appIdentity, "")
		if d == nil || file != wantFile || state != wantState {
			t.Errorf("step %d: %s, state %d, want %s, %d", i, file, state, wantFile, wantState)
		}
		im, file, _ := s.Find(m)
		if _, wantFile, _ := fresh.Find(m); im == nil || file != wantFile {
			t.Errorf("step %d: %s, want %s", i, file, wantFile)
		}
		if d.Name(0x1000, 0x1000); file != filepath.Join(own, "App.exe") {
			if damage := d.(interface{ Damage() []*dump.Error }).Damage(); len(damage) != 1 {
				t.Errorf("step %d: the damage is %v", i, damage)
			}
		}
		opened[file] = d
	}
	if n := s.Opened(); n != 4 || len(opened) != 2 {
		t.Errorf("%d files are open, want the image and the symbols of two folders", n)
	}
}

// TestLookBesideLinked: debug information that was split off an image, and that inside it.
func TestLookBesideLinked(t *testing.T) {
	s, im, image := linked(t, "gcc-5.debug", true)
	for i := range 3 {
		s.LookBeside(BesidePath(filepath.Join(t.TempDir(), "a.dmp")))
		if d, _ := s.FindImageDebug(im, image); d == nil {
			t.Fatalf("step %d: nothing was found", i)
		}
	}
	if n := s.Opened(); n != 1 {
		t.Errorf("%d files are open", n)
	}
}
