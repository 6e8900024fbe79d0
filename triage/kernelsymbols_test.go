package triage

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures/machine"
	"dumptriage/kdump"
	"dumptriage/symbols"
)

// TestKernelSymbols finds the kernel's data block, of which the header does not
// know, by the PDB of the very build on x64 and x86, where C names have an
// underscore; a PDB of another build is refused, also where such are allowed for names.
func TestKernelSymbols(t *testing.T) {
	for _, v := range []machine.Variant{machine.Windows24H2, machine.WindowsPAE} {
		m := machine.Build(v)
		m.Debugger += 0x100000 // for the header alone
		b := m.Dump(machine.BitmapKernel)
		for _, other := range []bool{false, true} {
			dir := t.TempDir()
			pdb := m.KernelPDB()
			if other {
				pdb.Age++
			}
			if err := os.WriteFile(filepath.Join(dir, m.NT.Image.CodeView.PDB), pdb.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			d := openBytes(t, "MEMORY.DMP", b)
			used := d.UseKernelSymbols(symbols.DirPath(dir), symbols.StoreOptions{AllowMismatch: true})
			found := d.Source.(*kdump.File).KDBGFound()
			if want := map[bool]string{false: "symbols", true: "scan"}[other]; used == other || found != want {
				t.Errorf("%s, other build %v: used %v, data block by %q, want %q", v.Name, other, used, found, want)
			}
			if n := len(d.Processes()); n != len(m.Processes) {
				t.Errorf("%s: %d processes, want %d", v.Name, n, len(m.Processes))
			}
		}
	}
}
