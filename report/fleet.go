package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
)

// BatchJSON tells a record of many from the others.
type BatchJSON struct {
	Key      string `json:"key,omitempty" jsonschema_description:"of the content of the files; equal for equal dumps whatever their names"`
	Options  string `json:"options,omitempty" jsonschema_description:"of the flags that change records, when any was given: equal for equal flags"`
	Redacted bool   `json:"redacted,omitempty"`
}

func batchJSON(opt *Options) *BatchJSON {
	if opt.BatchKey == "" && opt.BatchOptions == "" {
		return nil
	}
	return &BatchJSON{opt.BatchKey, opt.BatchOptions, opt.Redact != nil}
}

// BatchFailureJSON is FailureJSON for a record of a batch.
func BatchFailureJSON(w io.Writer, opt Options, inputs []triage.Input, errs []*dump.Error) error {
	opt.hide(&inputs, &errs)
	d := header(opt.Tool, inputs, errs)
	d.Status, d.Batch = StatusError, batchJSON(&opt)
	return newStream(w, opt).document(&d, nil)
}

// BucketRow is a bucket in a table.
type BucketRow struct {
	ID      string
	Text    string
	Count   int
	Note    string // such as new; "" nothing
	Example string // path of a dump of it
	// Blame is what is held responsible in that dump, "" nothing.
	Blame, Confidence string
}

// example tells of one dump of a bucket what was judged of it, and where it lies.
func (r *BucketRow) example() string {
	if r.Blame == "" {
		return "example " + clean(r.Example)
	}
	blame := "blame " + clean(r.Blame)
	if r.Confidence != "" {
		blame += " (" + clean(r.Confidence) + ")"
	}
	return blame + ", example " + clean(r.Example)
}

// bucketRows is how many buckets a table shows.
const bucketRows = 40

// BatchFailure is a dump that gave no answer, and why.
type BatchFailure struct{ Path, Reason string }

// BatchFailures is how many of them the table names.
const BatchFailures = 10

// BatchTable writes what a batch came to: its buckets, largest first, how many
// records there are of each status, and which dumps failed.
func BatchTable(w io.Writer, rows []BucketRow, records int, status map[string]int, failed []BatchFailure) error {
	bw := bufio.NewWriter(w)
	if len(rows) > 0 {
		fmt.Fprintf(bw, "%7s  %-16s  %s\n", "dumps", "bucket", "signature")
	}
	for i, r := range rows {
		if i == bucketRows {
			fmt.Fprintf(bw, "%7s  and %d buckets more\n", "", len(rows)-i)
			break
		}
		fmt.Fprintf(bw, "%7d  %-16s  %s\n", r.Count, clean(r.ID), clean(r.Text))
		fmt.Fprintf(bw, "%7s  %-16s  %s\n", "", r.Note, r.example())
	}
	fmt.Fprintf(bw, "%s in %s: %d OK, %d partial, %d failed\n", plural(records, "dump"), plural(len(rows), "bucket"), status[StatusOK], status[StatusPartial], status[StatusError])
	for _, f := range failed {
		reason := strings.TrimPrefix(f.Reason, f.Path+": ")
		fmt.Fprintf(bw, "failed: %s\n", joinWith(": ", clean(f.Path), clean(reason)))
	}
	if more := status[StatusError] - len(failed); more > 0 {
		fmt.Fprintf(bw, "and %d more, whose lines have the status ERROR\n", more)
	}
	return bw.Flush()
}
