package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// migrations make the schema, one step after the other; the number of those that
// were done is kept in meta. What was once released is never changed, only added
// to. The statements keep to what SQLite and PostgreSQL both understand.
var migrations = []string{
	// 1: dumps by content, their incidents, and what these have in common.
	`
CREATE TABLE dumps (
	dump_key TEXT PRIMARY KEY,
	status TEXT NOT NULL,
	reason TEXT NOT NULL,
	captured TEXT,
	process TEXT NOT NULL,
	version TEXT NOT NULL,
	arch TEXT NOT NULL,
	os TEXT NOT NULL,
	threads INTEGER NOT NULL,
	bucket TEXT,
	stack TEXT
);
CREATE INDEX dumps_bucket ON dumps (bucket);
CREATE INDEX dumps_stack ON dumps (stack);
CREATE TABLE dump_paths (
	dump_key TEXT NOT NULL,
	path TEXT NOT NULL,
	PRIMARY KEY (dump_key, path)
);
CREATE TABLE dump_modules (
	dump_key TEXT NOT NULL,
	place INTEGER NOT NULL,
	name TEXT NOT NULL,
	version TEXT NOT NULL,
	code_id TEXT NOT NULL,
	PRIMARY KEY (dump_key, place)
);
CREATE TABLE buckets (
	bucket TEXT PRIMARY KEY,
	algorithm TEXT NOT NULL,
	kind TEXT NOT NULL,
	class TEXT NOT NULL,
	text TEXT NOT NULL,
	dumps INTEGER NOT NULL,
	first_seen TEXT,
	last_seen TEXT,
	state TEXT NOT NULL,
	fixed_module TEXT NOT NULL,
	fixed_version TEXT NOT NULL,
	regressed_version TEXT NOT NULL,
	note TEXT NOT NULL,
	merged_into TEXT
);
CREATE TABLE stacks (
	stack TEXT PRIMARY KEY,
	kind TEXT NOT NULL,
	cluster TEXT,
	score REAL NOT NULL
);
CREATE TABLE frames (
	stack TEXT NOT NULL,
	place INTEGER NOT NULL,
	name TEXT NOT NULL,
	PRIMARY KEY (stack, place)
);
CREATE TABLE clusters (
	cluster TEXT PRIMARY KEY,
	ordinal INTEGER NOT NULL,
	kind TEXT NOT NULL,
	stacks INTEGER NOT NULL
);
CREATE TABLE representatives (
	cluster TEXT NOT NULL,
	place INTEGER NOT NULL,
	stack TEXT NOT NULL,
	PRIMARY KEY (cluster, place)
);
CREATE TABLE frequencies (
	name TEXT PRIMARY KEY,
	now INTEGER NOT NULL,
	weighed INTEGER NOT NULL
)`,
	// 2: what is asked for from the other side.
	`
CREATE INDEX stacks_cluster ON stacks (cluster);
CREATE INDEX buckets_merged_into ON buckets (merged_into)`,
	// 3: how common a frame is follows from the clusters; the parameters are others.
	`
DROP TABLE frequencies;
DELETE FROM meta WHERE name IN ('params', 'stacks', 'weighed')`,
	// 4: which of a cluster's kinds of stacks each is of; the parameters are others.
	`
ALTER TABLE stacks ADD COLUMN nearest TEXT;
UPDATE stacks SET nearest = COALESCE(
	(SELECT r.stack FROM representatives r WHERE r.stack = stacks.stack),
	(SELECT r.stack FROM representatives r WHERE r.cluster = stacks.cluster AND r.place = 0));
CREATE INDEX stacks_nearest ON stacks (nearest);
DELETE FROM meta WHERE name = 'params'`,
}

const metaTable = `CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`

// migrate brings a database up to date. One that a newer program made is refused, and
// so is one that something else made. What is up to date is only read, so that nobody
// who looks waits for somebody who adds.
func (s *Store) migrate(ctx context.Context) error {
	done, err := s.schema(ctx, s.db)
	if err != nil || done == int64(len(migrations)) {
		return err
	}
	for _, first := range s.dialect.first {
		if _, err := s.db.ExecContext(ctx, first); err != nil {
			return err
		}
	}
	return s.bringUp(ctx)
}

// bringUp does the migrations that were not done.
func (s *Store) bringUp(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, metaTable); err != nil {
		return err
	}
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		done, err := s.schema(ctx, tx) // another process may have been first
		if err != nil {
			return err
		}
		for _, m := range migrations[done:] {
			if _, err := tx.ExecContext(ctx, m); err != nil {
				return err
			}
		}
		if err := setMeta(ctx, tx, "schema", fmt.Sprint(len(migrations))); err != nil {
			return err
		}
		_, err = s.schema(ctx, tx) // what was half there before must not be taken for whole
		return err
	})
}

// wholeTables are the tables of the last schema.
var wholeTables = []string{"meta", "dumps", "dump_paths", "dump_modules", "buckets", "stacks", "frames", "clusters", "representatives"}

// schema is how many migrations were done.
func (s *Store) schema(ctx context.Context, q querier) (int64, error) {
	tables := map[string]bool{}
	err := each(ctx, q, s.dialect.tables, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		tables[name] = true
		return err
	})
	switch {
	case err != nil || len(tables) == 0:
		return 0, err
	case !tables["meta"]:
		return 0, ErrForeign
	}
	var text string
	err = each(ctx, q, `SELECT value FROM meta WHERE name = 'schema'`, func(r *sql.Rows) error { return r.Scan(&text) })
	if err != nil {
		return 0, fmt.Errorf("%w (%w)", ErrForeign, err)
	}
	done, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil || done < 0 || done == 0 && len(tables) > 1 {
		return 0, ErrForeign
	}
	if done > int64(len(migrations)) {
		return 0, fmt.Errorf("the database has schema %d; this program knows schemas up to %d", done, len(migrations))
	}
	if done == int64(len(migrations)) {
		for _, name := range wholeTables {
			if !tables[name] {
				return 0, fmt.Errorf("the database is damaged: it has no table %s", name)
			}
		}
	}
	return done, nil
}

// ErrForeign is a database that something else made.
var ErrForeign = errors.New("a database of something else")
