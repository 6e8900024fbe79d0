package symbols

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestStoreDevice keeps from links to what never ends.
func TestStoreDevice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no device files")
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "ntdll.dll")); err != nil {
		t.Skip(err)
	}
	begun := time.Now()
	path, miss := find(t, wanted(`C:\Windows\System32\ntdll.dll`), dir)
	if path != "" || miss.Reason != "" || time.Since(begun) > 5*time.Second {
		t.Errorf("%q, %+v after %v", path, miss, time.Since(begun))
	}
}

// TestStoreBomb refuses a compressed file that unfolds far beyond the image.
func TestStoreBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 300 MB")
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range (overlay >> 20) + 44 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := tree(t, map[string][]byte{"ntdll.dll.gz": packed.Bytes()})
	if path, miss := find(t, wanted("ntdll.dll"), dir); path != "" || !strings.Contains(miss.Reason, "limit") {
		t.Errorf("%q, %+v", path, miss)
	}
}

// TestStoreManyBuilds opens the build of the key's folder first, and no file
// twice to find out that it is another build.
func TestStoreManyBuilds(t *testing.T) {
	files := map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dll": build("ntdll.dll", wantStamp, wantSize)}
	for i := range uint32(50) {
		files[fmt.Sprintf("ntdll.dll/%08X%x/ntdll.dll", i+1, wantSize)] = build("ntdll.dll", i+1, wantSize)
	}
	dir := tree(t, files)
	s := NewStore([]string{dir})
	defer s.Close()
	im, path, _ := s.Find(wanted("ntdll.dll"))
	if im == nil || !strings.Contains(path, wantKey) || len(s.builds) != 0 {
		t.Errorf("found %q after %d refusals", path, len(s.builds))
	}
	other := wanted("ntdll.dll")
	other.TimeDateStamp = 0x77777777
	if _, _, miss := s.Find(other); miss == nil || !strings.Contains(miss.Reason, "another build") || len(s.builds) != 51 {
		t.Errorf("%+v, %d builds known", miss, len(s.builds))
	}
	for name := range files { // what is known of them needs no file any more
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
	}
	if _, _, miss := s.Find(other); miss == nil || !strings.Contains(miss.Reason, "another build") {
		t.Errorf("%+v", miss)
	}
}
