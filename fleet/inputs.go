package fleet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dumptriage/internal/textfile"
	"dumptriage/triage"
)

// dumpNames are the ends of the names that are taken for dumps in a folder.
var dumpNames = []string{".dmp", ".mdmp", ".hdmp", ".kdmp"}

// packedNames may follow them.
var packedNames = []string{"", ".zst", ".gz", ".zip", ".cab"}

// looksLikeDump goes by a file's name.
func looksLikeDump(name string) bool {
	name = strings.ToLower(name)
	for _, packed := range packedNames {
		stem, ok := strings.CutSuffix(name, packed)
		if ok && slices.ContainsFunc(dumpNames, func(end string) bool { return strings.HasSuffix(stem, end) }) {
			return true
		}
	}
	return false
}

// Inputs lists what is named by arguments: a folder stands for the dumps in it
// and below it by name, in lexical order; a pattern for the files it matches; a
// text file for the paths in it, one a line; "-" for the same from stdin; any
// other file for itself. A user dump and the kernel dump beside it are one job
// unless each is to stay alone. The error names an argument that stands for
// nothing. warn, when set, is told what below a folder could not be listed.
func Inputs(args []string, alone bool, stdin io.Reader, warn func(error)) ([]Job, error) {
	l := lister{seen: map[string]bool{}, warn: warn}
	for _, arg := range args {
		if err := l.argument(arg, stdin); err != nil {
			return nil, err
		}
	}
	if alone {
		jobs := make([]Job, len(l.paths))
		for i, p := range l.paths {
			jobs[i] = Job{Index: i, Path: p}
		}
		return jobs, nil
	}
	return pairUp(l.paths), nil
}

type lister struct {
	paths []string
	seen  map[string]bool // a path counts once, though two arguments stand for it
	warn  func(error)
}

func (l *lister) add(path string) {
	if clean := filepath.Clean(path); !l.seen[clean] {
		l.seen[clean] = true
		l.paths = append(l.paths, path)
	}
}

func (l *lister) argument(arg string, stdin io.Reader) error {
	if arg == "-" {
		return l.list(stdin, "standard input")
	}
	st, err := os.Stat(arg)
	switch {
	case err == nil && st.IsDir():
		return l.folder(arg)
	case err == nil && st.Mode().IsRegular() && isList(arg):
		f, err := os.Open(arg)
		if err != nil {
			return err
		}
		defer f.Close()
		return l.list(f, arg)
	case err == nil:
		l.add(arg)
		return nil
	}
	matches, globErr := filepath.Glob(arg)
	if globErr != nil || len(matches) == 0 {
		return fmt.Errorf("%s: no such file, and no file matches it", arg)
	}
	for _, m := range matches {
		if st, err := os.Stat(m); err == nil && st.IsDir() {
			if err := l.folder(m); err != nil {
				return err
			}
			continue
		}
		l.add(m)
	}
	return nil
}

// folder adds the dumps in a folder. What cannot be listed is left out: the
// others are no worse for it. Links to folders are not followed, but for one that
// was named itself.
func (l *lister) folder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		_ = filepath.WalkDir(filepath.Join(dir, e.Name()), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if l.warn != nil {
					l.warn(err)
				}
			} else if !d.IsDir() && looksLikeDump(d.Name()) && (d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0) {
				l.add(path)
			}
			return nil // all go on
		})
	}
	return nil
}

// maxLine is the longest path in a list.
const maxLine = 64 << 10

func (l *lister) list(r io.Reader, name string) error {
	sc := bufio.NewScanner(textfile.UTF8(r))
	sc.Buffer(nil, maxLine)
	lines := 0
	for ; sc.Scan(); lines++ {
		if line := strings.TrimSpace(sc.Text()); line != "" && line[0] != '#' {
			l.add(line)
		}
	}
	err := sc.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s:%d: a line of more than %d bytes is no path", name, lines+1, maxLine)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// isList reports whether a file is text, which no dump and no archive is.
func isList(path string) bool {
	if looksLikeDump(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	for _, magic := range []string{"MDMP", "PAGE", "USERD"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return false
		}
	}
	text, err := io.ReadAll(textfile.UTF8(bytes.NewReader(head)))
	for i := 1; n == cap(head) && i < utf8.UTFMax && !utf8.Valid(text) && len(text) > 0; i++ {
		text = text[:len(text)-1] // the last character may be cut in two
	}
	return err == nil && len(text) > 0 && utf8.Valid(text) && !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' })
}

// pairUp makes one job of a user dump and the kernel dump beside it.
func pairUp(paths []string) []Job {
	companions := map[string]bool{}
	dirs := &folders{}
	var jobs []Job
	for _, p := range paths {
		j := Job{Path: p}
		if k, ok := dirs.companion(p); ok {
			j.Kernel = k
			companions[filepath.Clean(k)] = true
		}
		jobs = append(jobs, j)
	}
	jobs = slices.DeleteFunc(jobs, func(j Job) bool { return companions[filepath.Clean(j.Path)] })
	for i := range jobs {
		jobs[i].Index = i
	}
	return jobs
}

// folders finds companions; a folder without any kernel dump is listed once, not
// for each of its dumps.
type folders struct {
	dir  string
	none bool
}

func (f *folders) companion(path string) (string, bool) {
	if dir := filepath.Dir(path); dir != f.dir {
		f.dir, f.none = dir, true
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.Contains(strings.ToLower(e.Name()), ".kernel.dmp") {
				f.none = false
			}
		}
	}
	if f.none {
		return "", false
	}
	return triage.Companion(path)
}
