package crash

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dumptriage/triage/rules"
)

var constant = regexp.MustCompile(`(?m)^\t\w+ +Class = "(\w+)"`)

// classNames are the classes as class.go declares them.
func classNames(t *testing.T) []string {
	t.Helper()
	src, err := os.ReadFile("class.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range constant.FindAllStringSubmatch(string(src), -1) {
		names = append(names, m[1])
	}
	if len(names) < 45 {
		t.Fatalf("only %d classes found", len(names))
	}
	return names
}

// The page on verdicts lists every class, and its example of a rule file is one.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "triage.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(b), "\r\n", "\n")
	for _, name := range classNames(t) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/triage.md does not know the class %s", name)
		}
	}
	_, rest, _ := strings.Cut(page, "\n```\n[app]")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example of a rule file")
	}
	list, err := rules.Parse("triage.md", "[app]"+example, rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err == nil {
		err = Check(list)
	}
	if err != nil || len(list) < 5 {
		t.Errorf("%d rules, %v", len(list), err)
	}
}
