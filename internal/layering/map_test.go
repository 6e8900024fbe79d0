package layering

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapFile is the map of the code; the others name files of it as well.
const mapFile = "docs/architecture.md"

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// A path with folders, or the name of a file that a row of the map says more of.
	pathLike = regexp.MustCompile(`^[a-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)+/?$`)
	fileLike = regexp.MustCompile(`^[a-z0-9_*]+\.(go|rules|tsv|txt)$`)
)

// The map leads somewhere: every path, file and pattern that it and the instructions
// name is there. A bare file name lies in one of the folders that its paragraph names.
func TestMapIsTrue(t *testing.T) {
	tree := tree(t)
	for _, doc := range []string{mapFile, "CONTRIBUTING.md"} {
		named := 0
		for paragraph := range strings.SplitSeq(readDoc(t, doc), "\n\n") {
			units := []string{paragraph}
			if strings.HasPrefix(paragraph, "|") {
				units = strings.Split(paragraph, "\n") // each row for itself
			}
			for _, text := range units {
				named += checkNames(t, doc, text, tree)
			}
		}
		if named < 20 {
			t.Errorf("%s: found only %d names of files: does the test still understand it?", doc, named)
		}
	}
}

// checkNames looks for every file that a piece of text names and returns how many it does.
func checkNames(t *testing.T, doc, text string, tree []string) (named int) {
	var folders []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		word := strings.TrimSuffix(m[1], "/")
		switch {
		case pathLike.MatchString(m[1]):
			named++
			if outside[word] {
				continue
			}
			if !slices.ContainsFunc(tree, func(p string) bool { ok, _ := path.Match(word, p); return ok }) {
				t.Errorf("%s names %s, which is not there", doc, word)
			}
			folders = append(folders, word, path.Dir(word))
		case slices.Contains(tree, word) && !strings.Contains(word, "."):
			folders = append(folders, word)
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if !fileLike.MatchString(m[1]) {
			continue
		}
		named++
		there := func(p string) bool {
			ok, _ := path.Match(m[1], path.Base(p))
			return ok && (len(folders) == 0 || slices.Contains(folders, path.Dir(p)))
		}
		if !slices.ContainsFunc(tree, there) {
			t.Errorf("%s names %s, which is in none of %q", doc, m[1], folders)
		}
	}
	return named
}

// outside are packages of the standard library that the documents speak of.
var outside = map[string]bool{"net/http": true, "debug/dwarf": true, "debug/pe": true}

// Every package has a place on the map.
func TestMapIsWhole(t *testing.T) {
	text := readDoc(t, mapFile)
	for _, pkg := range packages(tree(t)) {
		word := regexp.MustCompile(`(^|[\s\x60(;])` + regexp.QuoteMeta(pkg) + `($|[\s\x60/);,:.])`)
		if !word.MatchString(text) {
			t.Errorf("%s does not say what package %s is for", mapFile, pkg)
		}
	}
}

// packages lists the folders of a tree that hold Go files of their own.
func packages(tree []string) (out []string) {
	for _, p := range tree {
		if dir := path.Dir(p); strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata") && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// tree lists the folders and files of the project with slashes, from its root.
func tree(t *testing.T) (out []string) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readDoc(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}
