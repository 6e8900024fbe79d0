package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures"
)

// Brief output is what fits into a chat or a model's context: less than 2 KB.
func TestBriefIsSmall(t *testing.T) {
	cases, images := fixtures.CrashCases()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, b := range images {
		write(name, b)
	}
	for _, c := range cases {
		path := write(c.Name+".dmp", c.Dump)
		for _, args := range [][]string{{"--images", dir}, {"--not-beside"}, {"--images", dir, "--json"}, {"--not-beside", "--json"}} {
			var stdout, stderr bytes.Buffer
			status := run(append([]string{"triage", path, "--brief"}, args...), &stdout, &stderr)
			if status != exitOK || stdout.Len() == 0 || stdout.Len() >= 2048 {
				t.Errorf("%s %v: status %d, %d bytes\n%s%s", c.Name, args, status, stdout.Len(), stdout.String(), stderr.String())
			}
			if args[len(args)-1] == "--json" && !json.Valid(stdout.Bytes()) {
				t.Errorf("%s: no JSON: %s", c.Name, stdout.String())
			}
		}
	}
}
