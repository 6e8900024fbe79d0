package triage

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestCompanionDevice passes over a companion that is a device: opening what
// nobody named must not hang.
func TestCompanionDevice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no device files")
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "app.Kernel.dmp")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Skip(err)
	}
	if path, ok := Companion(filepath.Join(dir, "app.dmp")); ok {
		t.Errorf("found %s", path)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "real"), link); err != nil {
		t.Fatal(err)
	}
	if path, ok := Companion(filepath.Join(dir, "app.dmp")); !ok || path != link {
		t.Errorf("a link to a file: %q, %v", path, ok)
	}
}
