package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedOutput runs every command that the documentation shows and
// compares what it prints with what the page says it prints. A line "..." in
// the page stands for any lines. With -update the pages are rewritten, all but
// the blocks with such lines.
func TestDocumentedOutput(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for _, v := range environment {
		t.Setenv(v.name, "")
	}
	blocks := 0
	for _, page := range []string{"README.md", filepath.Join("docs", "usage.md"), filepath.Join("docs", "signatures.md"), filepath.Join("docs", "triage.md"), filepath.Join("docs", "hangs.md"), filepath.Join("docs", "kernel-dumps.md"), filepath.Join("docs", "privacy.md"), filepath.Join("docs", "bugchecks.md"), filepath.Join("docs", "managed.md")} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "\r\n", "\n")
		out := console.ReplaceAllStringFunc(text, func(block string) string {
			blocks++
			return checkBlock(t, page, block)
		})
		if *update && out != text {
			if err := os.WriteFile(page, []byte(out), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if blocks < 10 {
		t.Errorf("only %d blocks of output in the documentation", blocks)
	}
}

var (
	console = regexp.MustCompile("(?s)```console\n.*?```")
	prompt  = regexp.MustCompile(`^\$ (?:go run ./cmd/dumptriage|dumptriage) (.*)$`)
)

func checkBlock(t *testing.T, page, block string) string {
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```"), "\n")
	m := prompt.FindStringSubmatch(lines[0])
	if m == nil {
		t.Errorf("%s: %q is no command of ours", page, lines[0])
		return block
	}
	var stdout, stderr bytes.Buffer
	status := run(strings.Fields(m[1]), &stdout, &stderr)
	got := stderr.String() + stdout.String()
	want := strings.Join(lines[1:], "\n")
	if matches(want, got) {
		return block
	}
	if *update && !strings.Contains(want, "...\n") {
		return "```console\n" + lines[0] + "\n" + got + "```"
	}
	t.Errorf("%s: $ %s (exit status %d) prints\n%s\nbut the page says\n%s", page, m[1], status, got, want)
	return block
}

// matches compares output with a page's, in which a line "..." stands for any
// lines. Paths come with the separators of the system.
func matches(want, got string) bool {
	got = strings.ReplaceAll(got, "fixtures\\", "fixtures/")
	var pattern strings.Builder
	pattern.WriteString(`(?s)^`)
	for i, line := range strings.SplitAfter(want, "\n") {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)?`)
		} else if line != "" || i == 0 {
			pattern.WriteString(regexp.QuoteMeta(line))
		}
	}
	pattern.WriteString(`$`)
	return regexp.MustCompile(pattern.String()).MatchString(got)
}
