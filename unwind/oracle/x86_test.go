package oracle

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/unwind"
)

// pdbFrames are the records of a PDB for an image at its preferred base.
type pdbFrames struct {
	symbols.PDB
	base uint64
}

func (f pdbFrames) FrameRecords(va uint64) []unwind.FrameRecord {
	var out []unwind.FrameRecord
	for _, r := range f.Frames(uint32(va - f.base)) {
		if r.Kind != symbols.FrameProgram {
			continue
		}
		out = append(out, unwind.FrameRecord{Source: r.Source, Module: "image", Begin: f.base + uint64(r.RVA), End: f.base + uint64(r.RVA) + uint64(r.Size), RVA: r.RVA,
			Function: f.base + uint64(r.Function), Locals: r.Locals, Params: r.Params, SavedRegs: r.SavedRegs, Prolog: r.Prolog, Program: r.Program})
	}
	return out
}

func (f pdbFrames) FunctionStart(va uint64) (uint64, bool) {
	start, ok := f.PDB.FunctionStart(uint32(va - f.base))
	return f.base + uint64(start), ok
}

func openPDBFrames(t *testing.T, path string) (pdbFrames, []uint32) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pdb.Open(bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		t.Fatal(err)
	}
	f := pdbFrames{symbols.PDB{File: p}, 0x400000}
	var starts []uint32
	for rva := uint32(0x1000); rva < 0x20000; rva++ {
		if r := f.Frames(rva); len(r) > 0 && r[0].Function == rva {
			starts = append(starts, rva)
		}
	}
	return f, starts
}

// Programs of Clang, with frame pointers and without, executed. The image and
// its code decide more than records, so both ways are tried. Code without
// records, of MinGW's runtime, is passed on the way: guesses there are marked.
func TestX86FrameData(t *testing.T) {
	needEmulator(t)
	dir := corpus.Need(t, "wine/x86")
	for name, all := range map[string]bool{"mini-x86-O2": true, "mini-x86-O2fp": true, "t32-clang-fpo": false, "t32-clang-fp": false} {
		frames, starts := openPDBFrames(t, filepath.Join(dir, name+".pdb"))
		for _, withoutCode := range []bool{false, true} {
			r, err := RunX86(filepath.Join(dir, name+".exe"), frames, starts, 3000, withoutCode)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, code at hand %t: %d boundaries, %d frames, %d by records, %d marked, %d wrong", name, !withoutCode, r.Boundaries, r.Frames, r.ByRecord, r.Marked, r.Wrong)
			if r.Wrong != 0 || all && r.Marked != 0 || r.ByRecord < 50 {
				t.Errorf("%+v\n%s", r, strings.Join(r.Failures, "\n"))
			}
		}
	}
}
