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
	return &attack{t.TempDir(), c.MustCompile("schema.json")}
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
	if took > mutationTime {
		fail("took %v", took)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(mutationMemory+20*size) {
		fail("allocated %d bytes for %d", used, size)
	}
	for _, arg := range args {
		if arg != "--json" {
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
	_, was := a.verb(t, size, "stacks", "--json", "--images", images, broken)
	_, is := a.verb(t, size, "stacks", "--json", "--images", images, out)
	if w, i := framesOf(t, was), framesOf(t, is); w != i {
		keep := filepath.Join(os.TempDir(), "scrub-differs.dmp")
		_ = os.Rename(broken, keep)
		t.Errorf("%s: scrubbed, its stacks are others:\n%s\n%s", keep, w, i)
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
	if dir := os.Getenv("ATTACK_SEEDS"); dir != "" {
		root = dir
	}
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

// TestVerbsOnBrokenDumps changes user dumps and runs the verbs that are more than a
// walk of their threads.
func TestVerbsOnBrokenDumps(t *testing.T) {
	rounds := 6
	if n := os.Getenv("ATTACK_ROUNDS"); n != "" {
		fmt.Sscan(n, &rounds)
	}
	a := newAttack(t)
	var round uint64
	fmt.Sscan(os.Getenv("ATTACK_SEED"), &round)
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
			rng := rand.New(rand.NewPCG(uint64(k), 11+round))
			for range rounds {
				work := bytes.Clone(b)
				for range 1 + rng.IntN(4) {
					mutate(rng, work)
				}
				if rng.IntN(8) == 0 {
					work = work[:rng.IntN(len(work))]
				}
				a.verbs(t, len(b), whole, a.write(t, "broken.dmp", work), images)
				if t.Failed() {
					name := filepath.Join(os.TempDir(), "scratch-attack", fmt.Sprintf("crasher-%s-%d", filepath.Base(seed), rng.Uint32()))
					_ = os.WriteFile(name, work, 0o600)
					t.Fatal(name)
				}
			}
		})
	}
}
