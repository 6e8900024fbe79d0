package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"dumptriage/fixtures"
	"dumptriage/fixtures/machine"
)

// secrets hands out unique texts that no output may hold.
type secrets map[string]string

func (s secrets) of(what string) string {
	if s[what] == "" {
		s[what] = fmt.Sprintf("qz%02dhush", len(s))
	}
	return s[what]
}

// privateFiles are what the verbs of the leak test work on. The folder that they lie
// in is a secret too.
type privateFiles struct {
	secrets                           secrets
	dir, images, thrown, wild, kernel string
	db                                string
	user, half                        string // a pair
}

func writePrivate(t *testing.T) *privateFiles {
	s := secrets{}
	// What separates words and paths in messages may be in names of folders, too.
	dir := filepath.Join(t.TempDir(), "O'"+s.of("host folder")+" (x86), [b]")
	f := &privateFiles{secrets: s, dir: dir, images: filepath.Join(dir, s.of("image folder"))}
	if err := os.MkdirAll(f.images, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dumps := fixtures.PrivateDumps(s.of)
	f.thrown, f.wild = write("thrown.dmp", dumps["thrown"]), write("wild.dmp", dumps["wild_read"])
	_, images := fixtures.CrashCases()
	for name, b := range images {
		if name != "vcruntime140.dll" { // one is missing, so that the places tried are told
			write(filepath.Join(filepath.Base(f.images), name), b)
		}
	}
	f.kernel = write("machine.dmp", machine.Build(*machine.Variants()[0]).Dump(machine.Kind(1)))
	for _, name := range []string{"ConsoleApp1.dmp", "ConsoleApp1.Kernel.dmp"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "readline", name))
		if err != nil {
			t.Fatal(err)
		}
		f.user, f.half = f.half, write(filepath.Join("a; "+s.of("folder of the pair"), name), b)
	}
	// What the machine's builder made up: a command line, objects, folders, threads.
	for _, text := range []string{"third quarter", "--interactive", "ReportTurn", "AcmePort", `Files\Acme`, "settings.dat"} {
		s["machine "+text] = text
	}
	f.db = filepath.Join(dir, "buckets.db")
	return f
}

// leakCases are command lines by verb. A verb that is not here fails the test, as
// one that prints facts must be looked at.
func (f *privateFiles) leakCases() map[string][][]string {
	all := func(verb string, more ...string) (out [][]string) {
		dumps := []string{f.thrown, f.wild, f.kernel}
		if verb == "drivers" || verb == "processes" || verb == "cpus" { // of kernel dumps alone
			dumps = dumps[2:]
		}
		for _, dump := range dumps {
			out = append(out, append([]string{verb, dump}, more...))
		}
		return out
	}
	images := []string{"--images", f.images, "--symbols", f.images}
	missing := filepath.Join(f.dir, "missing.dmp")
	return map[string][][]string{
		"triage":    append(append(all("triage", images...), all("triage", "--brief")...), []string{"triage", missing}, append([]string{"triage", f.wild, "--explain-signature"}, images...)),
		"stacks":    append(append(all("stacks", images...), all("stacks", "--unique")...), []string{"stacks", f.kernel, "--all"}),
		"compare":   {{"compare", f.wild, f.thrown}, {"compare", f.thrown, f.thrown, "--images", f.images}},
		"batch":     {append([]string{"batch", f.thrown, f.wild, f.kernel, "--jobs", "1"}, images...), {"batch", f.dir, "--db", f.db, "--jobs", "1"}, {"batch", f.thrown, "--timeout", "1ns"}},
		"buckets":   {{"buckets", "list", "--db", f.db}, {"buckets", "export", "--db", f.db}},
		"explain":   {append([]string{"explain", f.thrown, "--thread", "0x2a4c", "--frame", "1"}, images...), {"explain", f.wild, "--thread", "0x2a4c", "--frame", "0"}},
		"info":      append(all("info"), []string{"info", missing}),
		"modules":   all("modules"),
		"drivers":   all("drivers"),
		"threads":   all("threads"),
		"processes": append(all("processes"), all("processes", "--environment")...),
		"handles":   all("handles"),
		"streams":   all("streams"),
		"cpus":      all("cpus"),
		"memory": append(all("memory"), []string{"memory", f.wild, "--va", "1d2f6a40700"}, []string{"memory", f.wild, "--va", "1d2f6a42000"},
			[]string{"memory", f.thrown, "--va", "1d2f6a40500"}, []string{"memory", f.kernel, "--process", "report.exe"},
			[]string{"memory", f.kernel, "--process", "acmesvc.exe"}, []string{"memory", f.kernel, "--process", "report.exe", "--va", "1d5a2d42000"}),
		"scrub": {{"scrub", f.thrown, filepath.Join(f.dir, "small.dmp"), "--force", "--images", f.images}, {"scrub", f.kernel, filepath.Join(f.dir, "small.dmp"), "--force"},
			{"scrub", f.user, f.half, filepath.Join(f.dir, "both"), "--force"}, {"scrub", f.user, filepath.Join(f.dir, "alone.dmp"), "--force"},
			{"scrub", f.thrown, f.kernel, filepath.Join(f.dir, "other")}},
		"symbols": append([][]string{{"symbols", "list", f.wild, "--images", f.images, "--symbols", f.images}, {"symbols", "list", f.wild, "--manifest"},
			{"symbols", "types", f.wild, "nothing"}}, []string{"symbols", "list", f.kernel}),
	}
}

// TestRedactLeaks runs every verb in text and JSON and looks for what must not be
// told, in what is written to either output.
func TestRedactLeaks(t *testing.T) {
	f := writePrivate(t)
	cases := f.leakCases()
	for _, cmd := range newApp(nil, nil).Commands {
		if slices.Contains(factless, cmd.Name) || cmd.Hidden {
			continue
		}
		if !slices.Contains(cmd.Flags, cli.Flag(redactFlag)) {
			t.Errorf("%s has no flag --redact", cmd.Name)
		}
		if len(cases[cmd.Name]) == 0 {
			t.Errorf("%s is not in the leak test: add command lines of it to leakCases, or to factless when it prints nothing of a dump", cmd.Name)
		}
		json := slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return f == jsonFlag })
		for _, args := range cases[cmd.Name] {
			if args[0] == "buckets" && !exists(f.db) {
				t.Fatal("batch made no database")
			}
			f.check(t, append(slices.Clone(args), "--redact"))
			if json {
				f.check(t, append(slices.Clone(args), "--redact", "--json"))
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// check runs a command line. Secrets are looked for as they are and as JSON has
// them; the file names of the command line itself are not secret, their folder is.
func (f *privateFiles) check(t *testing.T, args []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(args, &stdout, &stderr)
	if status == exitUsage {
		t.Errorf("%q is wrong usage: %s", args, &stderr)
	}
	for _, out := range []string{stdout.String(), stderr.String()} {
		for what, secret := range f.secrets {
			for _, form := range []string{secret, strings.ReplaceAll(secret, `\`, `\\`), strings.ToLower(secret)} {
				if at := strings.Index(out, form); at >= 0 {
					t.Errorf("%q tells the %s: ...%s...", args, what, out[max(0, at-100):min(len(out), at+60)])
					break
				}
			}
		}
	}
}

// TestRedactTestSees makes sure that the leak test can fail: without --redact the
// same dumps tell nearly everything.
func TestRedactTestSees(t *testing.T) {
	f := writePrivate(t)
	var all bytes.Buffer
	for _, args := range [][]string{{"triage", f.thrown, "--images", f.images}, {"triage", f.wild, "--images", f.images}, {"info", f.wild}, {"modules", f.wild}, {"handles", f.wild}, {"threads", f.wild},
		{"processes", f.kernel}, {"stacks", f.kernel}, {"stacks", f.user}, {"memory", f.wild, "--va", "1d2f6a40700"}, {"memory", f.kernel, "--process", "report.exe"}, {"symbols", "list", f.wild, "--images", f.images}} {
		run(args, &all, &all)
	}
	for what, secret := range f.secrets {
		switch what {
		case "environment", "build folder", "assertion", "server", "share":
			continue // shown by no verb, or by those that name what is missing
		}
		if !strings.Contains(all.String(), secret) {
			t.Errorf("no output holds the %s %q even without --redact", what, secret)
		}
	}
}

// TestRedactKeeps makes sure that what a stack is about stays: names, and the ids
// that bring equal dumps together.
func TestRedactKeeps(t *testing.T) {
	f := writePrivate(t)
	var plain, redacted bytes.Buffer
	run([]string{"triage", f.thrown, "--images", f.images, "--json"}, &plain, &plain)
	run([]string{"triage", f.thrown, "--images", f.images, "--json", "--redact"}, &redacted, &redacted)
	for _, key := range []string{`"signature":`, `"crashing_thread":`} {
		want := part(t, plain.String(), key)
		if got := part(t, redacted.String(), key); key == `"signature":` && got != want {
			t.Errorf("%s was\n%s\nis\n%s", key, want, got)
		}
	}
	for _, text := range []string{`"module":"crashes.exe"`, `"function":"call_through"`, `"filename":"ntdll.dll"`, `crashes.exe"`, `"command_line":"<command1>"`} {
		if !strings.Contains(redacted.String(), text) {
			t.Errorf("the redacted output lacks %s", text)
		}
	}
}

// part is the JSON from a key to the end of its object.
func part(t *testing.T, s, key string) string {
	t.Helper()
	_, s, ok := strings.Cut(s, key)
	if !ok {
		t.Fatalf("no %s in the output", key)
	}
	depth := 0
	for i, c := range s {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[:i+1]
			}
		}
	}
	return s
}
