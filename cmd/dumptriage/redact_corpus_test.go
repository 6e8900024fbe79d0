package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
)

// private is what tells of people and machines, whatever the dump: folders that are not
// Windows' own, users' identifiers, addresses of network adapters, variables with a value.
var private = map[string]*regexp.Regexp{
	"folder":      regexp.MustCompile(`(?i)\b[a-z]:\\+[^\\\s"<>]+\\`),
	"home":        regexp.MustCompile(`/(?:home|root|Users)/[^\s"<]+`),
	"identifier":  regexp.MustCompile(`S-1-5-21-[0-9]`),
	"adapter":     regexp.MustCompile(`\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b`),
	"environment": regexp.MustCompile(`\b(?:USERNAME|COMPUTERNAME|USERPROFILE|USERDOMAIN|LOGONSERVER|TEMP|Path|PATH)=[^<\s"]`),
}

var windowsFolder = regexp.MustCompile(`(?i)^[a-z]:\\+windows\\`)

// audited are the dumps, one or a pair, whose outputs are looked into; whole is false where
// the real ones are not at hand.
func audited(t *testing.T) (all [][]string, whole bool) {
	fixture := func(names ...string) (out []string) {
		for _, name := range names {
			path, err := filepath.Abs(filepath.Join("..", "..", "fixtures", filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, path)
		}
		return out
	}
	all = [][]string{fixture("readline/ConsoleApp1.dmp", "readline/ConsoleApp1.Kernel.dmp"), fixture("managed/shop.dmp"), fixture("locks/lockdemo.dmp", "locks/lockdemo-later.dmp"),
		fixture("crashes/thrown.dmp"), fixture("bugcheck/power.dmp"), fixture("bugcheck/hardware.dmp"), fixture("bugcheck/faulty.dmp")}
	for _, name := range []string{"user/A01-unity-mono-jit-x64/crash.dmp", "user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab.dmp",
		"user/A03-breakpad-minidump2-x86/minidump2.dmp", "user/A07-thread-names-x86/thread_name_list.dmp", "user/A10-sentry-native-x64/minidump.dmp", "user/A11-electron-v8-x64/windows.dmp",
		"user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", "kernel/k01-triage-x64-16cpu/triage_x64.dmp",
		"kernel/k02-triage-x64-user-seam/083125-14875-01.dmp", "wine/msvc/winpty-agent.bp.dmp", "wine/t64-clang-O1/dbg_cxx.dmp"} {
		path, ok := corpus.Find(name)
		if !ok {
			t.Logf("not in a collection of real dumps beside the project: %s", name)
			return all, false
		}
		all = append(all, []string{path})
	}
	path, ok := corpus.Find("managed/net10-readline-x64/app.dmp.zst")
	if ok {
		all = append(all, []string{unpacked(t, path)})
	}
	return all, ok
}

// unpacked unpacks a dump once, for many commands.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	in, err := input.Open(path, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(path), ".zst")))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, io.NewSectionReader(in, 0, in.Size())); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

// auditedLines are command lines on the dumps, one for each verb that shows facts.
func auditedLines(dir string, paths []string) (out [][]string) {
	kernel := strings.Contains(paths[0], "bugcheck") || strings.Contains(paths[0], "kernel")
	series := strings.Contains(paths[0], "lockdemo")
	verbs := []string{"info", "threads", "modules", "handles", "memory", "streams", "symbols list"}
	if kernel {
		verbs = append(verbs, "drivers", "processes", "cpus")
	}
	for _, verb := range verbs {
		out = append(out, append(strings.Fields(verb), paths[0]))
	}
	if series {
		return append(out, append([]string{"compare"}, paths...))
	}
	for _, verb := range []string{"triage", "stacks", "triage --explain-signature", "batch --jobs 1"} {
		out = append(out, append(strings.Fields(verb), paths...))
	}
	target := filepath.Join(dir, "scrubbed.dmp")
	if len(paths) > 1 {
		target = filepath.Join(dir, "scrubbed")
	}
	return append(out, append(append([]string{"scrub", "--force"}, paths...), target))
}

// TestRedactCorpus looks into what the verbs tell of real dumps with --redact.
func TestRedactCorpus(t *testing.T) {
	seen := map[string]int{}
	dir := t.TempDir()
	dumps, whole := audited(t)
	for _, paths := range dumps {
		a := newAudit(t, dir, paths)
		for _, line := range auditedLines(dir, paths) {
			for _, form := range []string{"--quiet", "--json"} {
				if line[0] == "batch" && form == "--json" {
					continue
				}
				args := append(slices.Clone(line), form)
				if line[0] == "stacks" || line[0] == "modules" || line[0] == "info" || line[0] == "symbols" { // which are enough to show that there is something
					for what, texts := range a.privateIn(args) {
						seen[what] += len(texts)
					}
				}
				for what, texts := range a.privateIn(append(args, "--redact")) {
					t.Errorf("%s --redact tells %s: %q", strings.Join(args, " "), what, texts)
				}
			}
		}
	}
	t.Logf("without --redact: %v", seen)
	for what, least := range map[string]int{"folder": 50, "own folder": 500, "user": 5} {
		if whole && seen[what] < least || seen["own folder"] < 50 {
			t.Errorf("without --redact %d texts of the kind %q are found: the test shows little", seen[what], what)
		}
	}
}

// audit knows what is private to some dumps.
type audit struct {
	t       *testing.T
	folders []string       // that the dumps and outputs lie in, and the checkout
	users   *regexp.Regexp // nil when the dumps tell of none
}

func newAudit(t *testing.T, dir string, paths []string) *audit {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	a := &audit{t: t, folders: []string{dir, filepath.Dir(filepath.Dir(here))}}
	var names []string
	for _, path := range paths {
		a.folders = append(a.folders, filepath.Dir(path))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, usersIn(b)...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		a.users = regexp.MustCompile(`(?i)[\\/ ](?:` + strings.Join(names, "|") + `)[\\/"]`)
	}
	return a
}

var (
	userBytes = regexp.MustCompile(`(?i)[\\/](?:Users|home)[\\/]([A-Za-z][A-Za-z0-9_.-]{2,30})[\\/]`)
	userWide  = regexp.MustCompile(`(?i)\\\x00U\x00s\x00e\x00r\x00s\x00\\\x00((?:[A-Za-z0-9_. -]\x00){3,30})\\\x00`)
)

// usersIn finds names of users in the bytes of a dump, by the folders that hold theirs.
func usersIn(b []byte) (out []string) {
	for _, m := range append(userBytes.FindAllSubmatch(b, -1), userWide.FindAllSubmatch(b, -1)...) {
		name := strings.ToLower(strings.ReplaceAll(string(m[1]), "\x00", ""))
		if !slices.Contains([]string{"public", "default", "all users", "default user", "shared"}, name) {
			out = append(out, regexp.QuoteMeta(name))
		}
	}
	return out
}

// privateIn runs a command and returns what is private in its output, by kind. The folders
// that the dumps lie in are private too, wherever the project is checked out.
func (a *audit) privateIn(args []string) map[string][]string {
	a.t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(args, &stdout, &stderr); status == exitUsage {
		a.t.Fatalf("%q is wrong usage: %s", args, &stderr)
	}
	stdout.Write(stderr.Bytes())
	text := stdout.String()
	out := map[string][]string{}
	for what, re := range private {
		for _, m := range re.FindAllString(text, -1) {
			if !windowsFolder.MatchString(m) {
				out[what] = append(out[what], m)
			}
		}
	}
	text = strings.ReplaceAll(text, `\\`, `\`)
	if a.users != nil {
		out["user"] = a.users.FindAllString(text, -1)
	}
	for _, folder := range a.folders {
		if n := strings.Count(text, folder); n > 0 {
			out["own folder"] = append(out["own folder"], slices.Repeat([]string{folder}, n)...)
		}
	}
	if len(out["user"]) == 0 {
		delete(out, "user")
	}
	return out
}
