package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// The README's tables say what help says, of every verb and exit status.
func TestReadmeSaysWhatHelpSays(t *testing.T) {
	readme := page(t, "README.md")
	for _, cmd := range newApp(io.Discard, io.Discard).Commands {
		if row := fmt.Sprintf("| `%s` | %s |\n", cmd.Name, cmd.Usage); !strings.Contains(readme, row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
	for _, s := range exitStatuses {
		if row := fmt.Sprintf("| %d | %s |", s.status, s.meaning); !strings.Contains(readme, row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
}

var commandLine = regexp.MustCompile("(?:^    |[`(]|^\\$ (?:go run \\./cmd/)?)dumptriage ([a-z]+)((?: [^`|#\\s]+)*)")

// Every verb and flag that a command line in the documentation names is there.
func TestDocumentedCommandsAreThere(t *testing.T) {
	app := newApp(io.Discard, io.Discard)
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	pages = append(pages, filepath.Join("..", "..", "README.md"))
	lines, verbs := 0, map[string]bool{}
	for _, name := range pages {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			for _, m := range commandLine.FindAllStringSubmatch(s.Text(), -1) {
				if m[1] == "help" {
					continue
				}
				lines++
				cmd := app.Command(m[1])
				if cmd == nil {
					t.Errorf("%s: there is no verb %s: %s", filepath.Base(name), m[1], s.Text())
					continue
				}
				verbs[m[1]] = true
				known := " " + strings.Join(flagNames(cmd), " ") + " "
				for _, word := range strings.Fields(m[2]) {
					flag, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
					if word[0] == '-' && word != "-" && !strings.Contains(known, " "+flag+" ") {
						t.Errorf("%s: %s has no flag %s: %s", filepath.Base(name), m[1], word, s.Text())
					}
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d command lines were found", lines)
	}
	for _, cmd := range app.Commands {
		if !verbs[cmd.Name] {
			t.Errorf("no command line in the documentation shows %s", cmd.Name)
		}
	}
}

// The map names every package, and no file that is not there.
func TestTheMapIsComplete(t *testing.T) {
	text := page(t, "docs/architecture.md")
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join(file, "*.go"))
		if rel, rerr := filepath.Rel(root, file); rerr == nil && len(sources) > 0 && !strings.Contains(text, filepath.ToSlash(rel)) {
			t.Errorf("docs/architecture.md does not name the package %s", filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("`([a-z]+(?:/[A-Za-z0-9_*.]+)+\\.[a-z]+)`").FindAllStringSubmatch(text+page(t, "CONTRIBUTING.md"), -1) {
		found++
		if files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil || len(files) == 0 {
			t.Errorf("there is no file %s", m[1])
		}
	}
	if found < 50 {
		t.Errorf("only %d names of files were found", found)
	}
}
