package fleet

import (
	"slices"
	"testing"

	"dumptriage/fleet/store"
	"dumptriage/report"
)

// The example of a bucket is the dump whose blame is shown, and the first one when nothing
// is blamed.
func TestTallyExample(t *testing.T) {
	var tally Tally
	add := func(bucket, path, blame string) {
		tally.Add(&Facts{Path: path, Signature: report.SignatureJSON{ID: bucket}, Blame: blame, Confidence: blame})
	}
	add("a", "1", "")
	add("a", "2", "app!f")
	add("a", "3", "app!g")
	add("b", "4", "")
	add("b", "5", "")
	want := []report.BucketRow{{ID: "a", Count: 3, Example: "2", Blame: "app!f", Confidence: "app!f"}, {ID: "b", Count: 2, Example: "4"}}
	if got := tally.Rows(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// What was there at a time comes in the order of what there was.
func TestAsOf(t *testing.T) {
	is := []store.Bucket{{ID: "a", Dumps: 9}, {ID: "b", Dumps: 7}, {ID: "c", Dumps: 5}}
	got := asOf(is, map[string]store.Bucket{"a": {Dumps: 1}, "b": {Dumps: 3}})
	if len(got) != 2 || got[0].ID != "b" || got[0].Dumps != 3 || got[1].ID != "a" || got[1].Dumps != 1 {
		t.Errorf("%+v", got)
	}
}
