package symbols

import (
	"os"
	"testing"
)

// A process that is interrupted leaves no part of a download behind, and begins
// no further one. A part that got its place is not touched.
func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { parts.abandoned = false })
	placed, err := newPart(dir)
	if err != nil {
		t.Fatal(err)
	}
	unfinished, err := newPart(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unfinished.Close()
	placed.Close()
	if err := os.Rename(placed.Name(), dir+"/app.pdb"); err != nil {
		t.Fatal(err)
	}
	endPart(placed.Name())
	Abandon()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "app.pdb" {
		t.Errorf("left %v, %v", left, err)
	}
	if f, err := newPart(dir); err == nil {
		f.Close()
		t.Error("a download began behind the interrupt")
	}
}
