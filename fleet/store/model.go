package store

import (
	"context"
	"database/sql"

	"dumptriage/fleet/similar"
)

// readModel reads the clusters and how common frames are.
func readModel(ctx context.Context, tx *sql.Tx, p similar.Params) (*similar.Model, error) {
	st := similar.State{Frequencies: map[string]similar.Frequency{}}
	now, err := metaNumber(ctx, tx, "stacks")
	if err != nil {
		return nil, err
	}
	weighed, err := metaNumber(ctx, tx, "weighed")
	if err != nil {
		return nil, err
	}
	st.Stacks = similar.Frequency{Now: uint32(now), Weighed: uint32(weighed)}
	err = each(ctx, tx, `SELECT name, now, weighed FROM frequencies`, func(r *sql.Rows) error {
		var name string
		var f similar.Frequency
		if err := r.Scan(&name, &f.Now, &f.Weighed); err != nil {
			return err
		}
		st.Frequencies[name] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	if st.Clusters, err = readClusters(ctx, tx); err != nil {
		return nil, err
	}
	return similar.Restore(p, st), nil
}

func readClusters(ctx context.Context, tx *sql.Tx) ([]similar.Cluster, error) {
	frames := map[string][]string{}
	err := each(ctx, tx, `SELECT f.stack, f.name FROM frames f WHERE f.stack IN (SELECT cluster FROM clusters) OR f.stack IN (SELECT far_stack FROM clusters)
		ORDER BY f.stack, f.place`, func(r *sql.Rows) error {
		var stack, name string
		if err := r.Scan(&stack, &name); err != nil {
			return err
		}
		frames[stack] = append(frames[stack], name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []similar.Cluster
	err = each(ctx, tx, `SELECT cluster, kind, far_stack, far_score, stacks FROM clusters ORDER BY ordinal`, func(r *sql.Rows) error {
		var c similar.Cluster
		var far sql.NullString
		if err := r.Scan(&c.ID, &c.Group, &far, &c.FarScore, &c.Size); err != nil {
			return err
		}
		c.Leader = frames[c.ID]
		if far.Valid {
			c.Far = frames[far.String]
		}
		out = append(out, c)
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
