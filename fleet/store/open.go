package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"dumptriage/fleet/similar"
)

// dialect is what databases do each in their own way. All other statements are of the SQL
// that SQLite and PostgreSQL both know, and sqlite.go is all that knows of SQLite.
type dialect struct {
	tables string   // a query for the names of the tables
	first  []string // what is done before the first migration, outside a transaction
	lock   string   // what lets one transaction write at a time, when beginning one does not
}

// ErrEmpty is a file that is there and holds nothing yet.
var ErrEmpty = errors.New("an empty file, no bucket database")

// Open opens a database, or makes one that is not there yet.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, access{create: true}, (*Store).migrate)
}

// OpenExisting opens a database that must be there.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	if err := holdsSomething(path); err != nil {
		return nil, err
	}
	return open(ctx, path, access{}, (*Store).migrate)
}

// OpenReading opens a database that must be there to look at it: its file stays as it is,
// and none is left beside it. It may lie where nothing can be written. One of an older
// schema is read from a copy that is brought up to date.
func OpenReading(ctx context.Context, path string) (*Store, error) {
	if err := holdsSomething(path); err != nil {
		return nil, err
	}
	a := readingOf(path)
	s, err := open(ctx, path, a, (*Store).upToDate)
	if isNoPlace(err) && !a.alone { // for a log, of which none is there
		return open(ctx, path, access{read: true, alone: true}, (*Store).upToDate)
	}
	return s, err
}

func open(ctx context.Context, path string, how access, prepare func(*Store, context.Context) error) (*Store, error) {
	db, d, err := connect(path, how)
	if err != nil {
		return nil, err
	}
	s, err := prepared(ctx, db, d, prepare)
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
