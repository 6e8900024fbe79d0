package fleet

import (
	"context"
	"slices"
	"time"

	"dumptriage/fleet/store"
	"dumptriage/report"
)

// Incident is the facts as the store keeps them.
func (f *Facts) Incident() store.Incident {
	in := store.Incident{Key: f.Key, Path: f.Path, Status: f.Status, Reason: f.Reason, Captured: f.Captured, Process: f.Process, Version: f.Version,
		Arch: f.Arch, OS: f.OS, Threads: f.Threads}
	if s := &f.Signature; s.ID != "" {
		in.Algorithm, in.Kind, in.Class, in.Text, in.Bucket, in.Stack, in.Frames = s.Algorithm, s.Kind, s.Class, s.Text, s.ID, s.ExactID, s.Stack
	}
	for _, m := range f.Modules {
		in.Modules = append(in.Modules, store.Module(m))
	}
	return in
}

// BucketJSON is a bucket as the report shows it.
func BucketJSON(b *store.Bucket) report.BucketJSON {
	j := report.BucketJSON{ID: b.ID, Text: b.Text, Algorithm: b.Algorithm, Kind: b.Kind, Class: b.Class, Dumps: b.Dumps, FirstSeen: instant(b.FirstSeen), LastSeen: instant(b.LastSeen),
		State: string(b.State), FixedModule: b.FixedModule, FixedVersion: b.FixedVersion, RegressedVersion: b.RegressedVersion, Note: b.Note, MergedInto: b.MergedInto,
		Clusters: b.Clusters, Examples: b.Examples}
	for _, v := range b.Versions {
		j.Versions = append(j.Versions, report.VersionJSON{Version: v.Value, Dumps: v.Dumps})
	}
	return j
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Difference is how the buckets of one database differ from an earlier one's.
type Difference struct{ New, Grown, Gone []report.BucketJSON }

// List is all of them, each with its change.
func (d Difference) List() []report.BucketJSON { return slices.Concat(d.New, d.Grown, d.Gone) }

// Diff compares two databases. What is in the second is newer.
func Diff(ctx context.Context, older, newer *store.Store) (d Difference, err error) {
	was, err := older.Buckets(ctx, "")
	if err != nil {
		return d, err
	}
	is, err := newer.Buckets(ctx, "")
	if err != nil {
		return d, err
	}
	before := map[string]int{}
	for i := range was {
		before[was[i].ID] = was[i].Dumps
	}
	d = grown(before, is)
	there := map[string]bool{}
	for i := range is {
		there[is[i].ID] = true
	}
	for i := range was {
		if !there[was[i].ID] {
			j := BucketJSON(&was[i])
			j.Change = "gone"
			d.Gone = append(d.Gone, j)
		}
	}
	return d, nil
}

// DiffSince tells which buckets of a database have dumps that were written at a time or
// later. None is ever gone.
func DiffSince(ctx context.Context, s *store.Store, t time.Time) (d Difference, err error) {
	before, err := s.CountBefore(ctx, t)
	if err != nil {
		return d, err
	}
	is, err := s.Buckets(ctx, "")
	return grown(before, is), err
}

// grown lists the buckets that have more dumps than before.
func grown(before map[string]int, is []store.Bucket) (d Difference) {
	for i := range is {
		j := BucketJSON(&is[i])
		switch old, known := before[j.ID]; {
		case !known:
			j.Change = "new"
			d.New = append(d.New, j)
		case j.Dumps > old:
			j.Change, j.Before = "grown", old
			d.Grown = append(d.Grown, j)
		}
	}
	return d
}
