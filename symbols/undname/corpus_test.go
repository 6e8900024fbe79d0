package undname_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/symbols/pdb"
	"dumptriage/symbols/undname"
)

// Every public name of the real PDBs is what llvm-undname says. More folders of
// PDBs may be named by the variable UNDNAME_PDBS.
func TestPublicsAgainstLLVM(t *testing.T) {
	tool, err := exec.LookPath("llvm-undname-19")
	if err != nil {
		t.Skip("llvm-undname-19 is not installed")
	}
	names := map[string]bool{}
	dirs := append([]string{corpus.Need(t, "")}, filepath.SplitList(os.Getenv("UNDNAME_PDBS"))...)
	for _, dir := range dirs {
		collect(t, dir, names)
	}
	var in bytes.Buffer
	for n := range names {
		in.WriteString(n + "\n")
	}
	cmd := exec.Command(tool)
	cmd.Stdin = &in
	out, _ := cmd.CombinedOutput() // its status is 1 when it refused a name
	same, beyond := 0, 0
	for block := range strings.SplitSeq(string(out), "\n\n") {
		name, want, ok := strings.Cut(strings.Trim(block, "\n"), "\n")
		if !ok {
			continue
		}
		got, err := undname.Demangle(name, undname.Options{})
		switch {
		case strings.HasPrefix(want, "error:"):
			if err == nil {
				beyond++
			}
		case err != nil || got != want && plainAnonymous(got) != plainAnonymous(want):
			t.Errorf("%s\n got %s (%v)\nwant %s", name, got, err, want)
		default:
			same++
		}
		delete(names, name)
	}
	t.Logf("%d names agree, %d more are understood", same, beyond)
	if len(names) > 0 || same < 500 {
		t.Errorf("%d names without an answer", len(names))
	}
}

var anonymous = regexp.MustCompile("`anonymous namespace'|0x[0-9a-f]{8}")

// plainAnonymous hides the one known difference.
func plainAnonymous(s string) string { return anonymous.ReplaceAllString(s, "anon") }

func collect(t *testing.T, dir string, names map[string]bool) {
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".pdb" {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		p, err := pdb.Open(bytes.NewReader(b), int64(len(b)), file)
		if err != nil {
			return err
		}
		for pub := range p.Publics() {
			if undname.IsMangled(pub.Name) {
				names[pub.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
