package verdict

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/internal/input"
	"dumptriage/triage"
)

// One fault with every module loaded elsewhere, 14 times: a dump whose every
// address in a module is moved with it. Ids, blame and state stay.
func TestModulesLoadedElsewhere(t *testing.T) {
	for _, c := range []struct{ dump, images string }{
		{"crash/crashdemo.dmp", "crash/images"},
		{"crashes/thrown.dmp", "crashes/images"},
		{"crashes/recursion.dmp", "crashes/images"},
		{"crashes/abort.dmp", ""}, // found by scans
		{"jit/jithost.dmp", "jit/images"},
		{"locks/lockdemo.dmp", "locks/images"},
		{"locks/lockdemo-small.dmp", "locks/images"},
		{"locks/lockdemo-small.dmp", ""},
		{"readline/ConsoleApp1.dmp", "readline/images"},
	} {
		b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", filepath.FromSlash(c.dump)))
		if err != nil {
			t.Fatal(err)
		}
		inc, want := verdictOn(t, b, c.images)
		for n := range 14 {
			delta := uint64(n+1) * 0x2_4680_0000
			_, got := verdictOn(t, moved(b, inc.Modules, delta), c.images)
			if got.Kind != want.Kind || got.Hang.State != want.Hang.State {
				t.Errorf("%s, %#x below: %s, %s; want %s, %s", c.dump, delta, got.Kind, got.Hang.State, want.Kind, want.Hang.State)
			}
			if g, w := got.Signature, want.Signature; g.ID != w.ID || g.ExactID != w.ExactID || g.DepthIDs[0] != w.DepthIDs[0] || g.RTLSum == w.RTLSum {
				t.Errorf("%s, %#x below: %s %s %d\nwant %s %s, and not %d", c.dump, delta, g.Text, g.ExactID, g.RTLSum, w.Text, w.ExactID, w.RTLSum)
			}
			if want.Crash != nil && want.Crash.Blame != nil && (got.Crash.Blame == nil || got.Crash.Blame.Index != want.Crash.Blame.Index) {
				t.Errorf("%s, %#x below: blames %+v, want frame %d", c.dump, delta, got.Crash.Blame, want.Crash.Blame.Index)
			}
		}
	}
}

// moved is a dump with everything in its modules moved down by delta.
func moved(b []byte, modules []*triage.Module, delta uint64) []byte {
	out := bytes.Clone(b)
	for i := 0; i+8 <= len(b); i += 4 {
		va := binary.LittleEndian.Uint64(b[i:])
		for _, m := range modules {
			if !m.Kernel && m.Base > 1<<32 && va >= m.Base && va-m.Base <= m.Size {
				binary.LittleEndian.PutUint64(out[i:], va-delta)
				break
			}
		}
	}
	return out
}

func verdictOn(t *testing.T, b []byte, images string) (*triage.Incident, *Verdict) {
	t.Helper()
	f, err := input.New(bytes.NewReader(b), int64(len(b)), "moved.dmp", input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	var opt triage.Options
	if images != "" {
		opt.Images = []string{filepath.Join("..", "..", "fixtures", filepath.FromSlash(images))}
	}
	inc, err := triage.Analyze(d, nil, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inc.Close() })
	return inc, Of(inc, Options{})
}
