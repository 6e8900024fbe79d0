package store

import (
	"context"
	"database/sql"
)

// builds are the dumps of a bucket, and of those merged into it, in the order of their
// times, with no more than tells which builds they are of.
func builds(ctx context.Context, q querier, bucket string) ([]Incident, error) {
	var out []Incident
	err := each(ctx, q, `SELECT d.dump_key, d.process, d.version, m.name, m.version
		FROM dumps d JOIN buckets b ON b.bucket = d.bucket LEFT JOIN dump_modules m ON m.dump_key = d.dump_key
		WHERE b.bucket = $1 OR b.merged_into = $1 ORDER BY COALESCE(d.captured, ''), d.dump_key, m.place`, func(r *sql.Rows) error {
		in := Incident{Bucket: bucket}
		var name, version sql.NullString
		if err := r.Scan(&in.Key, &in.Process, &in.Version, &name, &version); err != nil {
			return err
		}
		if n := len(out); n == 0 || out[n-1].Key != in.Key {
			out = append(out, in)
		}
		if name.Valid {
			last := &out[len(out)-1]
			last.Modules = append(last.Modules, Module{Name: name.String, Version: version.String})
		}
		return nil
	}, bucket)
	return out, err
}

// From returns how many dumps of a bucket are of a version of a module, "" for the
// process's image, or of a later one.
func (s *Store) From(ctx context.Context, bucket, module, version string) (int, error) {
	dumps, err := builds(ctx, s.db, bucket)
	n := 0
	for i := range dumps {
		if v := dumps[i].versionOf(module); v != "" && CompareVersions(v, version) >= 0 {
			n++
		}
	}
	return n, err
}
