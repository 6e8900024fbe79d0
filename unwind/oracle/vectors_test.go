package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures"
)

// writeVectors writes the checked-in fixtures to files.
func writeVectors(t testing.TB, dir string) (paths []string) {
	t.Helper()
	for name, b := range map[string][]byte{"vectors.dll": fixtures.VectorImage().File(), "opcodes.dll": fixtures.OpcodeImage().File(), "epilogs.dll": fixtures.EpilogImage().File(), "version3.dll": fixtures.Version3Image().File()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}
