package rules

import (
	"errors"
	"strings"
	"testing"
)

const sample = `
# who waits
[wait]
ntdll!NtWaitForSingleObject   class=object arg=rcx
ntdll!RtlpEnterCriticalSection* class=cs note="the owner's thread id # not a comment"
*!main  # a comment

[skip]
memcpy
`

func TestParse(t *testing.T) {
	got, err := Parse("x.rules", sample, ParseOptions{Sections: []string{"wait", "skip"}, Keys: []string{"class", "arg", "note"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d rules, want 4", len(got))
	}
	if r := got[1]; r.Attrs["note"] != "the owner's thread id # not a comment" || r.String() != "x.rules:5" || r.Section != "wait" {
		t.Errorf("second rule: %+v", r)
	}
	if r := got[3]; r.Section != "skip" || r.Attrs != nil {
		t.Errorf("last rule: %+v", r)
	}
}

func TestParseErrorsSayTheLine(t *testing.T) {
	opt := ParseOptions{Sections: []string{"a"}, Keys: []string{"k"}}
	for text, want := range map[string]string{
		"f k=v\n":             "f:1: a rule stands before the first [section]",
		"[a\n":                "f:1: a section is written [name]",
		"[b]\n":               `f:1: no section "b"; there are a`,
		"[a]\nm!f x=1\n":      `f:2: no key "x"; there are k`,
		"[a]\nm!f k=1 k=2\n":  `f:2: key "k" is given twice`,
		"[a]\nm!f k\n":        `f:2: "k" is not key=value`,
		"[a]\n\nm!f k=\"un\n": `f:3: "\"un" is not a quoted text`,
		"[a]\ncr\xe9me!f\n":   `f:2: "cr\xe9me!f" is not UTF-8`,
		"[a]\nm!\n":           `f:2: "m!" names no function`,
		"[a]\nf " + strings.Repeat("x", 1<<20) + "\n": `f:2: "` + strings.Repeat("x", 60) + `"... is not key=value`,
	} {
		_, err := Parse("f", text, opt)
		var e *Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestModule(t *testing.T) {
	for in, want := range map[string]string{
		`C:\Windows\System32\NTDLL.DLL`: "ntdll", "ntkrnlmp.exe": "nt", "a.b.dll": "a.b", "/x/y.SYS": "y", "": "",
	} {
		if got := Module(in); got != want {
			t.Errorf("Module(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSetTakesTheFirstInOrder(t *testing.T) {
	list, err := Parse("f", "[s]\nntdll!Nt*\nntdll!NtClose\nmsvcrt!free\n*!fr*\nstd::operator!=\n", ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := NewSet(list)
	for _, c := range []struct {
		module, function string
		line             int
	}{
		{"ntdll", "NtClose", 2}, {"msvcrt", "free", 4}, {"ucrtbase", "free", 5}, {"ntdll", "ntclose", 0},
		{"any", "std::operator!=", 6}, {"ntdll2", "NtClose", 0},
	} {
		line := 0
		if r := set.Find(c.module, c.function); r != nil {
			line = r.Line
		}
		if line != c.line {
			t.Errorf("%s!%s matched line %d, want %d", c.module, c.function, line, c.line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("[s]\nx \"")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse("f", text, ParseOptions{})
		if err == nil {
			NewSet(list).Find("ntdll", "NtClose")
		}
	})
}
