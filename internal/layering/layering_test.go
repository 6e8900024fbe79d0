// Package layering holds the tests that keep the project's imports pointing down
// and its map, docs/architecture.md, true. It has no other content.
package layering

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed lists for every package which packages of the project it may import.
// A package that is not listed fails the test: decide where it belongs first.
var allowed = map[string][]string{
	"dump":                   {},
	"internal/cursor":        {"dump"},
	"internal/threadcontext": {"dump", "internal/cursor"},
	"internal/chunk":         {"internal/cursor"},
	"internal/cab":           {"dump", "internal/cursor"},
	"internal/textfile":      {},
	"internal/temporary":     {},
	"internal/glob":          {},
	"internal/input":         {"dump", "internal/cursor", "internal/cab"},
	"minidump":               {"dump", "internal/cursor", "internal/threadcontext"},
	"kdump":                  {"dump", "internal/cursor", "internal/threadcontext"},
	"pdata":                  {"dump", "internal/cursor"},
	"unwind":                 {"dump", "pdata", "internal/cursor", "internal/threadcontext"},
	"symbols/pdb":            {"dump", "internal/cursor"},
	"symbols/undname":        {},
	"symbols/sym":            {"dump"},
	"symbols/dwarf":          {"dump", "internal/cursor"},
	"symbols":                {"dump", "symbols/pdb", "symbols/sym", "symbols/dwarf", "symbols/undname", "pdata", "internal/cursor", "internal/input", "internal/temporary"},
	"symbols/server":         {"dump"},
	"managed/metadata":       {"dump", "pdata", "internal/cursor", "internal/chunk"},
	"managed/r2r":            {"dump", "pdata", "managed/metadata", "internal/cursor", "internal/chunk"},
	"managed":                {"dump", "pdata", "managed/metadata", "managed/r2r", "internal/cursor"},
	"triage":                 {"dump", "minidump", "kdump", "pdata", "managed", "unwind", "symbols", "internal/cursor", "internal/glob", "internal/input", "internal/threadcontext"},
	// What an incident means. Each reads an Incident and nothing below the
	// vocabulary; verdict puts their answers together.
	"triage/rules":     {"internal/glob"},
	"triage/crash":     {"dump", "triage", "managed", "triage/rules", "symbols", "symbols/undname", "unwind", "internal/cursor", "report/codes"},
	"triage/hang":      {"dump", "managed", "triage", "triage/rules", "symbols", "unwind", "internal/cursor", "report/codes"},
	"triage/bugcheck":  {"dump", "kdump", "triage", "triage/rules", "symbols", "unwind", "internal/cursor", "internal/threadcontext", "report/codes"},
	"triage/signature": {"dump", "triage", "managed", "triage/rules", "symbols", "unwind", "pdata", "internal/cursor", "report/codes"},
	"triage/verdict":   {"dump", "triage", "triage/rules", "triage/crash", "triage/hang", "triage/bugcheck", "triage/signature"},
	// Many dumps: the queue and its workers, the bucket store, likeness of stacks.
	"fleet":         {"dump", "internal/textfile", "triage", "triage/verdict", "triage/signature", "report", "report/redact", "fleet/store", "fleet/similar"},
	"fleet/store":   {"fleet/similar", "internal/temporary"},
	"fleet/similar": {"triage/signature"},
	// A small dump that unwinds the same and holds nothing else.
	"scrub":             {"dump", "report/codes", "minidump", "kdump", "triage", "unwind", "symbols", "internal/input"},
	"report":            {"dump", "managed", "triage", "triage/verdict", "triage/crash", "triage/hang", "triage/bugcheck", "triage/signature", "symbols", "symbols/pdb", "unwind", "report/codes", "report/redact"},
	"report/codes":      {},
	"report/redact":     {}, // what tells of people and machines
	"fixtures":          {},
	"fixtures/machine":  {"fixtures"},
	"cmd/dumptriage":    {"dump", "minidump", "kdump", "symbols", "symbols/pdb", "symbols/server", "triage", "triage/rules", "triage/verdict", "triage/signature", "triage/hang", "report", "report/redact", "fleet", "fleet/store", "fleet/similar", "scrub", "internal/cursor", "internal/input", "internal/temporary", "internal/textfile"},
	"internal/layering": {},
	// For tests and measurements; nothing of the product imports them.
	"unwind/oracle":                   {"dump", "pdata", "unwind", "internal/cursor"},
	"unwind/oracle/cmd/unwind-oracle": {"dump", "pdata", "unwind", "unwind/oracle"},
	"internal/corpus":                 {}, // for tests
}

// external lists who may import which modules outside the standard library, by
// prefix. The parsing packages stay free of everything but the PE headers and
// the disassembler, so that a user of the library pays for nothing else.
var external = map[string][]string{
	"pdata":            {"github.com/saferwall/pe"},
	"unwind":           {"golang.org/x/arch/x86/x86asm"},
	"unwind/oracle":    {"golang.org/x/arch/x86/x86asm", "golang.org/x/arch/arm64/arm64asm"},
	"triage":           {"golang.org/x/arch/x86/x86asm", "golang.org/x/arch/arm64/arm64asm"},
	"triage/crash":     {"golang.org/x/arch/x86/x86asm"},
	"triage/hang":      {"golang.org/x/arch/x86/x86asm"},
	"triage/signature": {"golang.org/x/arch/x86/x86asm", "golang.org/x/arch/arm64/arm64asm"},
	"report":           {"golang.org/x/text/width"},
	"fleet/store":      {"modernc.org/sqlite"},
	"symbols/pdb":      {"github.com/klauspost/compress"},
	"symbols":          {"github.com/ianlancetaylor/demangle"},
	"internal/input":   {"github.com/klauspost/compress", "github.com/edsrzf/mmap-go", "golang.org/x/sys"},
	"cmd/dumptriage":   {"github.com/urfave/cli/v2"},
}

// network lists who may reach a network: nothing that reads a dump does.
var network = []string{"symbols/server"}

func TestImportsPointDown(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bench") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || isIgnored(t, file) {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		seen[pkg] = true
		for _, imp := range imports(t, file) {
			check(t, pkg, imp, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"dump", "minidump", "kdump", "pdata", "unwind", "symbols", "triage", "report", "fixtures", "cmd/dumptriage"} {
		if !seen[pkg] {
			t.Errorf("package %s was not found: is the test looking at the right tree?", pkg)
		}
	}
}

func check(t *testing.T, pkg, imp, file string) {
	if inner, ok := strings.CutPrefix(imp, "dumptriage/"); ok {
		list, known := allowed[pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table of layers", file, pkg)
			return
		}
		if !slices.Contains(list, inner) {
			t.Errorf("%s: %s imports %s, which is not below it", file, pkg, inner)
		}
		return
	}
	if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") { // standard library
		if (imp == "net" || strings.HasPrefix(imp, "net/") && imp != "net/url") && !slices.Contains(network, pkg) {
			t.Errorf("%s: %s imports %s, which could reach a network", file, pkg, imp)
		}
		return
	}
	for _, prefix := range external[pkg] {
		if imp == prefix || strings.HasPrefix(imp, prefix+"/") {
			return
		}
	}
	t.Errorf("%s: %s imports %s, which its layer does not allow", file, pkg, imp)
}

func imports(t *testing.T, file string) []string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path.Clean(p))
	}
	return out
}

// isIgnored reports whether a file is a generator that no build includes.
func isIgnored(t *testing.T, file string) bool {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "\npackage ")
	return strings.Contains(head, "//go:build ignore")
}
