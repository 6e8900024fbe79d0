package input

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
)

// payload begins like a minidump and goes on so that any misplaced byte shows.
func payload(size int) []byte {
	b := []byte("MDMP\x93\xa7")
	for i := 0; len(b) < size; i++ {
		b = append(b, byte(i), byte(i>>8), byte(i>>16), byte(i*7))
	}
	return b[:size]
}

func write(tb testing.TB, name string, b []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func mustOpen(tb testing.TB, path string, opt Options) *File {
	tb.Helper()
	f, err := Open(path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

func content(tb testing.TB, f *File) []byte {
	tb.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func codeOf(err error) dump.Code {
	var e *dump.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func gzipped(tb testing.TB, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func zstded(tb testing.TB, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

type zipEntry struct {
	name   string
	data   []byte
	method uint16
}

func zipped(tb testing.TB, entries ...zipEntry) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zipZstd, zstd.ZipCompressor())
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := f.Write(e.data); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// TestForms opens the same data in every form; the name never tells the form.
// The larger size goes through a temporary file.
func TestForms(t *testing.T) {
	for _, size := range []int{1000, inMemory + 4099} {
		want := payload(size)
		for _, form := range []struct {
			name, container, member string
			bytes                   []byte
		}{
			{"plain", "", "", want},
			{"gzip", "gzip", "", gzipped(t, want)},
			{"two gzip members", "gzip", "", append(gzipped(t, want[:500]), gzipped(t, want[500:])...)},
			{"zstd", "zstd", "", zstded(t, want)},
			{"zstd after a skippable frame", "zstd", "", append([]byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), zstded(t, want)...)},
			{"zip", "zip", "a/b.dmp", zipped(t, zipEntry{"a/", nil, zip.Store}, zipEntry{"a/b.dmp", want, zip.Deflate})},
			{"zip with zstd", "zip", "b", zipped(t, zipEntry{"b", want, zipZstd})},
		} {
			t.Run(form.name, func(t *testing.T) {
				dir := t.TempDir()
				f := mustOpen(t, write(t, "x.zip", form.bytes), Options{TempDir: dir})
				if f.Container() != form.container || f.Member() != form.member || f.Size() != int64(size) {
					t.Errorf("container %q, member %q, size %d", f.Container(), f.Member(), f.Size())
				}
				if !bytes.Equal(content(t, f), want) {
					t.Error("content differs")
				}
				if len(f.Damage()) != 0 {
					t.Errorf("damage: %v", f.Damage())
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				if left, _ := os.ReadDir(dir); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
				if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		}
	}
}

// TestToolFixtures opens what other tools made of the eleven bytes "MDMP made\n"
// plus NUL: gzip 1.12, zstd 1.5.4, Info-ZIP 3.0.
func TestToolFixtures(t *testing.T) {
	const want = "MDMP made\n\x00"
	for name, b := range map[string]string{
		"gzip": "1f8b0800000000000003f375f10d50c84d4c49e5620000b8afc3440b000000", "zstd": "28b52ffd240b5900004d444d50206d6164650a00dfb118e8", "zip": "504b03040a0000000000c122815db8afc3440b0000000b00000001000000784d444d50206d6164650a00504b01021e030a0000000000c122815db8afc3440b0000000b000000010000000000000000000000a4810000000078504b050600000000010001002f0000002a0000000000",
	} {
		f := mustOpen(t, write(t, "x", unhex(t, b)), Options{})
		if got := string(content(t, f)); got != want || f.Container() != name {
			t.Errorf("%s: %q in %q", name, got, f.Container())
		}
	}
}

// TestReadAt checks the rules of io.ReaderAt at the edges, for each way of
// reading.
func TestReadAt(t *testing.T) {
	want := payload(3 * mappedMost)
	path := write(t, "x", want)
	unmapped := mustOpen(t, path, Options{})
	if d, ok := unmapped.raw.(*disk); ok && d.mapped != nil {
		if err := d.mapped.Unmap(); err != nil {
			t.Fatal(err)
		}
		d.mapped = nil
	}
	own, err := New(bytes.NewReader(want), int64(len(want)), "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*File{
		"mapped": mustOpen(t, path, Options{}), "unmapped": unmapped, "memory": mustOpen(t, write(t, "y", gzipped(t, want)), Options{}), "reader": own,
	} {
		size := int64(len(want))
		for _, c := range []struct {
			off  int64
			n    int
			got  int
			fail error
		}{
			{0, 8, 8, nil}, {4090, 20, 20, nil}, {size - 8, 8, 8, nil}, {size - 8, 9, 8, io.EOF}, {size, 1, 0, io.EOF},
			{1, mappedMost + 1, mappedMost + 1, nil}, {size - 10, mappedMost + 1, 10, io.EOF}, {1 << 40, 8, 0, io.EOF},
		} {
			p := make([]byte, c.n)
			n, err := f.ReadAt(p, c.off)
			if n != c.got || !errors.Is(err, c.fail) || c.fail == nil && err != nil {
				t.Errorf("%s: %d bytes at %d: got %d, %v; want %d, %v", name, c.n, c.off, n, err, c.got, c.fail)
			}
			if n > 0 && !bytes.Equal(p[:n], want[c.off:c.off+int64(n)]) {
				t.Errorf("%s: wrong bytes at %d", name, c.off)
			}
		}
		if _, err := f.ReadAt(make([]byte, 8), -1); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: at -1: %v", name, err)
		}
	}
}

// TestCutShort cuts a file short after it was opened: touching the mapping then
// raises a fault, which must come back as an error, and the next read go on.
func TestCutShort(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let a mapped file be cut short")
	}
	want := payload(1 << 20)
	path := write(t, "x", want)
	f := mustOpen(t, path, Options{})
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{8, 2 * mappedMost} { // by the mapping, by a system call
		n, err := f.ReadAt(make([]byte, size), 512<<10)
		var e *dump.Error
		if n != 0 || !errors.As(err, &e) || e.Code != dump.IO || e.Offset != 512<<10 || e.File != path {
			t.Errorf("%d bytes: got %d, %v", size, n, err)
		}
	}
	p := make([]byte, 8)
	if _, err := f.ReadAt(p, 0); err != nil || !bytes.Equal(p, want[:8]) {
		t.Errorf("what is left: % x, %v", p, err)
	}
	if _, ok := f.SHA256(0); ok {
		t.Error("a hash of half a file")
	}
}

// TestSparse opens a file of 2 GB that has no data and reads its end.
func TestSparse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not sparse unless asked")
	}
	path := write(t, "x", nil)
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip(err)
	}
	before := resident(t)
	f := mustOpen(t, path, Options{})
	p := make([]byte, 8)
	if _, err := f.ReadAt(p, f.Size()-8); err != nil || !bytes.Equal(p, make([]byte, 8)) {
		t.Errorf("% x, %v", p, err)
	}
	big := make([]byte, 1<<20)
	for off := int64(0); off < 512<<20; off += int64(len(big)) { // a scan in large reads
		if _, err := f.ReadAt(big, off); err != nil {
			t.Fatal(err)
		}
	}
	if grown := resident(t) - before; grown > 32<<20 {
		t.Errorf("resident memory grew by %d MB", grown>>20)
	}
}

// resident returns the process's resident memory in bytes, 0 where it cannot
// be told.
func resident(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Rss:" {
			var kb int64
			for _, ch := range f[1] {
				kb = kb*10 + int64(ch-'0')
			}
			return kb << 10
		}
	}
	return 0
}

func TestHash(t *testing.T) {
	// FIPS 180-2 B.1: the hash of "abc".
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	f := mustOpen(t, write(t, "x", []byte("abc")), Options{})
	if got, ok := f.SHA256(0); !ok || got != want {
		t.Errorf("%s, %v", got, ok)
	}
	if _, ok := f.SHA256(2); ok {
		t.Error("hashed beyond the limit")
	}
	if got, ok := f.SHA256(3); !ok || got != want {
		t.Errorf("at the limit: %s, %v", got, ok)
	}
	packed := gzipped(t, payload(500))
	f = mustOpen(t, write(t, "x", packed), Options{})
	same := mustOpen(t, write(t, "y", append([]byte{}, packed...)), Options{})
	a, _ := f.SHA256(0)
	if b, _ := same.SHA256(int64(len(packed))); a != b || a == "" { // the limit is of the packed size
		t.Errorf("%s, %s", a, b)
	}
}

func TestStdin(t *testing.T) {
	before := os.Stdin
	defer func() { os.Stdin = before }()
	want := payload(100000)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdin = r
	go func() {
		w.Write(gzipped(t, want))
		w.Close()
	}()
	f := mustOpen(t, "-", Options{})
	if f.Name() != "-" || f.Container() != "gzip" || !bytes.Equal(content(t, f), want) {
		t.Errorf("from a pipe: %q, %q", f.Name(), f.Container())
	}
	if os.Stdin, err = os.Open(write(t, "x", want)); err != nil {
		t.Fatal(err)
	}
	if f = mustOpen(t, "-", Options{MaxSize: 10}); !bytes.Equal(content(t, f), want) { // a plain file, which the limit is not for
		t.Error("from a file: differs")
	}
	f.Close()
	if _, err := os.Stdin.Stat(); err != nil {
		t.Errorf("standard input was closed: %v", err)
	}
	os.Stdin.Close()
}

// TestLimit holds unpacking to the limit, also where the file lies about it.
func TestLimit(t *testing.T) {
	big := make([]byte, 3<<20)
	copy(big, "MDMP")
	lying := zipped(t, zipEntry{"x", big, zip.Deflate})
	// The uncompressed size in the central directory, 24 bytes after its
	// signature (APPNOTE.TXT 4.3.12), says 100.
	at := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	copy(lying[at+24:], []byte{100, 0, 0, 0})
	for _, c := range []struct {
		name  string
		bytes []byte
		code  dump.Code
	}{
		{"gzip", gzipped(t, big), dump.Limit},
		{"zstd", zstded(t, big), dump.Limit},
		{"zip", zipped(t, zipEntry{"x", big, zip.Deflate}), dump.Limit},
		{"lying zip", lying, dump.BadRecord}, // more comes out than the directory says
	} {
		if _, err := Open(write(t, "x", c.bytes), Options{MaxSize: 1 << 20}); codeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	f := mustOpen(t, write(t, "x", gzipped(t, big)), Options{MaxSize: int64(len(big))})
	if f.Size() != int64(len(big)) {
		t.Errorf("at the limit: %d", f.Size())
	}
}

// TestBomb unpacks 256 MB of zeros from 256 KB into a limit of 64 MB.
func TestBomb(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range 256 {
		w.Write(zeros)
	}
	w.Close()
	path := write(t, "x", packed.Bytes())
	dir := t.TempDir()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(path, Options{MaxSize: 64 << 20, TempDir: dir})
	runtime.ReadMemStats(&after)
	if codeOf(err) != dump.Limit {
		t.Errorf("%v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
		t.Errorf("allocated %d MB", used>>20)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDamaged keeps what came out before the damage, and says so.
func TestDamaged(t *testing.T) {
	noise := make([]byte, 300000)
	rand.Read(noise)
	copy(noise, "MDMP")
	z, g := zstded(t, noise), gzipped(t, noise)
	flipped := slices.Clone(g)
	flipped[len(flipped)-6] ^= 1 // in the CRC
	zipEnd := zipped(t, zipEntry{"x", noise, zip.Deflate})
	zipFlipped := slices.Clone(zipEnd)
	zipFlipped[200000] ^= 0x10
	for _, c := range []struct {
		name  string
		bytes []byte
		code  dump.Code
	}{
		{"gzip cut", g[:len(g)/2], dump.Truncated},
		{"gzip checksum", flipped, dump.BadRecord},
		{"zstd cut", z[:len(z)/2], dump.Truncated},
		{"zip changed", zipFlipped, dump.BadRecord},
	} {
		f := mustOpen(t, write(t, "x", c.bytes), Options{})
		if len(f.Damage()) != 1 || f.Damage()[0].Code != c.code || f.Damage()[0].File != f.Name() {
			t.Errorf("%s: %v", c.name, f.Damage())
		}
		if got := content(t, f); len(got) < 100000 || !bytes.Equal(got[:100000], noise[:100000]) {
			t.Errorf("%s: %d bytes", c.name, len(got))
		}
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		code  dump.Code
		words string
	}{
		{"gzip header only", g[:5], dump.Truncated, "end early"},
		{"zstd header only", z[:5], dump.Truncated, "end early"},
		{"zip cut", zipEnd[:len(zipEnd)/2], dump.Truncated, "cut short"},
		{"cab cut", []byte("MSCF1234"), dump.Truncated, "CFHEADER"},
		// Frame header (RFC 8878 3.1.1.1): no single segment, window descriptor
		// exponent 20 of 2^(10+20) bytes.
		{"zstd with a window of 1 GB", []byte("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00"), dump.Limit, "window"},
	} {
		_, err := Open(write(t, "x", c.bytes), Options{})
		if codeOf(err) != c.code || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v (%s)", c.name, err, codeOf(err))
		}
	}
}

func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none.dmp"), Options{})
	if codeOf(err) != dump.IO || !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none.dmp") != 1 {
		t.Errorf("missing: %v", err)
	}
	if _, err = Open(dir, Options{}); codeOf(err) != dump.IO || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	f := mustOpen(t, write(t, "empty", nil), Options{})
	if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || err != io.EOF || f.Size() != 0 {
		t.Errorf("empty: %d, %v", n, err)
	}
}

// TestUnmapped reads the same bytes and errors by system calls.
func TestUnmapped(t *testing.T) {
	b := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	path := filepath.Join(t.TempDir(), "plain.bin")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, off := range []int64{-1, 0, 7, 15990, 16000, 1 << 40} {
		var got, want [20]byte
		n, err := f.Unmapped().ReadAt(got[:], off)
		wantN, wantErr := f.ReadAt(want[:], off)
		if n != wantN || got != want || (err == nil) != (wantErr == nil) || errors.Is(err, io.EOF) != errors.Is(wantErr, io.EOF) {
			t.Errorf("at %d: %d, %v; want %d, %v", off, n, err, wantN, wantErr)
		}
	}
}
