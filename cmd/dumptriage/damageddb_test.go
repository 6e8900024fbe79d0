package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDamageInTheDatabaseNamesIt: what is found wrong only when dumps are added names
// the database, and is no success.
func TestDamageInTheDatabaseNamesIt(t *testing.T) {
	exe, err := exec.LookPath("dumptriage") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	fixtures, err := filepath.Abs(filepath.Join("..", "..", "fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	batch := func(dump, out string) (string, int) {
		cmd := exec.Command(exe, "batch", "-q", "--out", out, "--db", "all.db", filepath.Join(fixtures, dump))
		cmd.Dir = dir
		said, _ := cmd.CombinedOutput()
		return string(said), cmd.ProcessState.ExitCode()
	}
	if said, status := batch("crash/crashdemo.dmp", "1.jsonl"); status != exitOK {
		t.Fatalf("%d %s", status, said)
	}
	// The row of meta that counts changes of the clusters: its name, then its number.
	db := filepath.Join(dir, "all.db")
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(b, []byte("generation1"), []byte("generationz"), 1)
	if bytes.Equal(b, damaged) {
		t.Fatal("the database is not as this test knows it")
	}
	if err := os.WriteFile(db, damaged, 0o666); err != nil {
		t.Fatal(err)
	}
	if said, status := batch("crashes/abort.dmp", "2.jsonl"); status != exitFailed || !bytes.Contains([]byte(said), []byte("dumptriage: all.db: ")) {
		t.Errorf("%d %s", status, said)
	}
}
