package report

import (
	"bufio"
	"fmt"
	"io"
)

// ComparedJSON is what was compared: two databases, or one at two times.
type ComparedJSON struct {
	Older         string `json:"older,omitempty" jsonschema_description:"the older of two databases"`
	Newer         string `json:"newer" jsonschema_description:"the newer database, or the one whose dumps are told apart by when they were written"`
	Since         string `json:"since,omitempty" jsonschema_description:"the day from which on dumps count"`
	Until         string `json:"until,omitempty" jsonschema_description:"the day from which on they count no more"`
	BucketsBefore int    `json:"buckets_before"`
	Buckets       int    `json:"buckets" jsonschema_description:"in the newer database, or by the end of the time"`
}

// BucketDiff is how buckets have changed.
type BucketDiff struct {
	Compared ComparedJSON
	Changed  []BucketJSON
}

// BucketDiffJSON writes how buckets have changed as one JSON object.
func BucketDiffJSON(w io.Writer, diff BucketDiff, opt Options) error {
	opt.hide(&diff)
	d := header(opt.Tool, nil, nil)
	d.Status, d.Compared = StatusOK, &diff.Compared
	if d.Buckets = diff.Changed; d.Buckets == nil {
		d.Buckets = []BucketJSON{}
	}
	return newStream(w, opt).document(&d, nil)
}

// BucketDiffText writes a table of the buckets that have changed, or that none has.
func BucketDiffText(w io.Writer, diff BucketDiff, opt Options) error {
	if len(diff.Changed) > 0 {
		return BucketsText(w, diff.Changed, opt)
	}
	opt.hide(&diff)
	bw := bufio.NewWriter(w)
	c := &diff.Compared
	after, before := plural(c.Buckets, "bucket"), plural(c.BucketsBefore, "bucket")
	switch {
	case c.Older != "":
		fmt.Fprintf(bw, "no bucket is new, has grown or is gone: %s has %s, the older %s has %s\n", clean(c.Newer), after, clean(c.Older), before)
	case c.Until != "":
		fmt.Fprintf(bw, "no bucket is new or has grown by dumps written from %s on and before %s: %s had %s\n", c.Since, c.Until, clean(c.Newer), after)
	default:
		fmt.Fprintf(bw, "no bucket is new or has grown by dumps written from %s on: %s has %s\n", c.Since, clean(c.Newer), after)
	}
	return bw.Flush()
}
