package bugcheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/triage/rules"
)

// The page on bugchecks lists every step of the ladder with the confidence that
// the rules give it, and its example of a rule file is one.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "bugchecks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(b), "\r\n", "\n")
	for _, r := range builtIn().ladder {
		_, row, ok := strings.Cut(page, "\n| `"+r.Pattern.Function()+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !ok || !strings.HasSuffix(row, "| "+r.Attrs["confidence"]+" |") {
			t.Errorf("the page does not say %s, %s", r.Pattern.Function(), r.Attrs["confidence"])
		}
	}
	_, rest, _ := strings.Cut(page, "\n```\n[framework]")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example of a rule file")
	}
	list, err := rules.Parse("bugchecks.md", "[framework]"+example, rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil || len(list) < 3 || Check(list) != nil {
		t.Errorf("%d rules, %v, %v", len(list), err, Check(list))
	}
}
