package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestKilledBatch ends a batch with a database by force, again and again, and goes on
// with it: the file ends up as if nothing had happened, and the database as if all
// had been added at once. bench/batchkill.sh does it with many dumps.
func TestKilledBatch(t *testing.T) {
	exe, err := exec.LookPath("dumptriage") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dump, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "crash", "crashdemo.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	const dumps = 150
	for i := range dumps {
		name := filepath.Join(dir, "in", strconv.Itoa(i%7), strconv.Itoa(i)+".dmp")
		os.MkdirAll(filepath.Dir(name), 0o777)
		if err := os.WriteFile(name, append(dump, byte(i), byte(i>>8), 1), 0o666); err != nil { // another content, the same facts
			t.Fatal(err)
		}
	}
	batch := func(name string, resume bool) *exec.Cmd {
		args := []string{"batch", "-q", "-j", "2", "--not-beside", "--out", name + ".jsonl", "--db", name + ".db", "in"}
		if resume {
			args = append(args, "--resume")
		}
		cmd := exec.Command(exe, args...)
		cmd.Dir = dir
		return cmd
	}
	if out, err := batch("whole", false).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	}
	whole := read("whole.jsonl")
	killed := 0
	for at := 1; at <= 3; at++ {
		cmd := batch("cut", true)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Killed with something written and something still to do, however fast all is.
		for deadline := time.Now().Add(time.Minute); len(read("cut.jsonl")) < at*len(whole)/4 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
	}
	if killed == 0 {
		t.Error("the batch was never killed before its end")
	}
	if out, err := batch("cut", true).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := read("cut.jsonl"); !bytes.Equal(got, whole) {
		t.Errorf("after %d kills the file has %d lines of %d", killed, bytes.Count(got, []byte("\n")), dumps)
	}
	list := func(db string) string {
		cmd := exec.Command(exe, "buckets", "export", "--db", db)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if a, b := list("whole.db"), list("cut.db"); a != b || !bytes.Contains([]byte(a), []byte(`"dumps":150,`)) {
		t.Errorf("the databases differ:\n%s\n%s", a, b)
	}
}
