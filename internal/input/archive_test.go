package input

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestChoice(t *testing.T) {
	dmp, kernel := payload(100), append([]byte("PAGEDU64"), payload(100)...)
	readme := zipEntry{"readme.txt", []byte("Please look"), zip.Deflate}
	several := zipped(t, readme, zipEntry{"short", []byte("MD"), zip.Store}, zipEntry{"app.Kernel.dmp", kernel, zip.Deflate}, zipEntry{"app.dmp", dmp, zip.Store})
	f := mustOpen(t, write(t, "x", several), Options{})
	if f.Member() != "app.Kernel.dmp" || !slices.Equal(f.Candidates(), []string{"app.Kernel.dmp", "app.dmp"}) {
		t.Errorf("chose %q of %q", f.Member(), f.Candidates())
	}
	if want := []string{"readme.txt", "short", "app.Kernel.dmp", "app.dmp"}; !slices.Equal(f.Members(), want) {
		t.Errorf("members %q", f.Members())
	}
	f = mustOpen(t, write(t, "x", several), Options{Want: func(name string) bool { return strings.HasSuffix(name, "me.txt") }})
	if f.Member() != "readme.txt" || string(content(t, f)) != "Please look" {
		t.Errorf("wanted: %q", f.Member())
	}
	var many []zipEntry
	for i := range 13 {
		many = append(many, zipEntry{fmt.Sprintf("f%d", i), nil, zip.Store})
	}
	secret := zipped(t, zipEntry{"secret.dmp", dmp, zip.Store})
	for _, signature := range []string{"PK\x01\x02", "PK\x03\x04"} {
		at := bytes.LastIndex(secret, []byte(signature))
		secret[at+map[byte]int{1: 8, 3: 6}[signature[2]]] |= 1 // flags: encrypted
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		opt   Options
		words []string
	}{
		{"no dump", zipped(t, readme), Options{}, []string{"no file that is a dump", `"readme.txt"`}},
		{"no such name", several, Options{Want: func(string) bool { return false }}, []string{"name that is looked for"}},
		{"many", zipped(t, many...), Options{}, []string{`"f9"`, "and 3 more"}},
		{"empty", zipped(t), Options{}, []string{"empty archive"}},
		{"nested", zipped(t, zipEntry{"a.dmp.zst", zstded(t, dmp), zip.Store}), Options{}, []string{"a.dmp.zst", "zstd", "only one level"}},
		{"nested, wanted", zipped(t, zipEntry{"a.dmp.zst", zstded(t, dmp), zip.Store}), Options{Want: func(string) bool { return true }}, []string{"a.dmp.zst", "zstd", "only one level"}},
		{"twice", gzipped(t, gzipped(t, dmp)), Options{}, []string{"gzip", "only one level"}},
		{"tar.gz", gzipped(t, append(make([]byte, 257), "ustar\x0000"...)), Options{}, []string{"tar"}},
		{"encrypted", secret, Options{}, []string{"secret.dmp", "encrypted"}},
		{"7z", []byte("7z\xbc\xaf\x27\x1c......"), Options{}, []string{"7z", "not supported"}},
		{"xz", []byte("\xfd7zXZ\x00......"), Options{}, []string{"xz", "not supported"}},
	} {
		_, err := Open(write(t, "x.zip", c.bytes), c.opt)
		if codeOf(err) != dump.UnsupportedFormat {
			t.Errorf("%s: %v (%s)", c.name, err, codeOf(err))
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v lacks %q", c.name, err, w)
			}
		}
	}
}

// TestCabinet reads the cabinet of package cab's tests: its second file is the
// one that begins like a dump.
func TestCabinet(t *testing.T) {
	path := filepath.Join("..", "cab", "testdata", "gcab-mszip.cab")
	f := mustOpen(t, path, Options{})
	if f.Container() != "cab" || f.Member() != "second.dmp" || string(content(t, f)) != "MDMP not really\n" {
		t.Errorf("%q %q %q", f.Container(), f.Member(), content(t, f))
	}
	f = mustOpen(t, path, Options{Want: func(name string) bool { return name == "numbers.txt" }})
	if f.Size() != 108894 { // seq 1 20000 | wc -c
		t.Errorf("%q has %d bytes", f.Member(), f.Size())
	}
	if _, err := Open(path, Options{MaxSize: 100000, Want: func(string) bool { return true }}); codeOf(err) != dump.Limit {
		t.Errorf("limit: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1 // in the last of four blocks, which holds the end of the first file
	f = mustOpen(t, write(t, "x", b), Options{Want: func(name string) bool { return name == "numbers.txt" }})
	if f.Size() != 3*32768 || len(f.Damage()) != 1 || f.Damage()[0].Code != dump.BadRecord {
		t.Errorf("damaged: %d bytes, %v", f.Size(), f.Damage())
	}
}

// FuzzOpen holds opening to its promises on any bytes: no panic, a *dump.Error
// or content within the limit that can be read.
func FuzzOpen(f *testing.F) {
	data := payload(3000)
	f.Add(data)
	f.Add(gzipped(f, data))
	f.Add(zstded(f, data))
	f.Add(zipped(f, zipEntry{"a", []byte("no"), zip.Store}, zipEntry{"b.dmp", data, zip.Deflate}, zipEntry{"c", data, zipZstd}))
	if b, err := os.ReadFile(filepath.Join("..", "cab", "testdata", "gcab-mszip.cab")); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 18
		in, err := New(bytes.NewReader(b), int64(len(b)), "x", Options{MaxSize: limit})
		if err != nil {
			if codeOf(err) == "" || codeOf(err) == dump.Internal {
				t.Fatalf("%v", err)
			}
			return
		}
		if in.Container() != "" && in.Size() > limit {
			t.Fatalf("%d bytes", in.Size())
		}
		if got := content(t, in); int64(len(got)) != in.Size() {
			t.Fatalf("%d bytes of %d", len(got), in.Size())
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
