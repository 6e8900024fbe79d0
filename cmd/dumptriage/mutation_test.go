package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"dumptriage/internal/input"
	"dumptriage/report"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

// The promise for damaged input: an answer or an error, within this time and
// this much memory, whatever the bytes.
const (
	mutationTime   = 2 * time.Second
	mutationMemory = 64 << 20 // plus twice the file
)

// analyzeBytes runs the whole path over the bytes of one dump file, as stacks
// does, and throws the output away.
func analyzeBytes(t testing.TB, name string, b []byte) {
	f, err := input.New(bytes.NewReader(b), int64(len(b)), name, input.Options{})
	if err != nil {
		return
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		f.Close()
		return
	}
	defer d.Close()
	user, kernel := d, (*triage.Dump)(nil)
	if d.Kernel() {
		user, kernel = nil, d
	}
	inc, err := triage.Analyze(user, kernel, "given", triage.Options{HashLimit: 1})
	if err != nil {
		t.Fatalf("%s: a dump alone cannot mismatch: %v", name, err)
	}
	defer inc.Close()
	opt := report.Options{Tool: tool(), Verdict: verdict.Of(inc, verdict.Options{}), ExplainSignature: true}
	if err := report.TriageText(io.Discard, inc, opt); err != nil {
		t.Fatalf("%s: triage: %v", name, err)
	}
	if err := report.BriefJSON(io.Discard, inc, opt); err != nil {
		t.Fatalf("%s: brief: %v", name, err)
	}
	if err := report.JSON(io.Discard, inc, opt); err != nil {
		t.Fatalf("%s: JSON: %v", name, err)
	}
	if err := report.Text(io.Discard, inc, opt); err != nil {
		t.Fatalf("%s: text: %v", name, err)
	}
}

// bounded runs fn and fails when it takes longer or allocates more than is
// promised. The time is generous: it is there to catch what grows without end.
func bounded(t *testing.T, what string, size int, b []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	defer func() {
		if p := recover(); p != nil {
			name := filepath.Join(t.TempDir(), "crasher.dmp")
			_ = os.WriteFile(name, b, 0o600)
			t.Fatalf("%s: panic: %v", what, p)
		}
	}()
	analyzeBytes(t, what, b)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if took > mutationTime {
		t.Errorf("%s: took %v", what, took)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(mutationMemory+2*size) {
		t.Errorf("%s: allocated %d bytes for a file of %d", what, used, size)
	}
}

// mutationSeeds returns the dumps of the fixtures.
func mutationSeeds(t *testing.T) map[string][]byte {
	seeds := map[string][]byte{}
	for _, pattern := range []string{"*/*.dmp", "*.dmp"} {
		names, err := filepath.Glob(filepath.Join("..", "..", "fixtures", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			seeds[filepath.Base(name)] = b
		}
	}
	if len(seeds) < 2 {
		t.Fatalf("only %d dumps among the fixtures", len(seeds))
	}
	return seeds
}

// TestEveryPrefix cuts the fixtures at every length: all of the first bytes,
// where the headers are, and a sample with odd steps of the rest.
func TestEveryPrefix(t *testing.T) {
	dense, step := 2048, 211
	if testing.Short() {
		dense, step = 256, 4099
	}
	for name, b := range mutationSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; n < len(b); {
				bounded(t, name, n, b[:n])
				if n < dense {
					n++
				} else {
					n += step
				}
			}
		})
	}
}

// TestMutations changes the fixtures at random places, mostly in the parts that
// hold counts, sizes and offsets, and mostly to values at the edge of ranges.
func TestMutations(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 1_000
	}
	seeds := mutationSeeds(t)
	for name, b := range seeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(len(b)), 7))
			work := make([]byte, len(b))
			for range rounds / len(seeds) {
				copy(work, b)
				for range 1 + rng.IntN(4) {
					mutate(rng, work)
				}
				bounded(t, name, len(work), work)
			}
		})
	}
}

// edges are the values that break size and offset arithmetic.
var edges = [...]uint64{0, 1, 7, 0x7f, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0x7fffffffffffffff, ^uint64(0)}

func mutate(rng *rand.Rand, b []byte) {
	if len(b) == 0 {
		return
	}
	at := rng.IntN(len(b))
	if rng.IntN(2) == 0 {
		at = rng.IntN(min(len(b), 0x3000)) // headers, directories and lists
	}
	switch rng.IntN(4) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		b[at] = byte(rng.Uint32())
	default:
		v, width := edges[rng.IntN(len(edges))], 1<<rng.IntN(4)
		at &^= width - 1
		for i := 0; i < width && at+i < len(b); i++ {
			b[at+i] = byte(v >> (8 * i))
		}
	}
}
