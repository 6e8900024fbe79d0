// Package corpus finds the collection of real dumps that tests may use. It is
// kept beside the project, at ../shared/corpus from its root, since it holds
// other people's files; without it the tests that need it are skipped.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Find returns where a file or folder of the collection is, named by its path in
// it with slashes, and whether it is there. It is for the tests of this project:
// the working folder must lie in it.
func Find(name string) (path string, ok bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
	path = filepath.Join(filepath.Dir(dir), "shared", "corpus", filepath.FromSlash(name))
	_, err = os.Stat(path)
	return path, err == nil
}

// Need is Find for a test that cannot do without: it skips the test when the
// file is not there.
func Need(tb testing.TB, name string) string {
	tb.Helper()
	path, ok := Find(name)
	if !ok {
		tb.Skipf("not in a collection of real dumps beside the project: %s", name)
	}
	return path
}
