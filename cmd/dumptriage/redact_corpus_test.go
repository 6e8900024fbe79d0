package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
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

// TestRedactCorpus looks into what the verbs tell of real dumps with --redact.
func TestRedactCorpus(t *testing.T) {
	seen := map[string]int{}
	for _, name := range []string{"user/A01-unity-mono-jit-x64/crash.dmp", "user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab.dmp",
		"user/A03-breakpad-minidump2-x86/minidump2.dmp", "user/A10-sentry-native-x64/minidump.dmp", "user/A11-electron-v8-x64/windows.dmp",
		"user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", "kernel/k01-triage-x64-16cpu/triage_x64.dmp",
		"kernel/k02-triage-x64-user-seam/083125-14875-01.dmp", "wine/msvc/winpty-agent.bp.dmp", "wine/t64-clang-O1/dbg_cxx.dmp"} {
		path := corpus.Need(t, name)
		for _, verb := range []string{"info", "triage", "stacks", "threads", "modules", "handles", "memory", "symbols list"} {
			for _, form := range []string{"--quiet", "--json"} {
				args := append(strings.Fields(verb), path, form)
				for what, texts := range privateIn(t, path, args) {
					seen[what] += len(texts)
				}
				for what, texts := range privateIn(t, path, append(args, "--redact")) {
					t.Errorf("%s %s %s --redact tells %s: %q", verb, name, form, what, texts)
				}
			}
		}
	}
	for what, least := range map[string]int{"folder": 100, "own folder": 500} {
		if seen[what] < least {
			t.Errorf("without --redact %d texts of the kind %q are found: the test shows little", seen[what], what)
		}
	}
}

// privateIn runs a verb on a dump and returns what is private in its output, by kind.
// The folder the dump lies in is private too, wherever the project is checked out.
func privateIn(t *testing.T, path string, args []string) map[string][]string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(args, &stdout, &stderr); status == exitUsage {
		t.Fatalf("%q is wrong usage: %s", args, &stderr)
	}
	stdout.Write(stderr.Bytes())
	out := map[string][]string{}
	for what, re := range private {
		for _, m := range re.FindAllString(stdout.String(), -1) {
			if !windowsFolder.MatchString(m) {
				out[what] = append(out[what], m)
			}
		}
	}
	if n := strings.Count(strings.ReplaceAll(stdout.String(), `\\`, `\`), filepath.Dir(path)); n > 0 {
		out["own folder"] = slices.Repeat([]string{filepath.Dir(path)}, n)
	}
	return out
}
