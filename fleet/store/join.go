package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// Joined tells what came of another database.
type Joined struct {
	Dumps, Added int // how many it has, and how many of them were not known
	// Conflicts are what people said of a bucket there and otherwise here, where it stays.
	Conflicts []Conflict
}

// Conflict is what two databases say differently of one bucket.
type Conflict struct{ Bucket, What, Here, There string }

// OtherError is what went wrong with the database that is joined, and not with the one that
// it is joined to.
type OtherError struct{ Err error }

func (e *OtherError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *OtherError) Unwrap() error { return e.Err }

// ofOther says whose error it is.
func ofOther(err error) error {
	if err == nil {
		return nil
	}
	return &OtherError{err}
}

// Join adds all dumps of another database, and what people said of its buckets where
// nothing is said here. It may be repeated: what is known is not added again.
func (s *Store) Join(ctx context.Context, other *Store) (j Joined, err error) {
	if err := s.Flush(ctx); err != nil {
		return j, err
	}
	known, err := s.keys(ctx)
	if err != nil {
		return j, err
	}
	// In the order of the dumps' own times, by which clusters would be made anew.
	keys, err := other.texts(ctx, `SELECT dump_key FROM dumps ORDER BY COALESCE(captured, ''), dump_key`)
	if err != nil {
		return j, ofOther(err)
	}
	j.Dumps = len(keys)
	for _, key := range keys {
		if err := s.take(ctx, other, key); err != nil {
			return j, err
		}
		if !known[key] {
			j.Added++
		}
		delete(known, key)
	}
	if err := s.Flush(ctx); err != nil {
		return j, err
	}
	// What is left was known here alone.
	j.Conflicts, err = s.takeStates(ctx, other, known)
	return j, err
}

func (s *Store) keys(ctx context.Context) (map[string]bool, error) {
	list, err := s.texts(ctx, `SELECT dump_key FROM dumps`)
	out := make(map[string]bool, len(list))
	for _, k := range list {
		out[k] = true
	}
	return out, err
}

// take adds a dump of another database under all its names.
func (s *Store) take(ctx context.Context, other *Store, key string) error {
	in, err := other.incident(ctx, key)
	if err != nil {
		return ofOther(err)
	}
	paths, err := other.texts(ctx, `SELECT path FROM dump_paths WHERE dump_key = $1 ORDER BY path`, key)
	if err != nil {
		return ofOther(err)
	}
	if len(paths) == 0 {
		return ofOther(fmt.Errorf("%w: dump %s has no path", ErrDamaged, key))
	}
	for _, in.Path = range paths {
		if err := s.Add(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// incident is a dump as it was added, without its path.
func (s *Store) incident(ctx context.Context, key string) (Incident, error) {
	in := Incident{Key: key}
	var captured, bucket, stack, algorithm, kind, class, text sql.NullString
	err := s.db.QueryRowContext(ctx, `SELECT d.status, d.reason, d.captured, d.process, d.version, d.arch, d.os, d.threads, d.bucket, d.stack, b.algorithm, b.kind, b.class, b.text
		FROM dumps d LEFT JOIN buckets b ON b.bucket = d.bucket WHERE d.dump_key = $1`, key).Scan(
		&in.Status, &in.Reason, &captured, &in.Process, &in.Version, &in.Arch, &in.OS, &in.Threads, &bucket, &stack, &algorithm, &kind, &class, &text)
	if err != nil {
		return in, err
	}
	if bucket.Valid && !text.Valid {
		return in, fmt.Errorf("%w: dump %s is of bucket %s, which is not there", ErrDamaged, key, bucket.String)
	}
	in.Captured, in.Bucket, in.Stack = timeOf(captured), bucket.String, stack.String
	in.Algorithm, in.Kind, in.Class, in.Text = algorithm.String, kind.String, class.String, text.String
	if in.Frames, err = s.texts(ctx, `SELECT name FROM frames WHERE stack = $1 ORDER BY place`, in.Stack); err != nil {
		return in, err
	}
	err = each(ctx, s.db, `SELECT name, version, code_id FROM dump_modules WHERE dump_key = $1 ORDER BY place`, func(r *sql.Rows) error {
		var m Module
		err := r.Scan(&m.Name, &m.Version, &m.CodeID)
		in.Modules = append(in.Modules, m)
		return err
	}, key)
	return in, err
}

// takeStates takes over what people said of another database's buckets. The dumps of
// mine, which that database did not know, are held against what it says is fixed.
func (s *Store) takeStates(ctx context.Context, other *Store, mine map[string]bool) ([]Conflict, error) {
	var said []Bucket
	err := each(ctx, other.db, `SELECT `+bucketColumns+` FROM buckets WHERE state <> 'new' OR note <> '' OR merged_into IS NOT NULL ORDER BY bucket`, func(r *sql.Rows) error {
		b, err := scanBucket(r)
		said = append(said, b)
		return err
	})
	if err != nil {
		return nil, ofOther(err)
	}
	var conflicts []Conflict
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		t := taker{adder{s, ctx, tx}, mine, nil}
		// What counts as what comes first: a state is held against all dumps that count.
		for _, take := range []func(is, there *Bucket) error{t.takeMerge, t.takeNote, t.takeState} {
			for i := range said {
				is, err := scanBucket(tx.QueryRowContext(ctx, `SELECT `+bucketColumns+` FROM buckets WHERE bucket = $1`, said[i].ID))
				if errors.Is(err, sql.ErrNoRows) {
					return ofOther(fmt.Errorf("%w: bucket %s has no dumps", ErrDamaged, said[i].ID))
				}
				if err == nil {
					err = take(&is, &said[i])
				}
				if err != nil {
					return err
				}
			}
		}
		conflicts = t.conflicts
		return nil
	})
	slices.SortStableFunc(conflicts, func(a, b Conflict) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return conflicts, err
}

// taker takes over what is said of buckets elsewhere, in one transaction.
type taker struct {
	adder
	mine      map[string]bool // dumps that are known here alone
	conflicts []Conflict
}

func (t *taker) differ(b *Bucket, what, here, there string) {
	t.conflicts = append(t.conflicts, Conflict{b.ID, what, here, there})
}

func (t *taker) takeNote(is, b *Bucket) error {
	switch {
	case b.Note == "" || b.Note == is.Note:
	case is.Note != "":
		t.differ(b, "note", is.Note, b.Note)
	default:
		return t.exec(`UPDATE buckets SET note = $2 WHERE bucket = $1`, b.ID, b.Note)
	}
	return nil
}

// takeMerge makes a bucket count as it does there. Its dumps from there were added before,
// and are held now against what is fixed here.
func (t *taker) takeMerge(is, b *Bucket) error {
	switch {
	case b.MergedInto == "" || b.MergedInto == is.MergedInto:
		return nil
	case is.MergedInto != "":
		t.differ(b, "merged", is.MergedInto, b.MergedInto)
		return nil
	}
	dumps, err := builds(t.ctx, t.tx, b.ID)
	if err != nil {
		return err
	}
	err = t.mergeAlso(b.ID, b.MergedInto)
	if errors.Is(err, errCannotMerge) {
		t.differ(b, "merged", "", b.MergedInto)
		return nil
	}
	if err != nil {
		return err
	}
	return t.hold(dumps, func(key string) bool { return !t.mine[key] })
}

// takeState takes over a state, and holds the dumps that are known here alone against it.
func (t *taker) takeState(is, b *Bucket) error {
	switch {
	case b.State == StateNew:
		return nil
	case is.State == StateNew:
		return t.believe(b)
	case b.fixed() != is.fixed():
		t.differ(b, "state", is.saying(), b.saying())
		return nil
	case b.State == StateRegressed && (is.RegressedVersion == "" || CompareVersions(b.RegressedVersion, is.RegressedVersion) < 0):
		return t.exec(`UPDATE buckets SET state = 'regressed', regressed_version = $2 WHERE bucket = $1`, b.ID, b.RegressedVersion)
	}
	return nil
}

func (t *taker) believe(b *Bucket) error {
	err := t.exec(`UPDATE buckets SET state = $2, fixed_module = $3, fixed_version = $4, regressed_version = $5 WHERE bucket = $1`,
		b.ID, string(b.State), b.FixedModule, b.FixedVersion, b.RegressedVersion)
	if err != nil || b.FixedVersion == "" {
		return err
	}
	dumps, err := builds(t.ctx, t.tx, b.ID)
	if err != nil {
		return err
	}
	return t.hold(dumps, func(key string) bool { return t.mine[key] })
}

// hold holds those of the dumps that count against what is fixed.
func (t *taker) hold(dumps []Incident, counts func(key string) bool) error {
	for i := range dumps {
		if !counts(dumps[i].Key) {
			continue
		}
		if err := t.regression(&dumps[i]); err != nil {
			return err
		}
	}
	return nil
}

// saying is what a person reads of a state.
func (b *Bucket) saying() string {
	if b.FixedVersion == "" {
		return string(b.State)
	}
	return string(b.State) + ", fixed in " + b.FixedModule + " " + b.FixedVersion
}

// fixed is a state as people set it: one that came back was fixed.
func (b *Bucket) fixed() [3]string {
	state := b.State
	if state == StateRegressed {
		state = StateFixed
	}
	return [3]string{string(state), b.FixedModule, b.FixedVersion}
}
