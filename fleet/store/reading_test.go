package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Looking at a database changes no byte of it and leaves nothing beside it, be it new, of an
// older schema, in use, left by a killed process, or where nothing can be written.
func TestReadingLeavesAllAsItIs(t *testing.T) {
	files := func(dir string) map[string]string {
		out := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if out[e.Name()] = string(b); strings.HasSuffix(e.Name(), "-shm") {
				out[e.Name()] = "" // marks of who reads
			}
		}
		return out
	}
	for _, name := range []string{"plain", "older", "killed", "readonly"} {
		t.Run(name, func(t *testing.T) {
			if name == "older" {
				newest := migrations
				migrations = newest[:2]
				defer func() { migrations = newest }()
			}
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			t.Setenv("TMP", temporary)
			s, path := create(t)
			if name == "older" {
				_, err := s.db.Exec(`INSERT INTO buckets (bucket, algorithm, kind, class, text, dumps, state, fixed_module, fixed_version, regressed_version, note) VALUES ('00ab', '', '', '', 'old', 1, 'new', '', '', '', '')`)
				if err != nil {
					t.Fatal(err)
				}
				migrations = append(slices.Clip(migrations), newestMigration)
			} else {
				add(t, s, incident(1, 1))
			}
			if name != "killed" {
				s.Close(context.Background())
			}
			dir := filepath.Dir(path)
			if name == "readonly" {
				os.Chmod(path, 0o444)
				os.Chmod(dir, 0o555)
				t.Cleanup(func() { os.Chmod(dir, 0o777); os.Chmod(path, 0o666) })
			}
			before := files(dir)
			r, err := OpenReading(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if list, err := r.Buckets(t.Context(), ""); err != nil || len(list) != 1 {
				t.Errorf("%+v, %v", list, err)
			}
			if name != "older" { // that is a copy
				if err := r.Set(t.Context(), incident(1, 1).Bucket, Change{Note: new(string)}); err == nil {
					t.Error("a database that was opened to be read can be written")
				}
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			after := files(dir)
			for f, was := range before {
				if after[f] != was {
					t.Errorf("%s has changed", f)
				}
				delete(after, f)
			}
			if len(after) > 0 || len(files(temporary)) > 0 {
				t.Errorf("left: %d files beside it, %d copies", len(after), len(files(temporary)))
			}
		})
	}
}

// A database whose log was left by a killed process, and lies where the log cannot be worked
// in: what the log holds is there all the same, and nothing is left beside it.
func TestReadingALogWithoutItsIndex(t *testing.T) {
	for name, index := range map[string]func(path string) error{
		"none":    func(string) error { return nil },
		"useless": func(path string) error { return os.Symlink(filepath.Join("no", "such", "folder"), path) },
		"no folder for it": func(path string) error {
			return errors.Join(os.Chmod(path[:len(path)-4], 0o444), os.Chmod(path[:len(path)-4]+"-wal", 0o444), os.Chmod(filepath.Dir(path), 0o555))
		},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			t.Setenv("TMP", temporary)
			s, from := create(t)
			add(t, s, incident(1, 1), incident(2, 2)) // is in the log alone
			path := filepath.Join(t.TempDir(), "copy.db")
			for _, suffix := range []string{"", "-wal"} {
				b, err := os.ReadFile(from + suffix)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path+suffix, b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { os.Chmod(filepath.Dir(path), 0o777) })
			if err := index(path + "-shm"); err != nil {
				t.Skip(err)
			}
			before, err := os.ReadDir(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			r, err := OpenReading(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := facts(t, s), facts(t, r); a != b {
				t.Errorf("%s\n%s", a, b)
			}
			if err := r.Set(t.Context(), incident(1, 1).Bucket, Change{Note: new(string)}); err == nil {
				t.Error("it can be written")
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			after, err := os.ReadDir(filepath.Dir(path))
			copies, _ := os.ReadDir(temporary)
			if err != nil || len(after) != len(before) || len(copies) > 0 {
				t.Errorf("left: %v, and %v", after, copies)
			}
		})
	}
}

// newestMigration is one after those that the test's older database had.
const newestMigration = `CREATE INDEX test_only ON dumps (status)`

// An empty file is no database to look at, and stays one.
func TestEmptyFileIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(context.Context, string) (*Store, error){OpenReading, OpenExisting} {
		if _, err := open(t.Context(), path); err == nil || !strings.Contains(err.Error(), ErrEmpty.Error()) {
			t.Errorf("%v", err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 0 {
		t.Errorf("%v, %v", st, err)
	}
}
