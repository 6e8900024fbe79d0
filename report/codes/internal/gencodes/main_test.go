package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The checked-in Go file is what the tables say.
func TestTablesAreFresh(t *testing.T) {
	want, err := generate("../../tables")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../tables.go")
	if err != nil {
		t.Fatal(err)
	}
	if got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")); !bytes.Equal(got, want) {
		t.Error("tables.go is stale: run go generate ./report/codes")
	}
}

func TestReadTableRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"descending":   "2\tB\n1\tA\n",
		"twice":        "1\tA\n1\tB\n",
		"no name":      "1\n",
		"empty name":   "1\t\n",
		"not hex":      "zz\tA\n",
		"unknown kind": "1\tA\tdead\n",
		"too long":     "100000000\tA\n",
	} {
		path := filepath.Join(t.TempDir(), "t.tsv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if rows, err := readTable(path); err == nil {
			t.Errorf("%s: read as %v", name, rows)
		}
	}
}
