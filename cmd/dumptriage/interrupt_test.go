package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dumptriage/fleet/store"
)

// An interrupt while buckets reads a database from a copy leaves no copy behind.
func TestInterruptedReading(t *testing.T) {
	for sig, want := range ends {
		t.Run(sig.String(), func(t *testing.T) { testInterruptedReading(t, sig, want) })
	}
}

func testInterruptedReading(t *testing.T, sig os.Signal, want int) {
	if runtime.GOOS == "windows" {
		t.Skip("no other process can be interrupted")
	}
	exe, err := exec.LookPath("dumptriage") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	db, temporary := databaseWithLog(t), t.TempDir()
	cmd := exec.Command(exe, "buckets", "export", "--db", db)
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// With one byte read it is about to fill the pipe, and waits there for ever.
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(temporary); len(entries) != 1 {
		t.Errorf("the database is not read from a copy: %v", entries)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != want {
		t.Errorf("ends with %v", exit)
	}
	if entries, _ := os.ReadDir(temporary); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// databaseWithLog is a database as a killed process leaves it, with more buckets than fit
// into a pipe.
func databaseWithLog(t *testing.T) string {
	t.Helper()
	live, killed := filepath.Join(t.TempDir(), "live.db"), filepath.Join(t.TempDir(), "killed.db")
	s, err := store.Open(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	for i := range 300 {
		id := fmt.Sprintf("%016x", i)
		err := s.Add(t.Context(), store.Incident{Key: id, Path: id + ".dmp", Status: "OK", Process: "app.exe", Bucket: id, Algorithm: "bkt1", Text: id + strings.Repeat(" | app!f", 100)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(live + end)
		if err != nil || len(b) == 0 {
			t.Fatalf("%s: %d bytes, %v", live+end, len(b), err)
		}
		if err := os.WriteFile(killed+end, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return killed
}
