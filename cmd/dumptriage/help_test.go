package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestHelpIsNarrow keeps the help of every verb readable in a window of 120 columns, and
// what was broken in the column of its words.
func TestHelpIsNarrow(t *testing.T) {
	broken := 0
	for _, cmd := range newApp(io.Discard, io.Discard).Commands {
		var out bytes.Buffer
		if status := run([]string{"help", cmd.Name}, &out, io.Discard); status != exitOK {
			t.Fatalf("help %s: status %d", cmd.Name, status)
		}
		head, options, _ := strings.Cut(out.String(), "OPTIONS:\n")
		_, description, _ := strings.Cut(head, "DESCRIPTION:\n")
		for line := range strings.Lines(description) {
			if len(line) > 112 {
				t.Errorf("help %s: %d columns: %s", cmd.Name, len(line), line)
			}
		}
		column := 0
		for line := range strings.Lines(options) {
			if len(line) > 120 {
				t.Errorf("help %s: %d columns: %s", cmd.Name, len(line), line)
			}
			words := strings.TrimLeft(line, " ")
			if strings.HasPrefix(words, "-") {
				column = strings.LastIndex(line[:min(len(line), 32)], "  ") + 2
				continue
			}
			if words == "\n" {
				continue
			}
			if at := len(line) - len(words); at != column {
				t.Errorf("help %s: goes on in column %d, not %d: %s", cmd.Name, at, column, line)
			}
			broken++
		}
	}
	if broken == 0 {
		t.Error("no option was broken into lines: the test shows nothing")
	}
}
