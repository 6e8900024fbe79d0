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
	err := each(ctx, tx, `SELECT cluster, kind FROM clusters ORDER BY ordinal`, func(r *sql.Rows) error {
		var c similar.Cluster
		err := r.Scan(&c.ID, &c.Group)
		index[c.ID] = len(out)
		out = append(out, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	sizes, err := kindSizes(ctx, tx)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, `SELECT r.cluster, r.place, r.stack, f.name FROM representatives r JOIN frames f ON f.stack = r.stack ORDER BY r.cluster, r.place, f.place`, func(r *sql.Rows) error {
		var id, stack, name string
		var place int
		if err := r.Scan(&id, &place, &stack, &name); err != nil {
			return err
		}
		at, ok := index[id]
		if !ok || place < 0 || place > len(out[at].Kinds) {
			return fmt.Errorf("representative %d of cluster %q has no place", place, id)
		}
		kinds := &out[at].Kinds
		if place == len(*kinds) {
			*kinds = append(*kinds, similar.Kind{ID: stack, Size: sizes[stack]})
		}
		k := &(*kinds)[place]
		k.Frames = append(k.Frames, name)
		return nil
	})
	return out, err
}

// kindSizes is how many stacks each representative stands for.
func kindSizes(ctx context.Context, tx *sql.Tx) (map[string]int, error) {
	out := map[string]int{}
	err := each(ctx, tx, `SELECT nearest, COUNT(*) FROM stacks WHERE nearest IS NOT NULL GROUP BY nearest`, func(r *sql.Rows) error {
		var stack string
		var n int
		err := r.Scan(&stack, &n)
		out[stack] = n
		return err
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
