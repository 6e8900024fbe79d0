package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
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
	log    bool // to be read, with a log that another process left or writes
	alone  bool // to be read, where nobody writes and nothing can be written
}

// readingOf is how to open a database to look at it.
func readingOf(path string) access {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		// To close a database that could be written to would move the log into it.
		return access{read: true, log: true}
	}
	// Where nothing can be written, the log to look for what is about to be has no place.
	return access{read: true, alone: !isWritable(path)}
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

func connect(path string, how access) (*sql.DB, *dialect, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: how.query().Encode()}
	db, err := sql.Open("sqlite", name.String())
	return db, &sqliteDialect, err
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
func (s *Store) useCopy(ctx context.Context) error {
	f, err := os.CreateTemp("", "buckets-*.db")
	if err != nil {
		return err
	}
	s.temporary = f.Name()
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO $1`, s.temporary); err != nil {
		return err
	}
	old := s.db
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(s.temporary), RawQuery: "_txlock=immediate&_pragma=synchronous(OFF)&_pragma=journal_mode(MEMORY)"}
	if s.db, err = sql.Open("sqlite", name.String()); err != nil {
		s.db = old
		return err
	}
	s.db.SetMaxOpenConns(1)
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
