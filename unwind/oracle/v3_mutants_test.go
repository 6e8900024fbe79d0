//go:build oracle

package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures"
)

// mutantsV3 are faults in what is done with version 3 unwind information.
var mutantsV3 = []mutant{
	{"version 3 epilogs are not seen", "unwind/amd64_v3.go", "e, at := epilogAt(info.V3, rf, rva)", "e, at := epilogAt(info.V3, rf, rva)\n\te = nil"},
	{"an epilog's last instruction is not in it", "unwind/amd64_v3.go", "rva-start <= uint32(e.Last)", "rva-start < uint32(e.Last)"},
	{"an epilog's operation counts before its instruction", "unwind/amd64_v3.go", "uint32(o.IPOffset) >= at", "uint32(o.IPOffset) > at"},
	{"a prolog's operation counts before its instruction", "unwind/amd64_v3.go", "offset > uint32(o.IPOffset)", "offset >= uint32(o.IPOffset)"},
	{"a trap's frame counts as an instruction's", "unwind/amd64_v3.go", "o.IPOffset == 0", "o.IPOffset == 1"},
	{"an epilog to the parent leaves the parent too", "unwind/amd64_v3.go", "done = done || !e.ToParent", "done = true"},
	{"an epilog that leaves all goes on with the parent", "unwind/amd64_v3.go", "done = done || !e.ToParent\n", "\n"},
	{"the frame register is not where rsp is taken from", "unwind/amd64_v3.go", "case o.Op == pdata.WODSetFPReg && !before:", "case o.Op == pdata.WODSetFPReg && (!before || i > 0):"},
	{"saves count from one base", "unwind/amd64.go", "base, haveBase = sp, true", "base, haveBase = f.SP, true"},
	{"distances from the end count from the begin", "pdata/unwindv3.go", "if e.Offset < 0 {", "if e.Offset == 1 {"},
	{"epilogs count each from the fragment", "pdata/unwindv3.go", "return before + delta", "return delta"},
	{"the pool's index of an epilog is ignored", "pdata/unwindv3.go", "pool.Seek(int(first[i]))", "pool.Seek(0)"},
	{"a save's distance is not scaled", "pdata/unwindv3.go", "case WODSaveNonvol:\n\t\to.Value = uint32(c.U16()) * 8", "case WODSaveNonvol:\n\t\to.Value = uint32(c.U16())"},
}

// TestMutantsV3 is TestMutants over the image of version 3.
func TestMutantsV3(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	root, dir := moduleRoot(t), t.TempDir()
	path := filepath.Join(dir, "version3.dll")
	if err := os.WriteFile(path, fixtures.Version3Image().File(), 0o600); err != nil {
		t.Fatal(err)
	}
	sample := []string{"1", path}
	sound := runMutant(t, root, dir, mutant{}, sample)
	if sound.total() != 0 || sound.checks.Tried == 0 {
		t.Fatalf("without a fault: %+v", sound)
	}
	t.Logf("none: %d boundaries, %d checks", sound.boundaries, sound.checks.Tried)
	for _, m := range mutantsV3 {
		got := runMutant(t, root, dir, m, sample)
		t.Logf("%s: %d boundaries, %d checks", m.name, got.wrong, got.checks.Wrong)
		if got.total() == 0 {
			t.Errorf("unnoticed: %s", m.name)
		}
	}
}
