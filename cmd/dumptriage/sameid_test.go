package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// What an incident is called does not hang on what is shown of it, nor on the
// verb; a part of a dump has no name rather than another one.
func TestIDsDoNotDependOnWhatIsShown(t *testing.T) {
	fixtures := filepath.Join("..", "..", "fixtures")
	for _, d := range []struct{ dump, thread, other string }{
		{"locks/lockdemo.dmp", "", "0x1110"},
		{"crashes/thrown.dmp", "0x2a4c", ""},
		{"crashes/recursion.dmp", "0x2a4c", ""},
		{"readline/ConsoleApp1.dmp", "", "0x5920"},
		{"bugcheck/faulty.dmp", "", ""},
	} {
		path := filepath.Join(fixtures, filepath.FromSlash(d.dump))
		base := []string{path, "--json", "--images", filepath.Join(filepath.Dir(path), "images")}
		want := ids(t, append([]string{"triage"}, base...)...)
		if want == "" {
			t.Fatalf("%s has no signature", d.dump)
		}
		same := [][]string{{"triage", "--frames", "1"}, {"triage", "--frames", "2"}, {"triage", "--frames", "5000"}, {"triage", "--redact"}, {"triage", "--color", "always"},
			{"triage", "--explain-signature"}, {"triage", "--hash"},
			{"stacks"}, {"stacks", "--frames", "1"}, {"stacks", "--unique"}, {"stacks", "--redact", "--unique", "--frames", "2"}, {"stacks", "--callbacks"},
			{"batch"}, {"batch", "--frames", "2"}, {"batch", "--redact"}}
		if d.thread != "" { // the one that it happened on
			same = append(same, []string{"stacks", "--thread", d.thread}, []string{"stacks", "--thread", d.thread, "--frames", "1"})
		}
		for _, args := range same {
			b := base
			if args[0] == "batch" {
				b = slices.DeleteFunc(slices.Clone(base), func(s string) bool { return s == "--json" })
			}
			if got := ids(t, append(args, b...)...); got != want {
				t.Errorf("%s %v: %s\nwant %s", d.dump, args, got, want)
			}
		}
		if d.other != "" {
			if got := ids(t, append([]string{"stacks", "--thread", d.other}, base...)...); got != "" {
				t.Errorf("%s, one thread of a hang: %s", d.dump, got)
			}
		}
	}
}

// ids runs a verb and returns the ids of its signature, "" when it has none.
func ids(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(args, &stdout, &stderr); status != exitOK {
		t.Fatalf("%v: status %d\n%s", args, status, stderr.String())
	}
	var doc struct {
		Signature *struct {
			ID       string   `json:"id"`
			ExactID  string   `json:"exact_id"`
			DepthIDs []string `json:"depth_ids"`
			CRC32    string   `json:"crc32"`
		} `json:"signature"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %v\n%.300s", args, err, stdout.String())
	}
	if doc.Signature == nil {
		return ""
	}
	b, _ := json.Marshal(doc.Signature)
	return string(b)
}
