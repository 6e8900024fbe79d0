package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"dumptriage/fleet/similar"
)

// ErrEmpty is a file that is there and holds nothing yet.
var ErrEmpty = errors.New("an empty file, no bucket database")

// Open opens a database, or makes one that is not there yet.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, url.Values{"mode": {"rwc"}}, (*Store).migrate)
}

// OpenExisting opens a database that must be there.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	if err := holdsSomething(path); err != nil {
		return nil, err
	}
	return open(ctx, path, url.Values{"mode": {"rw"}}, (*Store).migrate)
}

// OpenReading opens a database that must be there to look at it: its file stays as it is,
// and none is left beside it. It may lie where nothing can be written. One of an older
// schema is read from a copy that is brought up to date.
func OpenReading(ctx context.Context, path string) (*Store, error) {
	if err := holdsSomething(path); err != nil {
		return nil, err
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		// Somebody writes, or was killed: to close a database that could be written to would
		// move the log into it.
		return open(ctx, path, url.Values{"mode": {"ro"}}, (*Store).upToDate)
	}
	if isWritable(path) {
		s, err := open(ctx, path, url.Values{"mode": {"rw"}, "_pragma": {"query_only(1)"}}, (*Store).upToDate)
		if !isNoPlace(err) {
			return s, err
		}
	}
	// What is about to begin writing is not seen, but the log to look for it in has no place.
	return open(ctx, path, url.Values{"mode": {"ro"}, "immutable": {"1"}}, (*Store).upToDate)
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

func open(ctx context.Context, path string, how url.Values, prepare func(*Store, context.Context) error) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	how.Set("_txlock", "immediate") // a transaction that will write must not begin as one that reads
	for _, pragma := range []string{"synchronous(NORMAL)", "busy_timeout(60000)"} {
		how.Add("_pragma", pragma)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: how.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	s, err := prepared(ctx, db, &sqliteDialect, prepare)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// prepared is a store of a database that is as this program knows it, or is made so.
func prepared(ctx context.Context, db *sql.DB, d *dialect, prepare func(*Store, context.Context) error) (*Store, error) {
	db.SetMaxOpenConns(1)
	s := &Store{db: db, dialect: d, params: similar.DefaultParams, made: map[string]bool{}}
	err := prepare(s, ctx)
	if err == nil {
		err = s.readParams(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// upToDate makes sure of the schema without writing to the database.
func (s *Store) upToDate(ctx context.Context) error {
	done, err := s.schema(ctx, s.db)
	switch {
	case err != nil:
		return err
	case done == int64(len(migrations)):
		return nil
	case done == 0:
		return ErrEmpty
	}
	return s.useCopy(ctx)
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
