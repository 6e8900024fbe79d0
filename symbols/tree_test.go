package symbols

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cabinet packs one file as makecab without compression does: one folder, one
// block (MS-CAB 2.1 to 2.4). A checksum of 0 is none.
func cabinet(name string, content []byte) []byte {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
	}
	const header, folder = 36, 8
	file := 16 + len(name) + 1
	blocks := (len(content) + 0x7fff) / 0x8000
	data := header + folder + file
	put([]byte("MSCF"), uint32(0), uint32(data+8*blocks+len(content)), uint32(0), uint32(header+folder), uint32(0), uint8(3), uint8(1), uint16(1), uint16(1), uint16(0), uint16(0), uint16(0))
	put(uint32(data), uint16(blocks), uint16(0))
	put(uint32(len(content)), uint32(0), uint16(0), uint16(0x5921), uint16(0), uint16(0x20), []byte(name), uint8(0))
	for len(content) > 0 {
		n := min(len(content), 0x8000)
		put(uint32(0), uint16(n), uint16(n), content[:n])
		content = content[n:]
	}
	return b.Bytes()
}

// The shapes are those of Microsoft's "Symbol Store Folder Tree" and of symstore's
// options /compress and /p.
func TestStoreTrees(t *testing.T) {
	good, other := build("Ntdll.dll", wantStamp, wantSize), build("Ntdll.dll", wantStamp+1, wantSize)
	elsewhere := filepath.Join(tree(t, map[string][]byte{"x/renamed.bin": good}), "x", "renamed.bin")
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		at    string // "" is not found
		why   string // of what is not found, in its places
	}{
		{"two levels", map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dll": good}, "ntdll.dll/" + wantKey + "/ntdll.dll", ""},
		{"key in small letters", map[string][]byte{"ntdll.dll/5e8d3a1b6000/ntdll.dll": good}, "ntdll.dll/5e8d3a1b6000/ntdll.dll", ""},
		{"key in capitals", map[string][]byte{"ntdll.dll/5E8D3A1B6000/ntdll.dll": good}, "ntdll.dll/5E8D3A1B6000/ntdll.dll", ""},
		{"three levels", map[string][]byte{"index2.txt": nil, "nt/ntdll.dll/" + wantKey + "/ntdll.dll": good}, "nt/ntdll.dll/" + wantKey + "/ntdll.dll", ""},
		{"three levels without the mark", map[string][]byte{"nt/ntdll.dll/" + wantKey + "/ntdll.dll": good}, "", ""},
		{"compressed", map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dl_": cabinet("Ntdll.dll", good)}, "ntdll.dll/" + wantKey + "/ntdll.dl_", ""},
		{"compressed after damage", map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dll": other, "ntdll.dll/" + wantKey + "/ntdll.dl_": cabinet("ntdll.dll", good)}, "ntdll.dll/" + wantKey + "/ntdll.dl_", ""},
		{"pointer", map[string][]byte{"ntdll.dll/" + wantKey + "/file.ptr": []byte("PATH:" + elsewhere)}, elsewhere, ""},
		{"pointer of the old form", map[string][]byte{"ntdll.dll/" + wantKey + "/file.ptr": []byte(elsewhere + "\r\n")}, elsewhere, ""},
		{"pointer to nowhere", map[string][]byte{"ntdll.dll/" + wantKey + "/file.ptr": []byte("PATH:" + elsewhere + "x")}, "", "which cannot be read"},
		{"message", map[string][]byte{"ntdll.dll/" + wantKey + "/file.ptr": []byte("MSG: not to be had")}, "", "says: not to be had"},
		{"empty pointer", map[string][]byte{"ntdll.dll/" + wantKey + "/file.ptr": nil}, "", "names no file"},
		{"key of another build", map[string][]byte{"ntdll.dll/5E8D3A1C6000/ntdll.dll": good}, "", ""},
		{"another build under the key", map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dll": other}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tree(t, tc.files)
			s := NewPathStore(Path{{Stores: []string{dir}}}, StoreOptions{})
			defer s.Close()
			im, path, miss := s.Find(wanted(`C:\Windows\System32\ntdll.dll`))
			want := tc.at
			if want != "" && !filepath.IsAbs(want) {
				want = filepath.Join(dir, filepath.FromSlash(want))
			}
			if path != want || (im == nil) != (want == "") {
				t.Fatalf("found %q, want %q (%+v)", path, want, miss)
			}
			if s.indexed && len(s.byName) > 0 {
				t.Error("the tree was walked")
			}
			if miss != nil && !strings.Contains(strings.Join(miss.Tried, "\n"), tc.why) {
				t.Errorf("tried %q, want %q", miss.Tried, tc.why)
			}
		})
	}
}

// A folder that lies flat may hold compressed files too.
func TestFlatCompressed(t *testing.T) {
	dir := tree(t, map[string][]byte{"a/NTDLL.DL_": cabinet("ntdll.dll", build("ntdll.dll", wantStamp, wantSize)), "App.pd_": []byte("no cabinet")})
	if path, miss := find(t, wanted("ntdll.dll"), dir); path != filepath.Join(dir, "a", "NTDLL.DL_") {
		t.Errorf("%q, %+v", path, miss)
	}
	if _, _, state := NewStore([]string{dir}).FindDebug(appIdentity, ""); state != DebugMissing {
		t.Errorf("state %d", state)
	}
}

// What a chain's farther directory has is kept in the nearest; a file there that
// is not what its place says is set aside, and only there.
func TestChainOnDisk(t *testing.T) {
	place := filepath.Join("ntdll.dll", wantKey, "ntdll.dll")
	good := build("ntdll.dll", wantStamp, wantSize)
	far := tree(t, map[string][]byte{"ntdll.dll/" + wantKey + "/ntdll.dl_": cabinet("ntdll.dll", good)})
	bad := build("ntdll.dll", wantStamp+1, wantSize)
	near := tree(t, map[string][]byte{filepath.ToSlash(place): bad})
	alone := tree(t, map[string][]byte{filepath.ToSlash(place): bad})
	p, err := ParsePath(alone + ";srv*" + near + "*" + far)
	if err != nil {
		t.Fatal(err)
	}
	s := NewPathStore(p, StoreOptions{})
	defer s.Close()
	if im, path, miss := s.Find(wanted("ntdll.dll")); im == nil || !strings.HasPrefix(path, far) {
		t.Fatalf("%q, %+v", path, miss)
	}
	if got, err := os.ReadFile(filepath.Join(near, place)); err != nil || !bytes.Equal(got, good) {
		t.Errorf("the copy has %d bytes (%v), want %d", len(got), err, len(good))
	}
	if got, err := os.ReadFile(filepath.Join(near, place+".bad")); err != nil || !bytes.Equal(got, bad) {
		t.Errorf("what was there is not set aside: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(alone, place)); err != nil || !bytes.Equal(got, bad) {
		t.Errorf("a file of the user's was touched: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(near, ".dumptriage-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// Symbols of another build are used only on demand, and then it is said.
func TestAllowMismatch(t *testing.T) {
	other := symFile(strings.Replace(appID, "2a", "2b", 1))
	dir := tree(t, map[string][]byte{"App.sym": other})
	for _, allow := range []bool{false, true} {
		s := NewPathStore(DirPath(dir), StoreOptions{AllowMismatch: allow})
		d, file, state := s.FindDebug(appIdentity, "")
		if (d != nil) != allow || (file != "") != allow || state != DebugMismatch {
			t.Errorf("allowed %v: %v, %q, state %d", allow, d, file, state)
		}
		if d != nil {
			if n, ok := d.Name(0x1001, 0x1001); !ok || n.Function != "ns::run" {
				t.Errorf("%+v", n)
			}
		}
		s.Close()
	}
	// The right build is taken where there is one.
	s := NewPathStore(DirPath(dir, tree(t, map[string][]byte{"App.sym": symFile(appID)})), StoreOptions{AllowMismatch: true})
	defer s.Close()
	if d, _, state := s.FindDebug(appIdentity, ""); d == nil || state != DebugLoaded {
		t.Errorf("%v, state %d", d, state)
	}
	// An image of another build never is: it would unwind wrongly.
	images := NewPathStore(DirPath(tree(t, map[string][]byte{"ntdll.dll": build("ntdll.dll", 1, wantSize)})), StoreOptions{AllowMismatch: true})
	defer images.Close()
	if im, _, _ := images.Find(wanted("ntdll.dll")); im != nil {
		t.Error("took an image of another build")
	}
}

func FuzzPointer(f *testing.F) {
	for _, s := range []string{"PATH:C:\\x", "MSG: no", "path:", "\x00", "https://h/x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if target, message := parsePointer(b); target != "" && message != "" || strings.ContainsAny(target, "\r\n\x00") {
			t.Fatalf("%q, %q", target, message)
		}
	})
}
