package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/crash"
)

// Every class, inconsistency, kind of target and next step has words.
func TestEveryClassHasWords(t *testing.T) {
	for file, check := range map[string]func(name string) bool{
		"class.go": func(name string) bool {
			_, access := accessWords[crash.Class(name)]
			return access || crashWords[crash.Class(name)] != ""
		},
		"inconsistent.go": func(name string) bool { return inconsistencyWords[crash.Inconsistency(name)] != "" },
		"next.go":         func(name string) bool { return nextWords[crash.NextKind(name)] != "" },
		"target.go": func(name string) bool {
			_, ok := targetKinds[crash.TargetKind(name)]
			return ok || name == "module" || name == "stack"
		},
	} {
		src, err := os.ReadFile(filepath.Join("..", "triage", "crash", file))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`(?m)^\t\w+ +(?:Class|Inconsistency|NextKind|TargetKind) += "(\w*)"`).FindAllStringSubmatch(string(src), -1)
		if len(names) < 5 {
			t.Errorf("%s: only %d names found", file, len(names))
		}
		for _, m := range names {
			if !check(m[1]) {
				t.Errorf("%s: no words for %q", file, m[1])
			}
		}
	}
}

// Every failure of a heap that has a name has words, but for the one that is not known.
func TestHeapWords(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "triage", "crash", "heap.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(src), "heapFailures = []string{")
	list, _, _ = strings.Cut(list, "}")
	names := regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(list, -1)
	if len(names) != 23 {
		t.Errorf("%d names", len(names))
	}
	for _, m := range names {
		if (heapWords[m[1]] == "") != (m[1] == "unknown") {
			t.Errorf("%s: %q", m[1], heapWords[m[1]])
		}
	}
}

func TestCrashReason(t *testing.T) {
	gone := &triage.UnloadedHit{Module: &dump.Module{Path: `C:\demo\plugin.dll`}, Offset: 0x1230}
	exception := dump.Exception{Code: 0xe0001234}
	for _, c := range []struct {
		v    crash.Verdict
		want string
	}{
		{crash.Verdict{Class: crash.NullPointer, Access: crash.Read, HasAddress: true}, "read through a null pointer"},
		{crash.Verdict{Class: crash.NullPointer, Access: crash.Write, HasAddress: true, Address: 0x45}, "write through a null pointer at offset 0x45"},
		{crash.Verdict{Class: crash.NullPointer, Access: crash.Read, HasAddress: true, Address: ^uint64(7)}, "read through a null pointer at offset -0x8"},
		{crash.Verdict{Class: crash.NullPointer, Access: crash.Execute, HasAddress: true}, "call through a null pointer"},
		{crash.Verdict{Class: crash.NonCanonical, Access: crash.Read, HasAddress: true, Address: ^uint64(0)}, "read of a non-canonical address that is not known"},
		{crash.Verdict{Class: crash.WildPointer, Access: crash.Write, HasAddress: true, Address: 0x1234500000}, "write to unmapped memory, 00000012`34500000"},
		{crash.Verdict{Class: crash.UnloadedModule, Access: crash.Execute, HasAddress: true, Address: 0x10001230, Target: &crash.Target{Unloaded: gone}}, "execution of a module that had been unloaded: plugin.dll+0x1230"},
		{crash.Verdict{Class: crash.WildPointer}, "access of unmapped memory"},
		{crash.Verdict{Class: crash.RaisedException}, "exception that the program raised itself: 0xe0001234"},
		{crash.Verdict{Class: crash.CxxException, Thrown: &crash.Thrown{Types: []string{"app::E", "std::exception"}, Message: "no\x1b[2J way"}}, `C++ exception: app::E "no\x1b[2J way"`},
		{crash.Verdict{Class: crash.CLRException, Thrown: &crash.Thrown{HResult: 0x80131509, HasHR: true, ByHResult: []string{"System.InvalidOperationException"}}},
			".NET exception: System.InvalidOperationException by its HRESULT 0x80131509"},
		{crash.Verdict{Class: crash.CLRException, Thrown: &crash.Thrown{HResult: 0x80004003, HasHR: true, ByHResult: []string{"A", "B", "C"}}}, ".NET exception: A, B or C by its HRESULT 0x80004003"},
		{crash.Verdict{Class: crash.CLRException, Thrown: &crash.Thrown{HResult: 0x87654321, HasHR: true}}, ".NET exception: HRESULT 0x87654321"},
		{crash.Verdict{Class: crash.CLRException, Thrown: &crash.Thrown{Types: []string{"App.Broken", "System.Exception"}, Message: "no luck", HResult: 0x80131500, HasHR: true}},
			".NET exception: App.Broken \"no luck\""},
		{crash.Verdict{Class: crash.InPageError, Access: crash.Read, HasAddress: true, Address: 0x10, HasStatus: true, Status: 0xc000009c},
			"the file behind mapped memory could not be read, read of 00000000`00000010, STATUS_DEVICE_DATA_ERROR"},
		{crash.Verdict{Class: crash.StackOverflow, Recursion: &crash.Recursion{Frames: 1, Rounds: 1024, AtLeast: true, Estimate: 4064}},
			"stack overflow, 1 frame repeated at least 1024 times (about 4064 by the size of the stack)"},
	} {
		inc := &triage.Incident{Crash: &triage.Crash{Exception: exception}}
		if got := crashReason(inc, &c.v, dump.AMD64); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	if got := cut("äöü", 3); got != "äöü" {
		t.Error(got)
	}
	for _, x := range []struct {
		in, want string
		width    int
	}{
		{strings.Repeat("ä", 10), "ääää...", 4}, // no place to part it
		{"give the images of first.dll, second.dll", "give the images of first.dll,...", 36},
		{"app!ns::Parser<wchar_t>::read_next+0x10", "app!ns::Parser<wchar_t>::...", 30},
		{"app!ns::Parser<wchar_t>::read_next+0x10", "app!ns::Parser...", 20},
		{"app!f+0x10", "app!f+0x10", 10},
		{"a " + strings.Repeat("x", 40), "a " + strings.Repeat("x", 18) + "...", 20}, // most would be lost
	} {
		if got := cut(x.in, x.width); got != x.want {
			t.Errorf("%q in %d: %q, want %q", x.in, x.width, got, x.want)
		}
	}
}

// Verdicts are sentences and longer than lines.
func TestVerdictIsWrapped(t *testing.T) {
	var b strings.Builder
	w := newText(&b, Options{}, dump.AMD64)
	w.prose(Options{}, "", "Verdict", "crash: "+strings.Repeat("word ", 50)+"end")
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "Verdict: crash: word") || !strings.HasSuffix(b.String(), " end\n") {
		t.Errorf("%q", lines)
	}
	for i, l := range lines {
		if len(l) > factWidth || i > 0 && !strings.HasPrefix(l, "         word") {
			t.Errorf("line %d: %q", i, l)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, x := range []struct {
		in, want string
		width    int
	}{
		{"one two three", "one two|three", 8}, {"one two three", "one two three", 13}, {"seventeen", "seventeen", 4},
		{"a seventeen b", "a|seventeen|b", 4}, {"", "", 10}, {"äöü äöü", "äöü äöü", 7}, {"two  spaces", "two |spaces", 8},
	} {
		if got := strings.Join(wrap(x.in, x.width), "|"); got != x.want {
			t.Errorf("%q in %d: %q, want %q", x.in, x.width, got, x.want)
		}
	}
}
