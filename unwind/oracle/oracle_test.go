package oracle

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
)

func TestMain(m *testing.M) {
	ChildMain()
	flag.Parse()
	os.Exit(m.Run())
}

// needEmulator skips tests of builds without it.
func needEmulator(t *testing.T) {
	t.Helper()
	if _, err := newMachine(dump.AMD64); errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestVectors(t *testing.T) {
	needEmulator(t)
	for _, path := range writeVectors(t, t.TempDir()) {
		r, err := Run(context.Background(), Job{Path: path, Limits: DefaultLimits})
		if err != nil {
			t.Fatal(err)
		}
		if r.Checks.Tried == 0 || r.Prologs == 0 || r.Epilogs == 0 || r.Checks.Wrong+r.Calls.Wrong != 0 || r.Checks.Lost != 0 {
			t.Errorf("%s: %+v", path, r)
		}
		t.Logf("%s: %d functions, %d boundaries, %d checks", path, r.Functions, r.Boundaries, r.Checks.Tried)
	}
}

func TestCompilers(t *testing.T) {
	needEmulator(t)
	sample := mutantSample(t, t.TempDir())
	for i := 0; i < len(sample); i += 2 {
		r, err := Run(context.Background(), Job{Path: sample[i+1], Stride: 16, Limits: Limits{Runs: 4, Steps: 2000}})
		if err != nil {
			t.Fatal(err)
		}
		// Go's assembler uses rbp for data in functions whose unwind data says
		// that it is the frame pointer; every other compiler keeps its word.
		wrong, allowed := r.Checks.Wrong+r.Calls.Wrong, 0
		if filepath.Base(sample[i+1]) == "go.exe" {
			allowed = r.Checks.Tried / 1000
		}
		if wrong > allowed || len(r.Aborted) != 0 {
			t.Errorf("%s: %+v", sample[i+1], r)
		}
	}
}
