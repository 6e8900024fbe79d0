package report

import (
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
