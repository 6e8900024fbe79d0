package store

import (
	"context"
	"database/sql"
	"fmt"

	"dumptriage/fleet/similar"
)

// readModel reads the clusters.
func readModel(ctx context.Context, tx *sql.Tx, p similar.Params) (*similar.Model, error) {
	clusters, err := readClusters(ctx, tx)
	if err != nil {
		return nil, err
	}
	return similar.Restore(p, clusters), nil
}

func readClusters(ctx context.Context, tx *sql.Tx) ([]similar.Cluster, error) {
	var out []similar.Cluster
	index := map[string]int{}
	err := each(ctx, tx, `SELECT cluster, kind, stacks FROM clusters ORDER BY ordinal`, func(r *sql.Rows) error {
		var c similar.Cluster
		err := r.Scan(&c.ID, &c.Group, &c.Size)
		index[c.ID] = len(out)
		out = append(out, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, `SELECT r.cluster, r.place, f.name FROM representatives r JOIN frames f ON f.stack = r.stack ORDER BY r.cluster, r.place, f.place`, func(r *sql.Rows) error {
		var id, name string
		var place int
		if err := r.Scan(&id, &place, &name); err != nil {
			return err
		}
		at, ok := index[id]
		if !ok || place < 0 || place > len(out[at].Representatives) {
			return fmt.Errorf("representative %d of cluster %q has no place", place, id)
		}
		reps := &out[at].Representatives
		if place == len(*reps) {
			*reps = append(*reps, nil)
		}
		(*reps)[place] = append((*reps)[place], name)
		return nil
	})
	return out, err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls a function for each row.
func each(ctx context.Context, q querier, query string, row func(*sql.Rows) error, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
