package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// acts is what terminals act on, or what turns the order of a line.
var acts = regexp.MustCompile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\u009f\u202a-\u202e\u2066-\u2069]")

// TestErrorsPrintNothingThatTerminalsActOn: names of files and databases come from
// others, too, and every verb tells of them.
func TestErrorsPrintNothingThatTerminalsActOn(t *testing.T) {
	const bad = "a\x1b[31m\u202eb\x9b\u009b.dmp"
	dir := t.TempDir()
	damaged := filepath.Join(dir, "all.db")
	if status := run([]string{"batch", "-q", "--out", filepath.Join(dir, "1.jsonl"), "--db", damaged, "../../fixtures/crash/crashdemo.dmp"}, &strings.Builder{}, &strings.Builder{}); status != exitOK {
		t.Fatalf("status %d", status)
	}
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	was := string(b)
	if b = []byte(strings.ReplaceAll(was, "CREATE TABLE dumps (", "CREATE TABLE dumps \x1b")); string(b) == was {
		t.Fatal("the database is not as this test knows it")
	}
	if err := os.WriteFile(damaged, b, 0o666); err != nil {
		t.Fatal(err)
	}
	calls := [][]string{
		{"buckets", "list", "--db", damaged}, {"buckets", "list", "--db", bad}, {"buckets", "merge", "--db", filepath.Join(dir, "new.db"), damaged},
		{bad}, {"info", "--" + bad, "x.dmp"}, {"triage", "--rules", bad, "../../fixtures/crash/crashdemo.dmp"},
		{"stacks", "--images", bad, "../../fixtures/crash/crashdemo.dmp"}, {"stacks", "--symbols", bad, "../../fixtures/crash/crashdemo.dmp"},
	}
	for _, verb := range []string{"triage", "stacks", "compare", "batch", "info", "modules", "drivers", "threads", "processes", "cpus", "handles", "memory", "streams", "scrub"} {
		calls = append(calls, []string{verb, bad, bad + "2"}, []string{verb, bad})
	}
	for _, args := range calls {
		var out, errs strings.Builder
		run(args, &out, &errs)
		said := out.String() + errs.String()
		if said == "" || acts.MatchString(said) || !utf8.ValidString(said) {
			t.Errorf("%q prints %q", args, said)
		}
	}
}

// TestEscapedNamesAreRedacted: what is escaped for the terminal is redacted before.
func TestEscapedNamesAreRedacted(t *testing.T) {
	for _, folder := range []string{"M\xfcller", "a\x1b[31mMueller", "\u202eMueller"} {
		var out, errs strings.Builder
		run([]string{"info", "--redact", "/nowhere/" + folder + "/x.dmp"}, &out, &errs)
		if said := errs.String(); !strings.Contains(said, "x.dmp: cannot be opened") || strings.Contains(said, "ller") || acts.MatchString(said) {
			t.Errorf("%q", said)
		}
	}
}
