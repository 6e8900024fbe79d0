package pdb

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
)

// corpusPDBs returns the bytes of every PDB of the corpus by its base name. One
// that is compressed is unpacked by the zstd tool, and left out without it.
func corpusPDBs(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(corpus.Need(tb, ""), func(file string, d os.DirEntry, err error) error {
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
