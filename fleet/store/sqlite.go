package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"dumptriage/internal/temporary"
)

// This file is all that knows of SQLite.

var sqliteDialect = dialect{
	tables: `SELECT name FROM sqlite_master WHERE type = 'table'`,
	first:  []string{`PRAGMA journal_mode = WAL`}, // the mode stays with the file
}

// access is how a database is opened: to be written, unless read is set.
type access struct {
	create bool // if it is not there
	read   bool
	log    bool // to be read, with a log that another process writes
	alone  bool // to be read, where nobody writes and nothing can be written
	copied bool // to be read from a copy, for its log has to be worked in
}

// readings are the ways to open a database to look at it, each for when those before it
// find no place for what they would write.
func readings(path string) []access {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		// To close a database that could be written to would move the log into it, and the
		// index of the log, which is there while somebody has it open, would be left.
		if _, err := os.Lstat(path + "-shm"); err == nil {
			return []access{{read: true, log: true}, {read: true, copied: true}}
		}
		return []access{{read: true, copied: true}}
	}
	// Where nothing can be written, the log to look for what is about to be has no place.
	if !isWritable(path) {
		return []access{{read: true, alone: true}}
	}
	return []access{{read: true}, {read: true, alone: true}}
}

// query is how the driver is told.
func (a access) query() url.Values {
	q := url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"}, // a transaction that will write must not begin as one that reads
		"_pragma": {"synchronous(NORMAL)", "busy_timeout(60000)"},
	}
	switch {
	case a.create:
		q.Set("mode", "rwc")
	case a.alone:
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	case a.log:
		q.Set("mode", "ro")
	case a.read:
		q.Add("_pragma", "query_only(1)")
	}
	return q
}

func connect(path string, how access) (*Store, error) {
	if how.copied {
		return connectCopy(path, how)
	}
	return connectAt(path, how)
}

// connectCopy connects to a copy of the database, which Close removes.
func connectCopy(path string, how access) (*Store, error) {
	dir, err := temporary.Dir("buckets-*")
	if err != nil {
		return nil, err
	}
	copied, err := copyWithLog(path, dir)
	var s *Store
	if err == nil {
		s, err = connectAt(copied, how)
	}
	if err != nil {
		return nil, errors.Join(err, temporary.Remove(dir))
	}
	s.temporary = dir
	return s, nil
}

func connectAt(path string, how access) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: how.query().Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	return newStore(db, &sqliteDialect), nil
}

// copyWithLog copies a database and its log into a folder, as they are at one time.
func copyWithLog(path, dir string) (string, error) {
	to := filepath.Join(dir, "copy.db")
	for range copyTries {
		before, err := stamps(path)
		if err == nil {
			err = errors.Join(copyFile(path, to), copyFile(path+"-wal", to+"-wal"))
		}
		if err != nil {
			return "", err
		}
		if after, err := stamps(path); err == nil && after == before {
			return to, nil
		}
	}
	return "", errors.New("it is being written to, and its log cannot be read where it lies")
}

// copyTries is how often a database is copied until it does not change meanwhile.
const copyTries = 5

// stamps tells whether a database or its log was written to.
func stamps(path string) (out [2][2]int64, err error) {
	for i, name := range []string{path, path + "-wal"} {
		st, err := os.Stat(name)
		if err != nil {
			return out, err
		}
		out[i] = [2]int64{st.Size(), st.ModTime().UnixNano()}
	}
	return out, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// isWritable reports whether a file may be written to, which it is not.
func isWritable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// holdsSomething refuses what SQLite would take for a new database.
func holdsSomething(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file, no bucket database", path)
	case st.Size() == 0:
		return fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	return nil
}

// useCopy goes on with a copy of the database, which is brought up to date.
func (s *Store) useCopy(ctx context.Context) (err error) {
	if s.temporary == "" {
		if s.temporary, err = temporary.Dir("buckets-*"); err != nil {
			return err
		}
	}
	path := filepath.Join(s.temporary, "new.db")
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO $1`, path); err != nil {
		return err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_txlock=immediate&_pragma=synchronous(OFF)&_pragma=journal_mode(MEMORY)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	old := s.db
	s.db = db
	if err := old.Close(); err != nil {
		return err
	}
	return s.bringUp(ctx)
}

// Result codes of SQLite; the higher bytes tell more.
const (
	resultReadOnly = 8
	resultCorrupt  = 11
	resultCantOpen = 14
	resultNotADB   = 26
)

func result(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isNoPlace reports whether a database could not be opened because nothing can be written
// where it lies.
func isNoPlace(err error) bool { return result(err) == resultCantOpen || result(err) == resultReadOnly }

// IsDamage reports whether a database's file is damaged.
func IsDamage(err error) bool { return result(err) == resultCorrupt }

// IsNoDatabase reports whether a file is no database at all.
func IsNoDatabase(err error) bool { return result(err) == resultNotADB }
