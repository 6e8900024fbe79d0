package report

import (
	"bufio"
	"fmt"
	"io"

	"dumptriage/dump"
	"dumptriage/triage"
)

// BatchJSON tells a record of many from the others.
type BatchJSON struct {
	Key string `json:"key" jsonschema_description:"of the content of the files; equal for equal dumps whatever their names"`
}

func batchJSON(key string) *BatchJSON {
	if key == "" {
		return nil
	}
	return &BatchJSON{key}
}

// BatchFailureJSON is FailureJSON for a record of a batch.
func BatchFailureJSON(w io.Writer, opt Options, inputs []triage.Input, errs []*dump.Error) error {
	opt.hide(&inputs, &errs)
	d := header(opt.Tool, inputs, errs)
	d.Status, d.Batch = StatusError, batchJSON(opt.BatchKey)
	return newStream(w, opt).document(&d, nil)
}

// BucketRow is a bucket in a table.
type BucketRow struct {
	ID      string
	Text    string
	Count   int
	Example string // path of a dump of it
}

// bucketRows is how many buckets a table shows.
const bucketRows = 40

// BatchTable writes what a batch came to: its buckets, largest first, and how
// many records there are of each status.
func BatchTable(w io.Writer, rows []BucketRow, records int, status map[string]int) error {
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
	}
	fmt.Fprintf(bw, "%d dumps in %d buckets: %d OK, %d partial, %d failed\n", records, len(rows), status[StatusOK], status[StatusPartial], status[StatusError])
	return bw.Flush()
}
