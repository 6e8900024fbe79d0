package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRedactRelativeFolder: a folder that is named without its own is one word, which
// nothing marks as a path.
func TestRedactRelativeFolder(t *testing.T) {
	const folder = "qzannhush"
	b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "crashes", "thrown.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(folder, "thrown.dmp")
	if err := os.WriteFile(dump, b, 0o666); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, args := range [][]string{{"triage", dump}, {"stacks", dump}, {"stacks", dump, "--images", folder}, {"symbols", "list", dump}, {"explain", dump, "--thread", "0x2a4c", "--frame", "1"},
		{"batch", folder, "--jobs", "1"}, {"batch", folder + "/", "--db", "b.db"}, {"buckets", "export", "--db", "b.db"}, {"scrub", dump, filepath.Join(folder, "small.dmp"), "--force"}} {
		for _, form := range []string{"", "--json"} {
			line := append([]string{}, args...)
			if form != "" && args[0] != "batch" && args[0] != "explain" {
				line = append(line, form)
			}
			var plain, hidden bytes.Buffer
			run(line, &plain, &plain)
			told += strings.Count(plain.String(), folder)
			if status := run(append(line, "--redact"), &hidden, &hidden); status == exitUsage {
				t.Errorf("%q is wrong usage: %s", line, &hidden)
			}
			if at := strings.Index(hidden.String(), folder); at >= 0 {
				t.Errorf("%q --redact tells the folder: %s", line, hidden.String()[max(0, at-80):min(hidden.Len(), at+40)])
			}
		}
	}
	if told < 20 {
		t.Errorf("without --redact the folder is told %d times: the test shows little", told)
	}
}
