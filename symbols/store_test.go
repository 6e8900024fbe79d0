package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
	"dumptriage/fixtures"
)

const (
	wantStamp = 0x5e8d3a1b
	wantSize  = 0x6000
	// wantKey is how a symbol store names the folder: the stamp in eight
	// upper-case digits, the size in lower case (Microsoft, "SymStore").
	wantKey = "5E8D3A1B6000"
)

// build is an image with that identity.
func build(name string, stamp, size uint32) []byte { return newImage(name, stamp, size).File() }

func newImage(name string, stamp, size uint32) *fixtures.Image {
	return &fixtures.Image{Name: name, Base: 0x180000000, TimeDateStamp: stamp, SizeOfImage: size,
		Functions: []*fixtures.Function{{Name: "Entry", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))}}}
}

func wanted(path string) *dump.Module {
	return &dump.Module{Base: 0x7ffe63870000, Size: wantSize, TimeDateStamp: wantStamp, Path: path}
}

// tree writes files into a new folder.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func find(t *testing.T, m *dump.Module, dirs ...string) (path string, miss *Missing) {
	t.Helper()
	s := NewStore(dirs)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	im, path, miss := s.Find(m)
	if (im == nil) != (miss != nil) || (im == nil) != (path == "") {
		t.Fatalf("image %v, path %q, missing %v", im, path, miss)
	}
	if im != nil {
		if id := im.Identity(); uint64(id.SizeOfImage) != m.Size || m.TimeDateStamp != 0 && id.TimeDateStamp != m.TimeDateStamp {
			t.Fatalf("the image is %+v", id)
		}
		if name := NameOf(im, 0x1010, 0x1010); name.Function != "Entry" { // it can be read
			t.Fatalf("name %+v", name)
		}
	}
	return path, miss
}

func TestStoreFinds(t *testing.T) {
	good := build("ntdll.dll", wantStamp, wantSize)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll(good, nil)
	other := build("ntdll.dll", wantStamp+1, wantSize)
	for _, x := range []struct {
		name   string
		module string
		files  map[string][]byte
		at     string // "" is not found
	}{
		{"in the folder", `C:\Windows\System32\ntdll.dll`, map[string][]byte{"ntdll.dll": good}, "ntdll.dll"},
		{"in a folder below", `ntdll.dll`, map[string][]byte{"a/b/c/ntdll.dll": good}, "a/b/c/ntdll.dll"},
		{"module in another case", `C:\WINDOWS\SYSTEM32\NTDLL.DLL`, map[string][]byte{"ntdll.dll": good}, "ntdll.dll"},
		{"file in another case", `c:\windows\ntdll.dll`, map[string][]byte{"NtDll.DLL": good}, "NtDll.DLL"},
		{"symbol store", `ntdll.dll`, map[string][]byte{"ntdll.dll/5E8D3A1C6000/ntdll.dll": other, "ntdll.dll/" + wantKey + "/ntdll.dll": good},
			"ntdll.dll/" + wantKey + "/ntdll.dll"},
		{"behind another build", `ntdll.dll`, map[string][]byte{"1/ntdll.dll": other, "2/ntdll.dll": good}, "2/ntdll.dll"},
		{"behind a file that is no image", `ntdll.dll`, map[string][]byte{"1/ntdll.dll": []byte("MZ"), "2/ntdll.dll": good}, "2/ntdll.dll"},
		{"behind an empty file", `ntdll.dll`, map[string][]byte{"1/ntdll.dll": nil, "2/ntdll.dll": good}, "2/ntdll.dll"},
		{"zstd", `ntdll.dll`, map[string][]byte{"ntdll.dll.zst": packed}, "ntdll.dll.zst"},
		{"zstd in another case", `ntdll.dll`, map[string][]byte{"NTDLL.DLL.ZST": packed}, "NTDLL.DLL.ZST"},
		{"another name", `ntdll.dll`, map[string][]byte{"ntdll2.dll": good, "ntdll": good, "xntdll.dll": good}, ""},
		{"kernel by the name it was linked with", `\SystemRoot\system32\ntoskrnl.exe`, map[string][]byte{"ntkrnlmp.exe": good}, "ntkrnlmp.exe"},
		{"kernel with 57-bit addresses", `ntoskrnl.exe`, map[string][]byte{"ntkrla57.exe": good}, "ntkrla57.exe"},
		{"kernel by the loader's name", `ntkrnlmp.exe`, map[string][]byte{"NTOSKRNL.EXE": good}, "NTOSKRNL.EXE"},
		{"32-bit kernel with PAE", `ntoskrnl.exe`, map[string][]byte{"ntkrpamp.exe": good}, "ntkrpamp.exe"},
		{"32-bit kernel of one processor", `ntoskrnl.exe`, map[string][]byte{"ntkrnlpa.exe": good}, "ntkrnlpa.exe"},
		{"its own name before an alias", `ntkrnlmp.exe`, map[string][]byte{"1/ntoskrnl.exe": good, "2/ntkrnlmp.exe": good}, "2/ntkrnlmp.exe"},
		{"the HAL is no kernel", `hal.dll`, map[string][]byte{"ntoskrnl.exe": good}, ""},
		{"module without a name", ``, map[string][]byte{"ntdll.dll": good}, ""},
		{"module whose path ends in a slash", `C:\x\`, map[string][]byte{"ntdll.dll": good}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := tree(t, x.files)
			path, _ := find(t, wanted(x.module), dir)
			want := ""
			if x.at != "" {
				want = filepath.Join(dir, filepath.FromSlash(x.at))
			}
			if path != want {
				t.Errorf("found %q, want %q", path, want)
			}
		})
	}
}

// Folders are searched in the order in which the user names them.
func TestStoreOrder(t *testing.T) {
	good := build("ntdll.dll", wantStamp, wantSize)
	first, second := tree(t, map[string][]byte{"z/ntdll.dll": good}), tree(t, map[string][]byte{"ntdll.dll": good})
	if path, _ := find(t, wanted("ntdll.dll"), first, second); path != filepath.Join(first, "z", "ntdll.dll") {
		t.Errorf("found %s", path)
	}
	if path, _ := find(t, wanted("ntdll.dll"), second, first); path != filepath.Join(second, "ntdll.dll") {
		t.Errorf("found %s", path)
	}
}

// Another build is refused, and the reason names the file and both builds.
func TestStoreRefuses(t *testing.T) {
	for _, x := range []struct {
		name        string
		stamp, size uint32
		key         string
	}{
		{"another stamp", wantStamp + 1, wantSize, "5E8D3A1C6000"},
		{"another size", wantStamp, wantSize + 0x1000, "5E8D3A1B7000"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := tree(t, map[string][]byte{"sub/ntdll.dll": build("ntdll.dll", x.stamp, x.size)})
			m := wanted("ntdll.dll")
			path, miss := find(t, m, dir)
			if path != "" {
				t.Fatalf("took %s", path)
			}
			if miss.Module != m || miss.Key != wantKey || len(miss.Tried) != 1 || miss.Tried[0] != dir {
				t.Errorf("%+v", miss)
			}
			for _, part := range []string{filepath.Join(dir, "sub", "ntdll.dll"), "another build", x.key, wantKey} {
				if !strings.Contains(miss.Reason, part) {
					t.Errorf("the reason %q lacks %q", miss.Reason, part)
				}
			}
		})
	}
	// Of several refused files the first is named; of a damaged one the damage.
	dir := tree(t, map[string][]byte{"1/ntdll.dll": []byte("MZ, but no more"), "2/ntdll.dll": build("ntdll.dll", 1, wantSize)})
	if _, miss := find(t, wanted("ntdll.dll"), dir); !strings.Contains(miss.Reason, filepath.Join(dir, "1")) || strings.Contains(miss.Reason, "another build") {
		t.Errorf("reason %q", miss.Reason)
	}
	// A size whose low half alone agrees is another.
	dir = tree(t, map[string][]byte{"ntdll.dll": build("ntdll.dll", wantStamp, wantSize)})
	m := wanted("ntdll.dll")
	m.Size += 1 << 32
	if path, _ := find(t, m, dir); path != "" {
		t.Error("took an image of another size")
	}
}

// A module of which the dump has no time stamp is told by its checksum. Another
// build of the same size is what its size alone would take for it.
func TestStoreWithoutStamp(t *testing.T) {
	image := newImage("a.sys", wantStamp, wantSize)
	sum := image.CheckSum()
	dir := tree(t, map[string][]byte{"1/a.sys": build("a.sys", wantStamp+1, wantSize), "2/a.sys": image.File()})
	if sum == 0 {
		t.Fatal("the image has no checksum")
	}
	m := &dump.Module{Size: wantSize, Path: "a.sys", CheckSum: sum}
	if path, _ := find(t, m, dir); path != filepath.Join(dir, "2", "a.sys") {
		t.Errorf("found %q", path)
	}
	m.CheckSum = 0
	if path, miss := find(t, m, dir); path != "" || !strings.Contains(miss.Reason, "no time stamp") {
		t.Errorf("found %q by its size alone (%+v)", path, miss)
	}
	if Key(m) != "" {
		t.Errorf("key %q of an unknown stamp", Key(m))
	}
	if got := Key(wanted("a.sys")); got != wantKey {
		t.Errorf("key %q, want %q", got, wantKey)
	}
	if got := Key(&dump.Module{TimeDateStamp: 0x1a, Size: 0xabc000}); got != "0000001Aabc000" {
		t.Errorf("key %q", got)
	}
}

// A folder that is not there or cannot be read hides no other, and is named.
func TestStoreUnreadable(t *testing.T) {
	good := tree(t, map[string][]byte{"ntdll.dll": build("ntdll.dll", wantStamp, wantSize)})
	gone := filepath.Join(good, "nowhere")
	if path, _ := find(t, wanted("ntdll.dll"), gone, good); path == "" {
		t.Error("a missing folder hides the next")
	}
	_, miss := find(t, wanted("other.dll"), gone, good)
	if len(miss.Tried) != 3 || miss.Tried[0] != gone || miss.Tried[1] != good || !strings.HasPrefix(miss.Tried[2], gone+" (cannot be read: ") {
		t.Errorf("tried %q", miss.Tried)
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("no folder can be made unreadable here")
	}
	dir := tree(t, map[string][]byte{"1/x": nil, "2/ntdll.dll": build("ntdll.dll", wantStamp, wantSize)})
	locked := filepath.Join(dir, "1")
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(locked, 0o700) })
	if path, _ := find(t, wanted("ntdll.dll"), dir); path == "" {
		t.Error("an unreadable folder hides the next")
	}
	if _, miss := find(t, wanted("other.dll"), dir); len(miss.Tried) != 2 || !strings.HasPrefix(miss.Tried[1], locked+" (cannot be read: ") {
		t.Errorf("tried %q", miss.Tried)
	}
}

// A link is followed where the user names it, and to files; the path is the
// user's own.
func TestStoreLinks(t *testing.T) {
	dir := tree(t, map[string][]byte{"real/sub/ntdll.dll": build("ntdll.dll", wantStamp, wantSize)})
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "real"), link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink(link, filepath.Join(dir, "real", "round")); err != nil {
		t.Fatal(err)
	}
	if path, _ := find(t, wanted("ntdll.dll"), link); path != filepath.Join(link, "sub", "ntdll.dll") {
		t.Errorf("found %q", path)
	}
	files := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "real", "sub", "ntdll.dll"), filepath.Join(files, "ntdll.dll")); err != nil {
		t.Fatal(err)
	}
	if path, _ := find(t, wanted("ntdll.dll"), files); path != filepath.Join(files, "ntdll.dll") {
		t.Errorf("found %q", path)
	}
	// A folder that bears the image's name is none.
	if path, _ := find(t, wanted("sub"), link); path != "" {
		t.Errorf("took the folder %q", path)
	}
}

// A store is asked by several goroutines, and closes what it opened.
func TestStoreConcurrent(t *testing.T) {
	dir := tree(t, map[string][]byte{"ntdll.dll": build("ntdll.dll", wantStamp, wantSize)})
	s := NewStore([]string{dir})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			im, _, _ := s.Find(wanted("ntdll.dll"))
			if im == nil {
				t.Error("not found")
				return
			}
			var b [4]byte
			if n, _ := im.ReadRVA(b[:], 0x1000); n != 4 || bytes.Equal(b[:], make([]byte, 4)) {
				t.Errorf("read %d bytes %x", n, b)
			}
		})
	}
	wg.Wait()
	im, _, _ := s.Find(wanted("ntdll.dll"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	var b [4]byte
	if n, err := im.ReadRVA(b[:], 0x1000); n != 0 || err == nil {
		t.Errorf("read %d bytes of a closed file, %v", n, err)
	}
}
