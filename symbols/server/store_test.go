package server_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/symbols/server"
)

const (
	stamp = 0x5e8d3a1b
	size  = 0x6000
	key   = "5E8D3A1B6000"
	// The GUID and age that follow are how a PDB server and a Breakpad server name
	// the same debug identity.
	pdbKey   = "30BE4E48D1D84E3E961D1A7E3B6B1F1B2A"
	breakpad = "30BE4E48D1D84E3E961D1A7E3B6B1F1B2a"
)

var identity = dump.CodeView{Signature: "RSDS", GUID: [16]byte{0x48, 0x4e, 0xbe, 0x30, 0xd8, 0xd1, 0x3e, 0x4e, 0x96, 0x1d, 0x1a, 0x7e, 0x3b, 0x6b, 0x1f, 0x1b}, Age: 0x2a, PDB: `D:\build\App.pdb`}

func image(stamp uint32) []byte {
	im := &fixtures.Image{Name: "ntdll.dll", Base: 0x180000000, TimeDateStamp: stamp, SizeOfImage: size,
		Functions: []*fixtures.Function{{Name: "Entry", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))}}}
	return im.File()
}

func module(path string) *dump.Module {
	return &dump.Module{Base: 0x7ffe63870000, Size: size, TimeDateStamp: stamp, Path: path}
}

func symFile(id string) []byte {
	return []byte("MODULE windows x86 " + id + " App.pdb\nFUNC 1000 40 0 run\n1000 20 5 1\n")
}

// site is a server of files by path; it counts what it was asked for.
type site struct {
	files map[string][]byte
	mu    sync.Mutex
	asked []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	s.mu.Unlock()
	b, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Write(b)
}

func newStore(t *testing.T, cache, url string) *symbols.Store {
	t.Helper()
	p, err := symbols.ParsePath("srv*" + cache + "*" + url)
	if err != nil {
		t.Fatal(err)
	}
	s := symbols.NewPathStore(p, symbols.StoreOptions{Fetcher: server.New(server.Options{Backoff: time.Millisecond, Stall: time.Second})})
	t.Cleanup(func() { s.Close() })
	return s
}

func start(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// listing returns the files below a directory.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An image comes once over the network, then from the cache.
func TestImageFromServer(t *testing.T) {
	host := &site{files: map[string][]byte{"/sym/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	url, cache := start(t, host), filepath.Join(t.TempDir(), "new", "cache")
	for range 2 {
		im, file, miss := newStore(t, cache, url+"/sym/").Find(module(`C:\Windows\System32\ntdll.dll`))
		if im == nil || file != filepath.Join(cache, "ntdll.dll", key, "ntdll.dll") {
			t.Fatalf("%q, %+v", file, miss)
		}
	}
	if len(host.asked) != 1 {
		t.Errorf("asked for %q", host.asked)
	}
	if got := listing(t, cache); len(got) != 1 {
		t.Errorf("the cache holds %q", got)
	}
}

func TestDebugFromServer(t *testing.T) {
	host := &site{files: map[string][]byte{"/App.pdb/" + breakpad + "/App.sym": symFile(breakpad)}}
	cache := t.TempDir()
	d, file, state := newStore(t, cache, start(t, host)).FindDebug(identity, "")
	if d == nil || state != symbols.DebugLoaded || file != filepath.Join(cache, "App.pdb", breakpad, "App.sym") {
		t.Fatalf("%q, state %d", file, state)
	}
	want := []string{"/App.pdb/" + pdbKey + "/App.pdb", "/App.pdb/" + pdbKey + "/App.pd_", "/App.pdb/" + pdbKey + "/file.ptr", "/App.pdb/" + breakpad + "/App.sym"}
	if !slices.Equal(host.asked, want) {
		t.Errorf("asked for %q", host.asked)
	}
}

// A Breakpad file on disk does not keep the servers from being asked for the PDB,
// which says more; one in their own cache does, since it came for want of a PDB.
func TestPDBFromServerBeforeSymOnDisk(t *testing.T) {
	b, err := os.ReadFile("../pdb/testdata/inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pdb.Open(bytes.NewReader(b), int64(len(b)), "")
	if err != nil {
		t.Fatal(err)
	}
	cv := dump.CodeView{Signature: "RSDS", GUID: p.Info().GUID, Age: p.Info().Age, PDB: "inline-x64.pdb"}
	symText := []byte("MODULE windows x86_64 " + cv.DebugID() + " inline-x64.pdb\n")
	place := "/inline-x64.pdb/" + symbols.PDBKey(cv) + "/inline-x64.pdb"
	for _, tc := range []struct {
		name   string
		server map[string][]byte
		cached bool
		want   string
		asked  int
	}{
		{"the server has the PDB", map[string][]byte{place: b}, false, "inline-x64.pdb", 1},
		{"the server has nothing", nil, false, "inline-x64.sym", 3},
		{"in the cache", nil, true, "inline-x64.sym", 0},
	} {
		host, cache, dir := &site{files: tc.server}, t.TempDir(), t.TempDir()
		at := dir
		if tc.cached {
			at = filepath.Join(cache, "inline-x64.pdb", cv.DebugID())
		}
		if err := os.MkdirAll(at, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "inline-x64.sym"), symText, 0o666); err != nil {
			t.Fatal(err)
		}
		path, err := symbols.ParsePath(dir + ";srv*" + cache + "*" + start(t, host))
		if err != nil {
			t.Fatal(err)
		}
		s := symbols.NewPathStore(path, symbols.StoreOptions{Fetcher: server.New(server.Options{})})
		d, file, _ := s.FindDebug(cv, "")
		if d == nil || filepath.Base(file) != tc.want || len(host.asked) != tc.asked {
			t.Errorf("%s: %q, asked for %q", tc.name, file, host.asked)
		}
		s.Close()
	}
}

// Of a download that a process left behind when it was killed the part is
// removed, when it is old; a young one may be another process's.
func TestStaleParts(t *testing.T) {
	host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	cache := t.TempDir()
	for name, age := range map[string]time.Duration{".dumptriage-1.part": 25 * time.Hour, ".dumptriage-2.part": time.Hour, "other.part": 999 * time.Hour} {
		path := filepath.Join(cache, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	newStore(t, cache, start(t, host)).Find(module("ntdll.dll"))
	if got, want := listing(t, cache), []string{".dumptriage-2.part", "ntdll.dll/" + key + "/ntdll.dll", "other.part"}; !slices.Equal(got, want) {
		t.Errorf("the cache holds %q, want %q", got, want)
	}
}

// A pointer is followed to a server, and nowhere else.
func TestPointerFromServer(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "ntdll.dll")
	if err := os.WriteFile(secret, image(stamp), 0o666); err != nil {
		t.Fatal(err)
	}
	host := &site{files: map[string][]byte{"/moved/away": image(stamp)}}
	url := start(t, host)
	pointer := "/ntdll.dll/" + key + "/file.ptr"
	for target, ok := range map[string]bool{"PATH:" + url + "/moved/away": true, "PATH:" + secret: false, "PATH:" + `\\attacker\share\x`: false, "MSG:none": false, "": false, "PATH:file://" + secret: false} {
		host.files[pointer] = []byte(target)
		im, _, miss := newStore(t, t.TempDir(), url).Find(module("ntdll.dll"))
		if (im != nil) != ok {
			t.Errorf("%q: found %v, %+v", target, im != nil, miss)
		}
		if !ok && (len(miss.Tried) != 2 || !strings.Contains(miss.Tried[1], "file.ptr") && !strings.Contains(miss.Tried[1], `"none"`)) && target != "" {
			t.Errorf("%q: tried %q", target, miss.Tried)
		}
	}
}

// Whatever a poisoned server sends, nothing of it is used and nothing kept.
func TestPoisonedServer(t *testing.T) {
	good := image(stamp)
	for name, answer := range map[string][]byte{
		"another build":     image(stamp + 1),
		"a page":            []byte("<html>Please log in</html>"),
		"nothing":           nil,
		"the first half":    good[:0x180],
		"a broken cabinet":  []byte("MSCF\x00\x00\x00\x00"),
		"a cabinet's magic": append([]byte("MSCF"), make([]byte, 4096)...),
		"a broken gzip":     []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"),
		"headers alone":     []byte("MZ"),
	} {
		host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": answer}}
		cache := t.TempDir()
		im, _, miss := newStore(t, cache, start(t, host)).Find(module("ntdll.dll"))
		if im != nil {
			t.Errorf("%s was used", name)
			continue
		}
		if got := listing(t, cache); len(got) != 0 {
			t.Errorf("%s: the cache holds %q", name, got)
		}
		if len(miss.Tried) != 2 || !strings.Contains(miss.Tried[1], " (") {
			t.Errorf("%s: tried %q", name, miss.Tried)
		}
	}
	host := &site{files: map[string][]byte{"/App.pdb/" + breakpad + "/App.sym": symFile(strings.Replace(breakpad, "30BE", "30BF", 1))}}
	cache := t.TempDir()
	if d, _, state := newStore(t, cache, start(t, host)).FindDebug(identity, ""); d != nil || state == symbols.DebugLoaded || len(listing(t, cache)) != 0 {
		t.Errorf("took symbols of another build: state %d, %q", state, listing(t, cache))
	}
	other, err := os.ReadFile("../pdb/testdata/inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range [][]byte{other, other[:len(other)/2], other[:4096]} {
		host := &site{files: map[string][]byte{"/App.pdb/" + pdbKey + "/App.pdb": answer}}
		cache := t.TempDir()
		if d, _, _ := newStore(t, cache, start(t, host)).FindDebug(identity, ""); d != nil || len(listing(t, cache)) != 0 {
			t.Errorf("took %d bytes of another GUID's PDB: %q", len(answer), listing(t, cache))
		}
	}
}

// Names of a dump that mean another place are not asked for and not written.
func TestHostileNames(t *testing.T) {
	var asked atomic.Int32
	url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.Contains(r.URL.Path, ".sym") {
			w.Write(symFile(breakpad))
		} else {
			w.Write(image(stamp))
		}
	}))
	parent := t.TempDir()
	cache := filepath.Join(parent, "cache")
	for _, name := range []string{"..", ".", "a:b.dll", "CON", "nul.dll", "COM1.pdb", "x.dll.", "x.dll ", "a\x00.dll", "a\n.dll", "C:evil.dll", "file.ptr", "a|b"} {
		s := newStore(t, cache, url)
		m := module(`C:\x\` + name)
		if im, file, miss := s.Find(m); im != nil || !strings.Contains(strings.Join(miss.Tried, "\n"), "not asked") {
			t.Errorf("%q: image at %q, %+v", name, file, miss)
		}
		cv := identity
		cv.PDB = name
		if d, file, _ := s.FindDebug(cv, ""); d != nil {
			t.Errorf("%q: symbols at %q", name, file)
		}
	}
	if asked.Load() != 0 || len(listing(t, parent)) != 0 {
		t.Errorf("asked %d times, wrote %q", asked.Load(), listing(t, parent))
	}
}

// A link in the cache that leads out of it is not written through.
func TestLinkInCache(t *testing.T) {
	cache, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(cache, "ntdll.dll")); err != nil {
		t.Skip(err)
	}
	host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	if im, file, _ := newStore(t, cache, start(t, host)).Find(module("ntdll.dll")); im != nil || len(listing(t, outside)) != 0 {
		t.Errorf("%q, outside: %q", file, listing(t, outside))
	}
}

// A file of the cache that was spoilt is set aside and fetched again.
func TestSpoiltCache(t *testing.T) {
	host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	cache := t.TempDir()
	place := filepath.Join(cache, "ntdll.dll", key, "ntdll.dll")
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, image(stamp)[:0x100], 0o666); err != nil {
		t.Fatal(err)
	}
	if im, file, miss := newStore(t, cache, start(t, host)).Find(module("ntdll.dll")); im == nil || file != place {
		t.Fatalf("%q, %+v", file, miss)
	}
	if got, err := os.ReadFile(place); err != nil || !bytes.Equal(got, image(stamp)) {
		t.Errorf("the cache has %d bytes, %v", len(got), err)
	}
	if fi, err := os.Stat(place + ".bad"); err != nil || fi.Size() != 0x100 {
		t.Errorf("%v, %v", fi, err)
	}
}

// No server is asked without a client.
func TestOffline(t *testing.T) {
	host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	p, err := symbols.ParsePath("srv*" + t.TempDir() + "*" + start(t, host))
	if err != nil {
		t.Fatal(err)
	}
	s := symbols.NewPathStore(p, symbols.StoreOptions{})
	defer s.Close()
	if im, _, _ := s.Find(module("ntdll.dll")); im != nil || len(host.asked) != 0 {
		t.Errorf("asked for %q", host.asked)
	}
}

// childEnv makes the test binary one of many processes on one cache.
const childEnv = "DUMPTRIAGE_TEST_CACHE"

func TestMain(m *testing.M) {
	cache, url, ok := strings.Cut(os.Getenv(childEnv), "|")
	if !ok {
		os.Exit(m.Run())
	}
	p, err := symbols.ParsePath("srv*" + cache + "*" + url)
	if err == nil {
		s := symbols.NewPathStore(p, symbols.StoreOptions{Fetcher: server.New(server.Options{})})
		if im, _, miss := s.Find(module("ntdll.dll")); im == nil {
			err = fmt.Errorf("%+v", miss)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Many processes fill one cache at once: each gets the whole file, and nothing
// else is left.
func TestProcesses(t *testing.T) {
	const n = 6
	var arrived sync.WaitGroup // all ask before any is answered
	arrived.Add(n)
	host := &site{files: map[string][]byte{"/ntdll.dll/" + key + "/ntdll.dll": image(stamp)}}
	url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		host.ServeHTTP(w, r)
	}))
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+cache+"|"+url)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if got := listing(t, cache); !slices.Equal(got, []string{"ntdll.dll/" + key + "/ntdll.dll"}) {
		t.Errorf("the cache holds %q", got)
	}
}
