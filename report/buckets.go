package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dumptriage/triage"
)

// BucketJSON is a bucket: dumps with one signature.
type BucketJSON struct {
	ID               string        `json:"id"`
	Text             string        `json:"text"`
	Algorithm        string        `json:"algorithm,omitempty"`
	Kind             string        `json:"kind,omitempty"`
	Class            string        `json:"class,omitempty"`
	Dumps            int           `json:"dumps"`
	Before           int           `json:"before,omitempty" jsonschema_description:"how many dumps the older database has, or were written before the date (diff)"`
	Change           string        `json:"change,omitempty" jsonschema:"enum=new,enum=grown,enum=gone" jsonschema_description:"against the older database or the date (diff)"`
	FirstSeen        string        `json:"first_seen,omitempty" jsonschema_description:"when the first of the dumps was written"`
	LastSeen         string        `json:"last_seen,omitempty"`
	State            string        `json:"state" jsonschema:"enum=new,enum=known,enum=fixed,enum=regressed"`
	FixedModule      string        `json:"fixed_module,omitempty" jsonschema_description:"that fixed_version is of; else the process's image"`
	FixedVersion     string        `json:"fixed_version,omitempty"`
	RegressedVersion string        `json:"regressed_version,omitempty" jsonschema_description:"the first version from fixed_version on that had it again"`
	Note             string        `json:"note,omitempty"`
	MergedInto       string        `json:"merged_into,omitempty"`
	Clusters         []string      `json:"clusters,omitempty" jsonschema_description:"of like stacks (show)"`
	Related          []string      `json:"related,omitempty" jsonschema_description:"buckets with stacks in the same clusters (show)"`
	Versions         []VersionJSON `json:"versions,omitempty" jsonschema_description:"of the process's image (show)"`
	Modules          []VersionJSON `json:"modules,omitempty" jsonschema_description:"builds of the other modules on the stacks, most dumps first, at most 100 (show)"`
	Examples         []string      `json:"examples,omitempty" jsonschema_description:"paths of dumps, latest first (show)"`
}

// VersionJSON is a build of a program and how many dumps are of it.
type VersionJSON struct {
	Version string `json:"version"`
	Dumps   int    `json:"dumps"`
}

// BucketsJSON writes buckets as one JSON object.
func BucketsJSON(w io.Writer, buckets []BucketJSON, opt Options) error {
	opt.hide(&buckets)
	d := header(opt.Tool, nil, nil)
	d.Status = StatusOK
	if d.Buckets = buckets; buckets == nil {
		d.Buckets = []BucketJSON{}
	}
	return newStream(w, opt).document(&d, nil)
}

// BucketDocument writes one bucket and what to look at next as one JSON object.
func BucketDocument(w io.Writer, b *BucketJSON, opt Options) error {
	opt.hide(b)
	d := header(opt.Tool, nil, nil)
	d.Status, d.Buckets, d.NextSteps = StatusOK, []BucketJSON{*b}, bucketSteps(b)
	return newStream(w, opt).document(&d, nil)
}

// bucketSteps say how to get what a database does not keep: what its dumps blame.
func bucketSteps(b *BucketJSON) []string {
	if len(b.Examples) == 0 {
		return nil
	}
	return []string{stepText(&triage.Incident{Inputs: []triage.Input{{Path: b.Examples[0]}}}, "whom a dump of it blames, and why: dumptriage triage %s", nil)}
}

// BucketLines writes each bucket as a JSON object on a line.
func BucketLines(w io.Writer, buckets []BucketJSON, opt Options) error {
	opt.hide(&buckets)
	s := newStream(w, opt)
	for i := range buckets {
		s.value(&buckets[i])
		s.raw("\n")
	}
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

// JoinedJSON is what came of a database whose dumps were added to another.
type JoinedJSON struct {
	Path      string         `json:"path"`
	Dumps     int            `json:"dumps"`
	Added     int            `json:"added" jsonschema_description:"of the dumps, those that were not known"`
	Conflicts []ConflictJSON `json:"conflicts,omitempty" jsonschema_description:"what people said there and otherwise here, where it stays"`
}

// ConflictJSON is what two databases say differently of one bucket.
type ConflictJSON struct {
	Bucket string `json:"bucket"`
	What   string `json:"what" jsonschema:"enum=state,enum=note,enum=merged"`
	Here   string `json:"here"`
	There  string `json:"there"`
}

// JoinedDocument writes what came of databases that were added to one as JSON.
func JoinedDocument(w io.Writer, joined []JoinedJSON, opt Options) error {
	opt.hide(&joined)
	d := header(opt.Tool, nil, nil)
	d.Status, d.Joined = StatusOK, joined
	return newStream(w, opt).document(&d, nil)
}

// JoinedText writes the same as text.
func JoinedText(w io.Writer, joined []JoinedJSON, opt Options) error {
	opt.hide(&joined)
	bw := bufio.NewWriter(w)
	for _, j := range joined {
		fmt.Fprintf(bw, "%s: %s, %d added\n", clean(j.Path), plural(j.Dumps, "dump"), j.Added)
		for _, c := range j.Conflicts {
			fmt.Fprintf(bw, "  %s: %s is %q here and %q there; it stays\n", clean(c.Bucket), c.What, clean(c.Here), clean(c.There))
		}
	}
	return bw.Flush()
}

// BucketsCSV writes buckets as a table for spreadsheets, by RFC 4180, with a line of
// headings.
func BucketsCSV(w io.Writer, buckets []BucketJSON, opt Options) error {
	opt.hide(&buckets)
	cw := csv.NewWriter(w)
	_ = cw.Write([]string{"id", "dumps", "before", "change", "state", "first_seen", "last_seen", "kind", "class", "text", "fixed_module", "fixed_version", "regressed_version", "note"})
	for _, b := range buckets {
		row := []string{b.ID, strconv.Itoa(b.Dumps), strconv.Itoa(b.Before), b.Change, b.State, b.FirstSeen, b.LastSeen, b.Kind, b.Class, b.Text,
			b.FixedModule, b.FixedVersion, b.RegressedVersion, b.Note}
		for i := range row {
			row[i] = cell(row[i])
		}
		_ = cw.Write(row) // Error tells
	}
	cw.Flush()
	return cw.Error()
}

// cell is a text that no spreadsheet takes for a formula: names in dumps are not trusted.
func cell(s string) string {
	s = clean(s)
	if s != "" && strings.ContainsRune("=+-@|%\uff1d\uff0b\uff0d\uff20", []rune(s)[0]) {
		return "'" + s
	}
	return s
}

// BucketsText writes a table of buckets.
func BucketsText(w io.Writer, buckets []BucketJSON, opt Options) error {
	opt.hide(&buckets)
	bw := bufio.NewWriter(w)
	if len(buckets) == 0 {
		fmt.Fprintln(bw, "no buckets")
		return bw.Flush()
	}
	fmt.Fprintf(bw, "%7s  %-16s  %-9s  %-10s  %-10s  %s\n", "dumps", "bucket", "state", "first", "last", "signature")
	for _, b := range buckets {
		dumps := fmt.Sprint(b.Dumps)
		if b.Change == "grown" {
			dumps = fmt.Sprintf("+%d", b.Dumps-b.Before)
		}
		state := b.State
		if b.Change != "" && b.Change != "grown" {
			state = b.Change
		}
		fmt.Fprintf(bw, "%7s  %-16s  %-9s  %-10s  %-10s  %s\n", dumps, clean(b.ID), state, day(b.FirstSeen), day(b.LastSeen), clean(b.Text))
	}
	return bw.Flush()
}

// day is the date of a time as BucketJSON has it.
func day(s string) string {
	if s == "" {
		return "-"
	}
	return s[:min(len(s), len("2006-01-02"))]
}

// moduleLines is how many builds of modules the text of a bucket names.
const moduleLines = 20

// BucketText writes all that is known of a bucket.
func BucketText(w io.Writer, b *BucketJSON, opt Options) error {
	opt.hide(b)
	bw := bufio.NewWriter(w)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(bw, "%-10s %s\n", name+":", clean(value))
		}
	}
	line("Bucket", strings.TrimSpace(b.ID+" "+b.Algorithm))
	line("Signature", b.Text)
	line("Dumps", fmt.Sprint(b.Dumps))
	line("First", b.FirstSeen)
	line("Last", b.LastSeen)
	state := b.State
	if b.FixedVersion != "" {
		state += ", fixed in " + strings.TrimSpace(b.FixedModule+" "+b.FixedVersion)
	}
	if b.RegressedVersion != "" {
		state += ", back in " + b.RegressedVersion
	}
	line("State", state)
	line("Merged", b.MergedInto)
	line("Note", b.Note)
	for _, v := range b.Versions {
		line("Version", fmt.Sprintf("%s (%d)", v.Version, v.Dumps))
	}
	for i, m := range b.Modules {
		if i == moduleLines {
			line("Module", fmt.Sprintf("and %d builds more, which --json has", len(b.Modules)-i))
			break
		}
		line("Module", fmt.Sprintf("%s (%d)", m.Version, m.Dumps))
	}
	for _, c := range b.Clusters {
		line("Cluster", c)
	}
	for _, r := range b.Related {
		line("Related", r)
	}
	for _, p := range b.Examples {
		line("Dump", p)
	}
	for _, step := range bucketSteps(b) {
		line("Next", step)
	}
	return bw.Flush()
}

// TuningJSON tells how well parameters of clusters do on labelled stacks.
type TuningJSON struct {
	Stacks int       `json:"stacks" jsonschema_description:"labelled, each distinct one once"`
	Rows   []TuneRow `json:"rows" jsonschema_description:"the parameters in use, then better ones, the best first"`
}

// TuneRow is a set of parameters of clusters and how well it does.
type TuneRow struct {
	Changes   string  `json:"changes,omitempty" jsonschema_description:"beside the parameters in use"`
	Precision float64 `json:"precision" jsonschema_description:"B-cubed, 0 to 1"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// TuneJSON writes a document of how well parameters do.
func TuneJSON(w io.Writer, rows []TuneRow, stacks int, opt Options) error {
	d := header(opt.Tool, nil, nil)
	d.Status, d.Tuning = StatusOK, &TuningJSON{stacks, rows}
	return newStream(w, opt).document(&d, nil)
}

// TuneText writes how well parameters do: the first row is what is in use.
func TuneText(w io.Writer, rows []TuneRow, stacks int) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "%d labelled stacks\n", stacks)
	fmt.Fprintf(bw, "%-8s %9s %9s %9s\n", "", "precision", "recall", "F1")
	for i, r := range rows {
		name := "in use"
		if i > 0 {
			name = fmt.Sprintf("best %d", i)
		}
		line := fmt.Sprintf("%-8s %9.3f %9.3f %9.3f  %s", name, r.Precision, r.Recall, r.F1, r.Changes)
		fmt.Fprintln(bw, strings.TrimRight(line, " "))
	}
	if len(rows) == 1 {
		fmt.Fprintln(bw, "no step of a parameter does better")
	}
	return bw.Flush()
}
