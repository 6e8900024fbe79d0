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
// schema, or with a log that cannot be read where it lies, is read from a copy.
func OpenReading(ctx context.Context, path string) (s *Store, err error) {
	if err := holdsSomething(path); err != nil {
		return nil, err
	}
	for _, how := range readings(path) {
		s, err = open(ctx, path, how, (*Store).upToDate)
		if !isNoPlace(err) {
			break
		}
	}
	return s, err
}

func open(ctx context.Context, path string, how access, prepare func(*Store, context.Context) error) (*Store, error) {
	s, err := connect(path, how)
	if err == nil {
		err = s.prepared(ctx, prepare)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// newStore is a store of a connection.
func newStore(db *sql.DB, d *dialect) *Store {
	db.SetMaxOpenConns(1)
	return &Store{db: db, dialect: d, params: similar.DefaultParams, made: map[string]bool{}}
}

// prepared makes sure that a database is as this program knows it, or makes it so.
func (s *Store) prepared(ctx context.Context, prepare func(*Store, context.Context) error) error {
	err := prepare(s, ctx)
	if err == nil {
		err = s.readParams(ctx)
	}
	if err != nil {
		err = errors.Join(err, s.Close(ctx))
	}
	return err
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
