package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"dumptriage/fleet/similar"
)

// paramsName is where meta has the measure's parameters, if not the default ones.
const paramsName = "params"

// Labelled is a stack and the fault that people say it shows.
type Labelled struct {
	Stack, Kind, Fault string
	Frames             []string
}

// Params returns the parameters that clusters are made by.
func (s *Store) Params() similar.Params { return s.params }

// readParams reads those of the database.
func (s *Store) readParams(ctx context.Context) error {
	var text string
	err := s.db.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = $1`, paramsName).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &s.params)
}

// stackOrder is the order in which stacks are placed anew: that of the dumps' own
// times, so that a cluster is named by what came first.
const stackOrder = ` ORDER BY COALESCE((SELECT MIN(d.captured) FROM dumps d WHERE d.stack = s.stack), ''), s.stack`

// Labels returns the distinct stacks of the dumps that label knows, by their key,
// a path, or their bucket, in the order in which they would be placed. A stack of
// two faults is of the first that sorts.
func (s *Store) Labels(ctx context.Context, label func(key, path, bucket string) string) ([]Labelled, error) {
	faults := map[string]string{}
	err := each(ctx, s.db, `SELECT d.dump_key, p.path, COALESCE(d.bucket, ''), d.stack FROM dumps d JOIN dump_paths p ON p.dump_key = d.dump_key WHERE d.stack IS NOT NULL`, func(r *sql.Rows) error {
		var key, path, bucket, stack string
		if err := r.Scan(&key, &path, &bucket, &stack); err != nil {
			return err
		}
		if f := label(key, path, bucket); f != "" && (faults[stack] == "" || f < faults[stack]) {
			faults[stack] = f
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, err := s.stacks(ctx, s.db)
	if err != nil {
		return nil, err
	}
	var out []Labelled
	for _, l := range all {
		if l.Fault = faults[l.Stack]; l.Fault != "" {
			out = append(out, l)
		}
	}
	return out, nil
}

// stacks reads every stack in the order of placing.
func (s *Store) stacks(ctx context.Context, q querier) ([]Labelled, error) {
	var out []Labelled
	index := map[string]int{}
	err := each(ctx, q, `SELECT s.stack, s.kind FROM stacks s`+stackOrder, func(r *sql.Rows) error {
		var l Labelled
		err := r.Scan(&l.Stack, &l.Kind)
		index[l.Stack] = len(out)
		out = append(out, l)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, q, `SELECT stack, name FROM frames ORDER BY stack, place`, func(r *sql.Rows) error {
		var stack, name string
		err := r.Scan(&stack, &name)
		if at, ok := index[stack]; ok {
			out[at].Frames = append(out[at].Frames, name)
		}
		return err
	})
	return out, err
}

// Recluster makes all clusters anew by other parameters, which the database keeps.
// Clusters get other names; buckets are not touched.
func (s *Store) Recluster(ctx context.Context, p similar.Params) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	s.model, s.params = nil, p
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		a := adder{s, ctx, tx}
		if err := setMeta(ctx, tx, paramsName, string(text)); err != nil {
			return err
		}
		for _, table := range []string{"clusters", "representatives"} {
			if err := a.exec(`DELETE FROM ` + table); err != nil {
				return err
			}
		}
		if err := a.loadModel(); err != nil {
			return err
		}
		all, err := s.stacks(ctx, tx)
		if err != nil {
			return err
		}
		for _, l := range all {
			if err := a.cluster(l.Stack, l.Kind, l.Frames); err != nil {
				return err
			}
		}
		return a.keepModel()
	})
	if err != nil {
		s.model = nil
	}
	return err
}
