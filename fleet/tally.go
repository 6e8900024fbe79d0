package fleet

import (
	"cmp"
	"slices"

	"dumptriage/report"
)

// Tally counts the records of a run by status and bucket.
type Tally struct {
	Records int
	Status  map[string]int
	Failed  []report.BatchFailure // the first of those that gave no answer
	buckets map[string]*report.BucketRow
}

// Add counts a record.
func (t *Tally) Add(f *Facts) {
	if t.Status == nil {
		t.Status, t.buckets = map[string]int{}, map[string]*report.BucketRow{}
	}
	t.Records++
	t.Status[f.Status]++
	if f.Status == report.StatusError && len(t.Failed) < report.BatchFailures {
		t.Failed = append(t.Failed, report.BatchFailure{Path: f.Path, Reason: f.Reason})
	}
	if f.Signature.ID == "" {
		return
	}
	b := t.buckets[f.Signature.ID]
	if b == nil {
		b = &report.BucketRow{ID: f.Signature.ID, Text: f.Signature.Text, Example: f.Path}
		t.buckets[f.Signature.ID] = b
	}
	b.Count++
	if b.Blame == "" && f.Blame != "" {
		b.Example, b.Blame, b.Confidence = f.Path, f.Blame, f.Confidence
	}
}

// Rows returns the buckets, largest first, equal ones by id.
func (t *Tally) Rows() []report.BucketRow {
	out := make([]report.BucketRow, 0, len(t.buckets))
	for _, b := range t.buckets {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b report.BucketRow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID))
	})
	return out
}
