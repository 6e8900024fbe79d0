package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dumptriage/pdata"
)

// TestStale: a store that remembers knows when any file that it holds open is not what it
// was any more, however that came.
func TestStale(t *testing.T) {
	m := wanted(`C:\App.exe`)
	image := build("App.exe", m.TimeDateStamp, uint32(m.Size))
	other := build("App.exe", m.TimeDateStamp+1, uint32(m.Size))
	later := func(t *testing.T, file string) {
		then := time.Now().Add(time.Hour)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	// What a test writes may be of the very time that the file was made.
	for name, change := range map[string]func(t *testing.T, file string) error{
		"written over": func(t *testing.T, file string) error {
			defer later(t, file)
			return os.WriteFile(file, other, 0o666)
		},
		"longer": func(_ *testing.T, file string) error {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("more")
			f.Close()
			return err
		},
		"replaced": func(t *testing.T, file string) error {
			was, err := os.Stat(file)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file+".new", content, 0o666); err != nil {
				return err
			}
			if err := os.Chtimes(file+".new", was.ModTime(), was.ModTime()); err != nil {
				return err
			}
			return os.Rename(file+".new", file)
		},
		"gone": func(_ *testing.T, file string) error { return os.Remove(file) },
	} {
		for _, file := range []string{"App.exe", "App.sym"} {
			t.Run(name+" "+file, func(t *testing.T) {
				dir := tree(t, map[string][]byte{"App.exe": image, "App.sym": symFile(appID), "unused.exe": image})
				s := NewPathStore(DirPath(dir), StoreOptions{Remember: true})
				defer s.Close()
				if im, _, _ := s.Find(m); im == nil {
					t.Fatal("no image")
				}
				if d, _, _ := s.FindDebug(appIdentity, ""); d == nil {
					t.Fatal("no symbols")
				}
				later(t, filepath.Join(dir, "unused.exe"))
				if s.Stale() {
					t.Fatal("stale before anything has changed that is open")
				}
				if err := change(t, filepath.Join(dir, file)); err != nil {
					t.Skip("an open file cannot be changed here:", err)
				}
				if !s.Stale() {
					t.Error("not stale")
				}
			})
		}
	}
}

// TestStaleLinked: the same for debug information that was split off an image.
func TestStaleLinked(t *testing.T) {
	s, im, image := linked(t, "gcc-5.debug", true)
	d, file := s.FindImageDebug(im, image)
	if d == nil || s.Stale() {
		t.Fatalf("%s, stale %v", file, s.Stale())
	}
	if err := os.Remove(file); err != nil {
		t.Skip("an open file cannot be removed here:", err)
	}
	if !s.Stale() {
		t.Error("not stale")
	}
}

// TestOpenFilesAreProvedAgain: what is open for one module is not taken for another build's
// that looks for a file of the same name, whatever folder the store went to meanwhile.
func TestOpenFilesAreProvedAgain(t *testing.T) {
	m := wanted(`C:\App.exe`)
	dir := tree(t, map[string][]byte{"App.exe": build("App.exe", m.TimeDateStamp, uint32(m.Size)), "App.sym": symFile(appID)})
	s := NewPathStore(DirPath(dir), StoreOptions{Remember: true})
	defer s.Close()
	for range 2 {
		im, _, _ := s.Find(m)
		d, _, state := s.FindDebug(appIdentity, "")
		if im == nil || d == nil || state != DebugLoaded {
			t.Fatalf("%v, %v, state %d", im, d, state)
		}
		another, cv := *m, appIdentity
		another.TimeDateStamp++
		cv.Age++
		if im, file, _ := s.Find(&another); im != nil {
			t.Errorf("%s is the image of another build", file)
		}
		if d, file, state := s.FindDebug(cv, ""); d != nil || state != DebugMismatch {
			t.Errorf("%s has the symbols of another build, state %d", file, state)
		}
		s.LookBeside(append(BesidePath(filepath.Join(t.TempDir(), "a.dmp")), DirPath(dir)...))
	}
}

// The same for what was split off an image: another image that names the file has another
// checksum of it.
func TestOpenLinkedIsProvedAgain(t *testing.T) {
	s, im, image := linked(t, "gcc-5.debug", true)
	if d, _ := s.FindImageDebug(im, image); d == nil {
		t.Fatal("nothing was found")
	}
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	const link = "gcc-5.debug\x00" // the checksum is right behind it
	at := bytes.LastIndex(b, []byte(link))
	if at < 0 {
		t.Fatal("the image has no link")
	}
	b[at+len(link)]++
	other := filepath.Join(filepath.Dir(image), "other.exe")
	if err := os.WriteFile(other, b, 0o666); err != nil {
		t.Fatal(err)
	}
	im, err = pdata.OpenFile(bytes.NewReader(b), int64(len(b)), other)
	if err != nil {
		t.Fatal(err)
	}
	if d, file := s.FindImageDebug(im, other); d != nil && file != other {
		t.Errorf("%s is taken for what was split off another image", file)
	}
}
