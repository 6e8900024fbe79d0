package main

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// What goes wrong when databases are merged is said of the one that it went wrong with.
func TestMergeNamesTheDatabase(t *testing.T) {
	dir := t.TempDir()
	part, whole := filepath.Join(dir, "part.db"), filepath.Join(dir, "whole.db")
	var out, errs bytes.Buffer
	for _, db := range []string{part, whole} {
		if status := run([]string{"batch", "-q", "--not-beside", "--db", db, filepath.Join("..", "..", "fixtures", "crash", "crashdemo.dmp")}, &out, &errs); status != 0 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
	}
	for _, c := range []struct{ damaged, do, undo string }{
		{whole, `CREATE TRIGGER refuse BEFORE INSERT ON dump_paths BEGIN SELECT RAISE(ABORT, 'full'); END`, `DROP TRIGGER refuse`},
		{part, `ALTER TABLE frames RENAME COLUMN name TO other`, `ALTER TABLE frames RENAME COLUMN other TO name`},
	} {
		db, err := sql.Open("sqlite", c.damaged)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(c.do); err != nil {
			t.Fatal(err)
		}
		errs.Reset()
		status := run([]string{"buckets", "merge", part, "--db", whole}, &out, &errs)
		if status != exitFailed || !strings.HasPrefix(errs.String(), "dumptriage: "+c.damaged+": ") {
			t.Errorf("%s: status %d: %s", c.do, status, errs.String())
		}
		if _, err := db.Exec(c.undo); err != nil {
			t.Fatal(err)
		}
	}
}
