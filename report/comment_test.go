package report

import (
	"bytes"
	"strings"
	"testing"

	"dumptriage/triage"
)

// A comment is shown in few lines of bounded width: it may be a megabyte of
// anything.
func TestLongComment(t *testing.T) {
	for in, want := range map[string]string{
		"one":                         "Comment: one\n",
		"one\r\n\ntwo":                "Comment: one\n\n         two\n",
		strings.Repeat("ä", 201):      "Comment: " + strings.Repeat("ä", 200) + "...\n",
		strings.Repeat("ä", 1<<19):    "Comment: " + strings.Repeat("ä", 200) + "...\n",
		strings.Repeat("x", 200):      "Comment: " + strings.Repeat("x", 200) + "\n",
		strings.Repeat("y\n", 1<<19):  "Comment: y\n" + strings.Repeat("         y\n", 7) + "         ...\n",
		strings.Repeat("\xff", 1<<20): "Comment: " + strings.Repeat(`\xff`, 200) + "...\n",
		"\x1b[31m\u202egnp.exe is it": "Comment: \\x1b[31m\\u202egnp.exe is it\n",
	} {
		var b bytes.Buffer
		x := newText(&b, Options{}, 0)
		x.inputs([]triage.Input{{Path: "a.dmp", Comments: []string{in}}})
		if err := x.flush(); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(b.String(), "\n"); got != want {
			t.Errorf("%.20q: %.300q, want %.300q", in, got, want)
		}
	}
}
