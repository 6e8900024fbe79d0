package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"dumptriage/fleet/similar"
	"dumptriage/fleet/store"
	"dumptriage/internal/textfile"
	"dumptriage/report"
)

// Labels are what people say that dumps show.
type Labels map[string]string

// ReadLabels reads lines "WHICH FAULT" with a tab or a comma between: a dump's
// key or path, or a whole bucket's id, and any name of the fault. Two faults of one
// are an error.
func ReadLabels(r io.Reader, name string) (Labels, error) {
	out := Labels{}
	sc := bufio.NewScanner(textfile.UTF8(r))
	sc.Buffer(nil, maxLine)
	n := 1
	for ; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexAny(line, "\t,")
		if at <= 0 || at == len(line)-1 {
			return nil, fmt.Errorf("%s:%d: wants a dump or bucket, a tab or comma, and the fault's name", name, n)
		}
		which, fault := strings.TrimSpace(line[:at]), strings.TrimSpace(line[at+1:])
		if before := out[which]; before != "" && before != fault {
			return nil, fmt.Errorf("%s:%d: %s is %q here and %q above", name, n, which, fault, before)
		}
		out[which] = fault
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n, err)
	}
	return out, nil
}

// of is the fault of a dump, "" when nothing is said of it.
func (l Labels) of(key, path, bucket string) string {
	for _, which := range []string{key, path, bucket} {
		if f := l[which]; f != "" {
			return f
		}
	}
	return ""
}

// Tune tries parameters of clusters on the labelled dumps of a database. The
// first row is what the database has, the others are better, the best first.
func Tune(ctx context.Context, s *store.Store, l Labels, progress func(done, total int)) ([]similar.Tuned, int, error) {
	labelled, err := s.Labels(ctx, l.of)
	if err != nil {
		return nil, 0, err
	}
	var ex []similar.Example
	for _, x := range labelled {
		ex = append(ex, similar.Example{Group: x.Kind, Frames: x.Frames, Fault: x.Fault})
	}
	found := similar.Tune(s.Params(), ex, 1000, progress)
	last := len(found) - 1 // which is where it began
	return append(slices.Clone(found[last:]), found[:min(last, 5)]...), len(ex), nil
}

// TuneRow is a row of Tune as the report shows it.
func TuneRow(t similar.Tuned, from similar.Params) report.TuneRow {
	return report.TuneRow{Changes: t.Params.Changes(from), Precision: t.Quality.Precision, Recall: t.Quality.Recall, F1: t.Quality.F1}
}
