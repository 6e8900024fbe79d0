package pdb

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// corpus returns the folder of collected files beside the project, and skips
// the test where there is none.
func corpus(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			tb.Skip("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(filepath.Dir(dir), "shared", "corpus")
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("the corpus of dumps is not beside the project")
	}
	return dir
}

// corpusPDBs returns the bytes of every PDB of the corpus by its base name. One
// that is compressed is unpacked by the zstd tool, and left out without it.
func corpusPDBs(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(corpus(tb), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".zst")
		if filepath.Ext(name) != ".pdb" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.HasSuffix(file, ".zst") {
			if b, err = unzstd(b); err != nil {
				tb.Logf("%s left out: %v", name, err)
				return nil
			}
		}
		out[name] = b
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func unzstd(b []byte) ([]byte, error) {
	cmd := exec.Command("zstd", "-dc")
	cmd.Stdin = bytes.NewReader(b)
	return cmd.Output()
}

func openBytes(tb testing.TB, b []byte, name string) *File {
	tb.Helper()
	f, err := Open(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), int64(len(b)), name)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}
