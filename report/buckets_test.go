package report

import (
	"encoding/csv"
	"strings"
	"testing"
)

func TestTuneText(t *testing.T) {
	var b strings.Builder
	rows := []TuneRow{{Precision: 0.9, Recall: 0.5, F1: 0.643}, {Changes: "Top -1.2 -> -2.4", Precision: 1, Recall: 0.75, F1: 0.857}}
	if err := TuneText(&b, rows, 7); err != nil {
		t.Fatal(err)
	}
	want := "7 labelled stacks\n" +
		"         precision    recall        F1\n" +
		"in use       0.900     0.500     0.643\n" +
		"best 1       1.000     0.750     0.857  Top -1.2 -> -2.4\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// A name in a dump is not trusted: no cell of a table for spreadsheets begins as a formula
// does.
func TestCellsAreNoFormulas(t *testing.T) {
	for _, evil := range []string{`=cmd|' /C calc'!A0`, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1", "\n=1"} {
		var b strings.Builder
		err := BucketsCSV(&b, []BucketJSON{{ID: evil, Text: evil, Kind: evil, Class: evil, State: evil, FixedModule: evil, FixedVersion: evil, RegressedVersion: evil, Note: evil, Change: evil}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatal(rows, err)
		}
		for i, c := range rows[1] {
			if c != "" && strings.ContainsRune("=+-@\t\r\n\uff1d", []rune(c)[0]) {
				t.Errorf("%q: %s is %q", evil, rows[0][i], c)
			}
		}
	}
}
