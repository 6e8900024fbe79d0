package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is what people say of a bucket.
type State string

// The states. Regressed is set by Add, for a bucket that was fixed.
const (
	StateNew       State = "new"
	StateKnown     State = "known"
	StateFixed     State = "fixed"
	StateRegressed State = "regressed"
)

// States are all of them.
var States = []State{StateNew, StateKnown, StateFixed, StateRegressed}

// Bucket is a bucket and what its dumps have in common.
type Bucket struct {
	ID                  string
	Algorithm           string
	Kind, Class, Text   string
	Dumps               int       // of buckets merged into it, too
	FirstSeen, LastSeen time.Time // zero: no dump says
	State               State
	FixedModule         string // "" is the process's image
	FixedVersion        string
	RegressedVersion    string // the first version at or after FixedVersion that had it again
	Note                string
	MergedInto          string // "" unless merged
	Clusters            []string
	Versions            []Count  // of the process's image, as "image version"
	Modules             []Count  // of the other modules on the stacks, as "module version"
	Examples            []string // paths
}

// Count is a value and how many dumps have it.
type Count struct {
	Value string
	Dumps int
}

// ErrNoBucket is a bucket that is not there.
var ErrNoBucket = errors.New("no such bucket")

// ErrDamaged is a database whose tables do not agree.
var ErrDamaged = errors.New("the database is damaged")

const bucketColumns = `bucket, algorithm, kind, class, text, dumps, first_seen, last_seen, state, fixed_module, fixed_version, regressed_version, note, merged_into`

func scanBucket(r interface{ Scan(...any) error }) (Bucket, error) {
	var b Bucket
	var first, last, into sql.NullString
	err := r.Scan(&b.ID, &b.Algorithm, &b.Kind, &b.Class, &b.Text, &b.Dumps, &first, &last, &b.State, &b.FixedModule, &b.FixedVersion, &b.RegressedVersion, &b.Note, &into)
	b.FirstSeen, b.LastSeen, b.MergedInto = timeOf(first), timeOf(last), into.String
	for _, t := range []*string{&b.Text, &b.Class, &b.Kind, &b.Note} { // who else wrote to the database may have written much
		*t = capped(*t)
	}
	return b, err
}

// Buckets returns the buckets, most dumps first; with a state only those in it.
// One that was merged counts with the one that it was merged into.
func (s *Store) Buckets(ctx context.Context, state State) ([]Bucket, error) {
	var all []Bucket
	err := each(ctx, s.db, `SELECT `+bucketColumns+` FROM buckets ORDER BY bucket`, func(r *sql.Rows) error {
		b, err := scanBucket(r)
		all = append(all, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	for i, b := range all {
		index[b.ID] = i
	}
	for _, b := range all {
		if b.MergedInto == "" {
			continue
		}
		i, ok := index[b.MergedInto]
		if !ok || all[i].MergedInto != "" { // which Merge never leaves; the dumps would count nowhere
			return nil, fmt.Errorf("%w: bucket %s is merged into %s, which is no bucket of its own", ErrDamaged, b.ID, b.MergedInto)
		}
		all[i].absorb(&b)
	}
	all = slices.DeleteFunc(all, func(b Bucket) bool { return b.MergedInto != "" || state != "" && b.State != state })
	slices.SortStableFunc(all, func(a, b Bucket) int { return b.Dumps - a.Dumps })
	return all, nil
}

// Before returns the buckets as they were at a time: with how many dumps that had been
// written by then, and when the first and the last of these were. Merged ones count where
// they were merged into. Dumps that do not tell when they were written are taken for old:
// nothing says that they are new.
func (s *Store) Before(ctx context.Context, t time.Time) (map[string]Bucket, error) {
	out := map[string]Bucket{}
	err := each(ctx, s.db, `SELECT COALESCE(b.merged_into, b.bucket), COUNT(*), MIN(d.captured), MAX(d.captured) FROM dumps d JOIN buckets b ON b.bucket = d.bucket
		WHERE d.captured IS NULL OR d.captured < $1 GROUP BY 1`, func(r *sql.Rows) error {
		var b Bucket
		var first, last sql.NullString
		err := r.Scan(&b.ID, &b.Dumps, &first, &last)
		b.FirstSeen, b.LastSeen = timeOf(first), timeOf(last)
		out[b.ID] = b
		return err
	}, timeText(t))
	return out, err
}

// absorb counts another bucket's dumps as this one's.
func (b *Bucket) absorb(o *Bucket) {
	b.Dumps += o.Dumps
	if !o.FirstSeen.IsZero() && (b.FirstSeen.IsZero() || o.FirstSeen.Before(b.FirstSeen)) {
		b.FirstSeen = o.FirstSeen
	}
	if o.LastSeen.After(b.LastSeen) {
		b.LastSeen = o.LastSeen
	}
}

// Resolve returns the id of the bucket that a begin of an id names.
func (s *Store) Resolve(ctx context.Context, prefix string) (string, error) {
	if prefix == "" || strings.Trim(prefix, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%w: %q is no bucket id", ErrNoBucket, prefix)
	}
	var ids []string
	err := each(ctx, s.db, `SELECT bucket FROM buckets WHERE bucket LIKE $1 || '%' ORDER BY bucket LIMIT 2`, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, prefix)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("%w: %s", ErrNoBucket, prefix)
	case len(ids) > 1:
		return "", fmt.Errorf("%s is the begin of several ids: %s, %s and perhaps more", prefix, ids[0], ids[1])
	}
	return ids[0], nil
}

// examples is how many paths a bucket shows.
const examples = 10

// Bucket returns a bucket with its clusters, versions and examples.
func (s *Store) Bucket(ctx context.Context, id string) (Bucket, error) {
	b, err := scanBucket(s.db.QueryRowContext(ctx, `SELECT `+bucketColumns+` FROM buckets WHERE bucket = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return b, fmt.Errorf("%w: %s", ErrNoBucket, id)
	}
	if err != nil {
		return b, err
	}
	err = each(ctx, s.db, `SELECT `+bucketColumns+` FROM buckets WHERE merged_into = $1`, func(r *sql.Rows) error {
		o, err := scanBucket(r)
		b.absorb(&o)
		return err
	}, id)
	if err != nil {
		return b, err
	}
	const of = ` IN (SELECT bucket FROM buckets WHERE bucket = $1 OR merged_into = $1)`
	if b.Clusters, err = s.texts(ctx, `SELECT DISTINCT s.cluster FROM stacks s JOIN dumps d ON d.stack = s.stack WHERE d.bucket`+of+` ORDER BY s.cluster`, id); err != nil {
		return b, err
	}
	if b.Examples, err = s.texts(ctx, fmt.Sprintf(`SELECT p.path FROM dump_paths p JOIN dumps d ON d.dump_key = p.dump_key WHERE d.bucket%s ORDER BY COALESCE(d.captured, '') DESC, p.path LIMIT %d`, of, examples), id); err != nil {
		return b, err
	}
	if b.Versions, err = s.counts(ctx, `SELECT process || CASE version WHEN '' THEN '' ELSE ' ' || version END, COUNT(*) FROM dumps WHERE bucket`+of+` GROUP BY 1 ORDER BY 2 DESC, 1`, id); err != nil {
		return b, err
	}
	b.Modules, err = s.counts(ctx, fmt.Sprintf(`SELECT m.name || ' ' || m.version, COUNT(*) FROM dump_modules m JOIN dumps d ON d.dump_key = m.dump_key
		WHERE m.version <> '' AND LOWER(m.name) <> LOWER(d.process) AND d.bucket%s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %d`, of, moduleBuilds), id)
	return b, err
}

// moduleBuilds is how many builds of modules a bucket shows.
const moduleBuilds = 100

func (s *Store) counts(ctx context.Context, query string, args ...any) ([]Count, error) {
	var out []Count
	err := each(ctx, s.db, query, func(r *sql.Rows) error {
		var c Count
		err := r.Scan(&c.Value, &c.Dumps)
		out = append(out, c)
		return err
	}, args...)
	return out, err
}

// texts is the first column of a query's rows.
func (s *Store) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var out []string
	err := each(ctx, s.db, query, func(r *sql.Rows) error {
		var t sql.NullString
		err := r.Scan(&t)
		if t.Valid {
			out = append(out, t.String)
		}
		return err
	}, args...)
	return out, err
}

// Related returns the other buckets whose dumps have stacks in the same clusters:
// candidates for merging. Most dumps first.
func (s *Store) Related(ctx context.Context, id string) ([]string, error) {
	return s.texts(ctx, `SELECT d.bucket FROM dumps d JOIN stacks s ON s.stack = d.stack
		WHERE d.bucket <> $1 AND s.cluster IN (SELECT s2.cluster FROM stacks s2 JOIN dumps d2 ON d2.stack = s2.stack WHERE d2.bucket = $1)
		GROUP BY d.bucket ORDER BY COUNT(*) DESC, d.bucket`, id)
}

// Change is what people may say of a bucket; nil leaves as it is.
type Change struct {
	State        *State
	FixedModule  *string
	FixedVersion *string
	Note         *string
}

// Set changes a bucket. Another state than regressed forgets in which version it
// came back.
func (s *Store) Set(ctx context.Context, id string, c Change) error {
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		for _, column := range []struct {
			name  string
			value *string
		}{{"state", (*string)(c.State)}, {"fixed_module", c.FixedModule}, {"fixed_version", c.FixedVersion}, {"note", c.Note}} {
			if column.value == nil {
				continue
			}
			r, err := tx.ExecContext(ctx, `UPDATE buckets SET `+column.name+` = $2 WHERE bucket = $1`, id, storable(*column.value))
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n == 0 {
				return errors.Join(err, fmt.Errorf("%w: %s", ErrNoBucket, id))
			}
		}
		if c.State != nil && *c.State != StateRegressed {
			_, err := tx.ExecContext(ctx, `UPDATE buckets SET regressed_version = '' WHERE bucket = $1`, id)
			return err
		}
		return nil
	})
}

// errCannotMerge is a merge that would leave dumps counted nowhere or twice.
var errCannotMerge = errors.New("cannot be merged")

// Merge makes the dumps of one bucket count as another's, those to come included.
// What had been merged into the first follows.
func (s *Store) Merge(ctx context.Context, from, into string) error {
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		a := adder{s, ctx, tx}
		return a.mergeAlso(from, into)
	})
}

// mergeAlso merges a bucket in a transaction.
func (a *adder) mergeAlso(from, into string) error {
	var further sql.NullString
	err := a.tx.QueryRowContext(a.ctx, `SELECT merged_into FROM buckets WHERE bucket = $1`, into).Scan(&further)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w (%w: %s)", errCannotMerge, ErrNoBucket, into)
	case err != nil:
		return err
	case further.Valid:
		return fmt.Errorf("%w: %s is itself merged into %s", errCannotMerge, into, further.String)
	case from == into:
		return fmt.Errorf("%w: %s into itself", errCannotMerge, from)
	}
	r, err := a.tx.ExecContext(a.ctx, `UPDATE buckets SET merged_into = $2 WHERE bucket = $1 OR merged_into = $1`, from, into)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrNoBucket, from))
	}
	return nil
}

// CannotMerge reports whether Merge refused what was asked for.
func CannotMerge(err error) bool { return errors.Is(err, errCannotMerge) }

// Count is how many dumps, buckets and clusters there are.
func (s *Store) Count(ctx context.Context) (dumps, buckets, clusters int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM dumps), (SELECT COUNT(*) FROM buckets WHERE merged_into IS NULL), (SELECT COUNT(*) FROM clusters)`).Scan(&dumps, &buckets, &clusters)
	return dumps, buckets, clusters, err
}
