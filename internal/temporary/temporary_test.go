package temporary

import (
	"os"
	"path/filepath"
	"testing"
)

// A process that is interrupted leaves nothing unfinished behind, and begins nothing more.
// What got its place under another name is not touched.
func TestAbandon(t *testing.T) {
	t.Cleanup(func() { kept.abandoned = false })
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} { // of each system
		t.Setenv(name, dir)
	}
	placed, err := File(dir, "*.part")
	if err != nil {
		t.Fatal(err)
	}
	unfinished, err := File(dir, "*.part")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := Dir("copies-*")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "copy"), []byte{1}, 0o666); err != nil {
		t.Fatal(err)
	}
	placed.Close()
	unfinished.Close()
	if err := os.Rename(placed.Name(), filepath.Join(dir, "app.pdb")); err != nil {
		t.Fatal(err)
	}
	if err := Remove(placed.Name()); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("before there are %v, %v", entries, err)
	}
	Abandon()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "app.pdb" {
		t.Errorf("left %v, %v", left, err)
	}
	if f, err := File(dir, "*.part"); err == nil {
		f.Close()
		t.Error("a file was begun behind the interrupt")
	}
	if _, err := Dir("*"); err == nil {
		t.Error("a folder was made behind the interrupt")
	}
}
