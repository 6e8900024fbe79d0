package pdb

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pdbutil runs llvm-pdbutil over a PDB.
func pdbutil(t *testing.T, b []byte, args ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.pdb")
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool(t, "llvm-pdbutil"), append(append([]string{"dump"}, args...), file)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCorpusAgainstPdbutil(t *testing.T) {
	tool(t, "llvm-pdbutil")
	publics, fpo := 0, 0
	for name, b := range corpusPDBs(t) {
		t.Run(name, func(t *testing.T) {
			f := openBytes(t, b, name)
			publics += comparePublics(t, f, pdbutil(t, b, "-publics"))
			fpo += compareFPO(t, f, pdbutil(t, b, "-fpo"))
			for _, d := range f.Damage() {
				t.Error("damage:", d)
			}
		})
	}
	t.Logf("%d public symbols, %d FrameData records", publics, fpo)
}
