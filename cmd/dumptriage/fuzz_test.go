package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/input"
	"dumptriage/report"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

// fuzzFileMost keeps the fuzzer from spending its time on copies.
const fuzzFileMost = 1 << 20

// openFuzzed opens bytes as a dump file; nil when they are none, which must be
// said by a *dump.Error.
func openFuzzed(t *testing.T, name string, b []byte) *triage.Dump {
	f, err := input.New(bytes.NewReader(b), int64(len(b)), name, input.Options{MaxSize: 8 << 20})
	if err != nil {
		wantTyped(t, err)
		return nil
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		f.Close()
		wantTyped(t, err)
		return nil
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func wantTyped(t *testing.T, err error) {
	var e *dump.Error
	if !errors.As(err, &e) || e.Code == "" || e.Code == dump.Internal || e.File == "" || e.Msg == "" {
		t.Fatalf("not an error that says what and where: %#v", err)
	}
}

// checkAnswer analyses one dump or a pair and holds the answer to what every
// reader of it relies on.
func checkAnswer(t *testing.T, user, kernel *triage.Dump) {
	inc, err := triage.Analyze(user, kernel, "given", triage.Options{HashLimit: 1})
	if err != nil {
		if user == nil || kernel == nil {
			t.Fatalf("a dump alone cannot mismatch: %v", err)
		}
		wantTyped(t, err)
		return
	}
	damaged := false
	for _, e := range inc.Errors {
		wantTyped(t, e)
		damaged = damaged || !e.Warning
	}
	var out bytes.Buffer
	defer inc.Close()
	opt := report.Options{Tool: tool(), Verdict: verdict.Of(inc, verdict.Options{})}
	if err := report.TriageText(io.Discard, inc, opt); err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(&out, inc, opt); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Status  string
		Threads []struct {
			FrameCount int `json:"frame_count"`
			Frames     []json.RawMessage
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	// ERROR says that nothing at all could be told, and so needs damage too.
	if ok := doc.Status == "OK"; ok == damaged || !ok && doc.Status != "PARTIAL" && (doc.Status != "ERROR" || len(doc.Threads) > 0) {
		t.Fatalf("status %q with %v", doc.Status, inc.Errors)
	}
	for i, th := range doc.Threads {
		if th.FrameCount != len(th.Frames) {
			t.Fatalf("thread %d: frame_count %d of %d frames", i, th.FrameCount, len(th.Frames))
		}
	}
	out.Reset()
	if err := report.Text(&out, inc, opt); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && unicode.IsControl(r) {
			t.Fatalf("the text has the control character %#x", r)
		}
	}
}

func addFuzzSeeds(f *testing.F, patterns ...string) {
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join("..", "..", "fixtures", filepath.FromSlash(pattern)))
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
}

// FuzzAnalyze takes any bytes the whole way, from opening to text and JSON.
func FuzzAnalyze(f *testing.F) {
	addFuzzSeeds(f, "*/*.dmp")
	h := &hostile{}
	h.add(7, system)
	h.add(3, threads(3, 8))
	h.add(4, modules)
	h.add(14, unloaded(3))
	h.add(12, handles(3))
	f.Add(h.bytes())
	// A header that claims 16 streams in a file that ends with it: no answer.
	f.Add(append([]byte("MDMP"), u32s(0xa793, 16, 32, 0, 0, 0, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > fuzzFileMost {
			t.Skip()
		}
		d := openFuzzed(t, "x.dmp", b)
		switch {
		case d == nil:
		case d.Kernel():
			checkAnswer(t, nil, d)
		default:
			checkAnswer(t, d, nil)
		}
	})
}

// TestSmallPairJoins keeps FuzzPair's seed worth its name.
func TestSmallPairJoins(t *testing.T) {
	u, k := fixtures.SmallPair()
	inc, err := triage.Analyze(openFuzzed(t, "x.dmp", u), openFuzzed(t, "x.Kernel.dmp", k), "given", triage.Options{HashLimit: 1})
	if err != nil || len(inc.Threads) != 1 || !inc.Threads[0].Stitched || len(inc.Errors) != 0 {
		t.Errorf("%v %+v", err, inc)
	}
}

// FuzzPair takes a user dump and a kernel dump the whole way.
func FuzzPair(f *testing.F) {
	user, kernel := fixtures.SmallPair()
	f.Add(user, kernel)
	f.Fuzz(func(t *testing.T, u, k []byte) {
		if len(u)+len(k) > fuzzFileMost {
			t.Skip()
		}
		user, kernel := openFuzzed(t, "x.dmp", u), openFuzzed(t, "x.Kernel.dmp", k)
		if user == nil || kernel == nil || user.Kernel() || !kernel.Kernel() {
			return
		}
		checkAnswer(t, user, kernel)
	})
}
