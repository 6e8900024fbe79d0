package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// nextCommand is a command of ours in a next step, up to what the step says of it.
var nextCommand = regexp.MustCompile(`dumptriage ((?:"[^"]*"|[^ "])+(?: (?:"[^"]*"|[^ "])+)*?)(?: tells which.*)?$`)

// The commands that next steps name work as they are written, whatever the dump's
// path; two dumps of one process stand in for the next that one is told to take.
func TestNextStepsRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ticket (17) & more")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	next := put("locks/lockdemo-later.dmp")
	ran := map[string]bool{}
	for _, name := range []string{"locks/lockdemo-small.dmp", "crashes/thrown.dmp", "crash/crashdemo.dmp", "bugcheck/faulty.dmp", "bugcheck/hardware.dmp", "machine/testdata/MEMORY.DMP.gz"} {
		path := put(name)
		images := filepath.Join("..", "..", "fixtures", filepath.Dir(name), "images")
		if _, err := os.Stat(images); err != nil {
			images = "." // the dump has its images
		}
		for _, args := range [][]string{{}, {"--images", images}} {
			var stdout, stderr bytes.Buffer
			if status := run(append([]string{"triage", "--json", path}, args...), &stdout, &stderr); status != exitOK {
				t.Fatalf("%s: status %d\n%s", name, status, stderr.String())
			}
			var doc struct {
				Analysis struct {
					NextSteps []string `json:"next_steps"`
				} `json:"analysis"`
			}
			if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil || len(doc.Analysis.NextSteps) == 0 {
				t.Fatalf("%s: %v, no next step", name, err)
			}
			for _, step := range doc.Analysis.NextSteps {
				m := nextCommand.FindStringSubmatch(step)
				if m == nil {
					if strings.Contains(step, "dumptriage") {
						t.Errorf("%q: where does the command end?", step)
					}
					continue
				}
				command := shellWords(strings.ReplaceAll(m[1], "NEXT.dmp", `"`+next+`"`))
				ran[command[0]] = true
				stdout.Reset()
				stderr.Reset()
				if status := run(command, &stdout, &stderr); status != exitOK || stdout.Len() == 0 {
					t.Errorf("%q: %q ends with %d\n%s", step, command, status, stderr.String())
				}
			}
		}
	}
	if !ran["symbols"] || !ran["compare"] || !ran["cpus"] || !ran["stacks"] {
		t.Errorf("of the commands only %v were met", ran)
	}
}

// shellWords splits a command as shells do, as far as double quotes go.
func shellWords(s string) []string {
	var words []string
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
