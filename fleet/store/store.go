// Package store keeps what is known of many dumps in a SQLite database: the dumps
// by their content, the buckets and clusters that they fall into, since when and in
// which versions, and what people noted.
//
// A dump counts once, however often and under whatever names it is added. Times
// are the dumps' own. Several processes may add to one database at a time.
//
// The database is a file of the user's and is believed, though not to be whole:
// what does not fit is an error.
package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"dumptriage/fleet/similar"
	"dumptriage/internal/temporary"
)

// Store is an open database. It is used by one goroutine.
type Store struct {
	db         *sql.DB
	dialect    *dialect
	params     similar.Params
	model      *similar.Model
	generation int64 // of the clusters that model knows
	pending    []Incident
	regressed  []Regression
	made       map[string]bool // buckets that were made since the store was opened
	temporary  string          // a folder of copies to remove, "" none
}

// Close writes what is pending and closes the database.
func (s *Store) Close(ctx context.Context) error {
	err := errors.Join(s.Flush(ctx), s.db.Close())
	if s.temporary != "" {
		err = errors.Join(err, temporary.Remove(s.temporary))
	}
	return err
}

// inTransaction does what writes to the database, which nobody else does meanwhile.
func (s *Store) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if s.dialect.lock != "" {
		_, err = tx.ExecContext(ctx, s.dialect.lock)
	}
	if err == nil {
		err = do(tx)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// metaNumber is 0 for what is not there.
func metaNumber(ctx context.Context, tx *sql.Tx, name string) (int64, error) {
	var text string
	err := tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = $1`, name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func setMeta(ctx context.Context, tx *sql.Tx, name, value string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
	return err
}

// timeText is a time as the database has it: RFC 3339 in UTC, so that texts sort
// as times do; NULL when it is not known.
func timeText(t time.Time) sql.NullString {
	if t.IsZero() {
		return sql.NullString{}
	}
	return sql.NullString{String: t.UTC().Format("2006-01-02T15:04:05.000Z"), Valid: true}
}

func timeOf(s sql.NullString) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s.String) // zero: not known
	return t
}
