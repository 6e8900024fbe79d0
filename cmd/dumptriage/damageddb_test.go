package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// TestDamagedIdsAreNoWrongUsage: an id that one part of the database has otherwise than
// another was not asked for by anybody.
func TestDamagedIdsAreNoWrongUsage(t *testing.T) {
	dir := t.TempDir()
	whole, damaged, into := filepath.Join(dir, "whole.db"), filepath.Join(dir, "damaged.db"), filepath.Join(dir, "into.db")
	do := func(args ...string) (string, int) {
		var out, errs strings.Builder
		status := run(args, &out, &errs)
		return out.String() + errs.String(), status
	}
	if said, status := do("batch", "-q", "--out", filepath.Join(dir, "1.jsonl"), "--db", whole, "../../fixtures/crashes"); status == exitUsage {
		t.Fatal(said)
	}
	list, _ := do("buckets", "list", "--db", whole, "--csv")
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile("(?m)^[0-9a-f]{16}").FindAllString(list, -1)
	slices.Sort(ids)
	id := ids[len(ids)/2]
	// Another digit, in the same order among all, and ids in front of all and behind them.
	others := []string{id[:15] + string(id[15]^1), "0" + id[1:], "f" + id[1:]}
	n, failed := 0, 0
	for at := 0; ; n++ {
		next := bytes.Index(b[at:], []byte(id))
		if next < 0 {
			break
		}
		at += next
		for _, other := range others {
			bad := slices.Concat(b[:at], []byte(other), b[at+len(id):])
			for _, verb := range [][]string{{"list", "--db", damaged}, {"export", "--db", damaged}, {"diff", whole, "--db", damaged}, {"merge", damaged, "--db", into}} {
				if err := os.WriteFile(damaged, bad, 0o666); err != nil {
					t.Fatal(err)
				}
				said, status := do(append([]string{"buckets"}, verb...)...)
				if status == exitUsage {
					t.Errorf("%s: %s", verb[0], said)
				}
				if status == exitFailed && strings.Contains(said, "damaged.db: ") {
					failed++
				}
			}
		}
		at += len(id)
	}
	if n < 3 || failed == 0 {
		t.Errorf("%d places, %d failures: the database is not as this test knows it", n, failed)
	}
}
