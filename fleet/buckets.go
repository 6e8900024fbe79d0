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
	for _, v := range b.Modules {
		j.Modules = append(j.Modules, report.VersionJSON{Version: v.Value, Dumps: v.Dumps})
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
type Difference struct {
	New, Grown, Gone []report.BucketJSON
	Before, After    int // how many buckets there were and are
}

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
	d.Before = len(was)
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
// later, and before the second time unless that is zero. None is ever gone.
func DiffSince(ctx context.Context, s *store.Store, from, to time.Time) (d Difference, err error) {
	before, err := s.Before(ctx, from)
	if err != nil {
		return d, err
	}
	is, err := s.Buckets(ctx, "")
	if err != nil {
		return d, err
	}
	if !to.IsZero() {
		then, err := s.Before(ctx, to)
		if err != nil {
			return d, err
		}
		is = asOf(is, then)
	}
	counts := map[string]int{}
	for id := range before {
		counts[id] = before[id].Dumps
	}
	d = grown(counts, is)
	d.Before = len(before)
	return d, nil
}

// asOf is what of the buckets was there at a time, most dumps first.
func asOf(is []store.Bucket, then map[string]store.Bucket) []store.Bucket {
	var out []store.Bucket
	for _, b := range is {
		if was, ok := then[b.ID]; ok {
			b.Dumps, b.FirstSeen, b.LastSeen = was.Dumps, was.FirstSeen, was.LastSeen
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b store.Bucket) int { return b.Dumps - a.Dumps })
	return out
}

// grown lists the buckets that have more dumps than before.
func grown(before map[string]int, is []store.Bucket) (d Difference) {
	d.After = len(is)
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

// JoinedJSON is what came of a database that was added to another.
func JoinedJSON(path string, j store.Joined) report.JoinedJSON {
	out := report.JoinedJSON{Path: path, Dumps: j.Dumps, Added: j.Added}
	for _, c := range j.Conflicts {
		out.Conflicts = append(out.Conflicts, report.ConflictJSON(c))
	}
	return out
}
