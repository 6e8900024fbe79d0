package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dumptriage/report"
)

// attack runs command lines on files that it breaks, in a folder of its own.
type attack struct {
	dir    string
	schema *jsonschema.Schema
	// large says that answers are long: the schema is not asked, and the bounds are
	// those of TestSharedBytes.
	large bool
}

func newAttack(t *testing.T) *attack {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(report.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return &attack{dir: t.TempDir(), schema: c.MustCompile("schema.json")}
}

func (a *attack) path(name string) string { return filepath.Join(a.dir, name) }

func (a *attack) write(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := a.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// verb runs one command line and holds it to the promise: one of the statuses for
// broken input, no panic behind it, JSON that meets the schema, and the bounds of
// time and memory. It returns the status and what was printed.
func (a *attack) verb(t *testing.T, size int, args ...string) (int, []byte) {
	t.Helper()
	var out, errs bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	status := run(args, &out, &errs)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	fail := func(format string, v ...any) {
		t.Helper()
		t.Errorf("%s: %s\n%s", strings.Join(args, " "), fmt.Sprintf(format, v...), errs.Bytes())
	}
	if status != 0 && status != 1 && status != 3 {
		fail("exit %d", status)
	}
	if strings.Contains(errs.String(), "goroutine ") || bytes.Contains(out.Bytes(), []byte(`"internal"`)) {
		fail("panic")
	}
	if status == 0 && out.Len() == 0 {
		fail("silence")
	}
	limit, used := mutationTime, (after.TotalAlloc-before.TotalAlloc)/2
	if a.large { // wall time of a busy machine, against what took minutes; and what was taken from the system
		limit, used = 10*mutationTime, (after.Sys-before.Sys)/2
	}
	if took > limit {
		fail("took %v", took)
	}
	if used > uint64(mutationMemory+2*size) {
		fail("took %d bytes of memory for %d", used, size)
	}
	for _, arg := range args {
		if arg != "--json" || a.large {
			continue
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
		if err != nil {
			fail("no JSON: %v", err)
		} else if err := a.schema.Validate(v); err != nil {
			fail("not by the schema: %v", err)
		}
	}
	return status, out.Bytes()
}

// verbs runs all verbs that judge, compare or rewrite a user dump.
func (a *attack) verbs(t *testing.T, size int, whole, broken, images string) {
	t.Helper()
	at := []string{"--images", images}
	a.verb(t, size, append(at, "triage", "--redact", broken)...)
	a.verb(t, size, append(at, "triage", "--json", "--explain-signature", broken)...)
	a.verb(t, size, append(at, "compare", "--json", whole, broken)...)
	a.verb(t, size, append(at, "compare", "--redact", broken, broken)...)
	a.scrubbed(t, size, broken, images)
}

// scrubbed scrubs a dump: what is written has the same frames.
func (a *attack) scrubbed(t *testing.T, size int, broken, images string) {
	t.Helper()
	out := a.path("scrubbed.dmp")
	_ = os.Remove(out)
	status, _ := a.verb(t, size, "scrub", "--images", images, broken, out)
	_, err := os.Stat(out)
	if (err == nil) != (status == 0) {
		t.Errorf("scrub ended with %d, and the file: %v", status, err)
	}
	if status != 0 {
		return
	}
	_, was := a.verb(t, size, "stacks", "--alone", "--json", "--images", images, broken)
	_, is := a.verb(t, size, "stacks", "--alone", "--json", "--images", images, out)
	if w, i := framesOf(t, was), framesOf(t, is); w != i {
		t.Errorf("scrubbed, its stacks are others:\n%s\n%s", w, i)
	}
}

// framesOf is what the JSON of stacks says of where threads stand.
func framesOf(t *testing.T, out []byte) string {
	t.Helper()
	type frame struct {
		IP      string  `json:"ip"`
		ChildSP string  `json:"child_sp"`
		Trust   string  `json:"trust"`
		Unwind  string  `json:"unwind"`
		Module  *string `json:"module"`
		Name    *string `json:"function"`
	}
	var doc struct {
		Threads []struct {
			ID      uint32  `json:"thread_id"`
			Frames  []frame `json:"frames"`
			Handler []frame `json:"handler_frames"`
			Wow64   []frame `json:"wow64_frames"`
		} `json:"threads"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Error(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// userSeeds lists the user dumps among the fixtures.
func userSeeds(t *testing.T) []string {
	t.Helper()
	var out []string
	root := filepath.Join("..", "..", "fixtures")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".dmp" {
			return err
		}
		if b, err := os.ReadFile(path); err == nil && bytes.HasPrefix(b, []byte("MDMP")) && len(b) < 700_000 {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 8 {
		t.Fatalf("only %d user dumps", len(out))
	}
	return out
}

// breakBytes returns bytes changed at a few places, now and then cut off.
func breakBytes(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(5) {
		mutate(rng, b)
	}
	if rng.IntN(8) == 0 {
		b = b[:rng.IntN(len(b))]
	}
	return b
}

// keepCrasher writes what a verb failed on to where it stays.
func keepCrasher(t *testing.T, b []byte) string {
	t.Helper()
	f, err := os.CreateTemp("", "crasher-*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestVerbsOnBrokenDumps changes user dumps and runs the verbs that are more than a
// walk of their threads.
func TestVerbsOnBrokenDumps(t *testing.T) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	a := newAttack(t)
	for k, seed := range userSeeds(t) {
		b, err := os.ReadFile(seed)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := filepath.Abs(seed)
		if err != nil {
			t.Fatal(err)
		}
		images := filepath.Join(filepath.Dir(whole), "images")
		if _, err := os.Stat(images); err != nil {
			images = filepath.Dir(whole)
		}
		t.Run(filepath.Base(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(k), 11))
			for range rounds {
				work := breakBytes(rng, b)
				a.verbs(t, len(b), whole, a.write(t, "broken.dmp", work), images)
				if t.Failed() {
					t.Fatal(keepCrasher(t, work))
				}
			}
		})
	}
}

// TestVerbsOnBrokenImages breaks the images and symbols that a dump is read with.
func TestVerbsOnBrokenImages(t *testing.T) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	fixture := func(name ...string) string {
		return filepath.Join(append([]string{"..", "..", "fixtures"}, name...)...)
	}
	cases := []struct{ dump, files string }{
		{fixture("crashes", "thrown.dmp"), fixture("crashes", "images", "*")},
		{fixture("crashes", "recursion.dmp"), fixture("crashes", "images", "*")},
		{fixture("crash", "crashdemo.dmp"), fixture("crash", "images", "*")},
		{fixture("crash", "legacy-x86.dmp"), fixture("crash", "images", "*")},
		{fixture("crash", "frameless-x86.dmp"), fixture("crash", "symbols", "*")},
		{fixture("crash", "mingw.dmp"), filepath.Join("..", "..", "symbols", "dwarf", "testdata", "clang-4.exe")},
		{fixture("jit", "jithost.dmp"), fixture("jit", "images", "*")},
		{fixture("locks", "lockdemo-small.dmp"), fixture("locks", "images", "*")},
		{fixture("readline", "ConsoleApp1.dmp"), fixture("readline", "images", "*")},
	}
	for k, c := range cases {
		t.Run(filepath.Base(c.dump), func(t *testing.T) {
			names, err := filepath.Glob(c.files)
			if err != nil || len(names) == 0 {
				t.Fatalf("no images: %v", err)
			}
			a := newAttack(t)
			whole := map[string][]byte{}
			size := 0
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				base := filepath.Base(name)
				whole[base] = b
				size += len(b)
				a.write(t, filepath.Join("images", base), b)
			}
			rng := rand.New(rand.NewPCG(uint64(k), 13))
			for range rounds {
				base := filepath.Base(names[rng.IntN(len(names))])
				work := breakBytes(rng, whole[base])
				a.write(t, filepath.Join("images", base), work)
				images := a.path("images")
				a.verb(t, size, "triage", "--json", "-i", images, "--symbols", images, "--allow-mismatch", c.dump)
				a.verb(t, size, "symbols", "list", "--json", "-i", images, c.dump)
				a.scrubbed(t, size, c.dump, images)
				if t.Failed() {
					t.Fatal(keepCrasher(t, work))
				}
				a.write(t, filepath.Join("images", base), whole[base])
			}
		})
	}
}
