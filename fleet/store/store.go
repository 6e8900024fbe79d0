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
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver

	"dumptriage/fleet/similar"
)

// Store is an open database. It is used by one goroutine.
type Store struct {
	db         *sql.DB
	params     similar.Params
	model      *similar.Model
	generation int64 // of the clusters that model knows
	pending    []Incident
	regressed  []Regression
}

// Open opens a database, or makes one that is not there yet.
func Open(ctx context.Context, path string) (*Store, error) { return open(ctx, path, "rwc") }

// OpenExisting opens a database that must be there.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return open(ctx, path, "rw")
}

func open(ctx context.Context, path, mode string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: url.Values{
		"mode":    {mode},
		"_txlock": {"immediate"}, // a transaction that will write must not begin as one that reads
		"_pragma": {"synchronous(NORMAL)", "busy_timeout(60000)"},
	}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := migrate(ctx, db); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{db: db, params: similar.DefaultParams}
	if err := s.readParams(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Close writes what is pending and closes the database.
func (s *Store) Close(ctx context.Context) error {
	return errors.Join(s.Flush(ctx), s.db.Close())
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
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
