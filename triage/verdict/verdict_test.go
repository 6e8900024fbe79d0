package verdict

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/hang"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

func TestKind(t *testing.T) {
	crash := &triage.Crash{Exception: dump.Exception{Code: 0xc0000005}}
	asked := &triage.Crash{Exception: dump.Exception{Code: 0x0517a7ed}}
	stop, live := &triage.BugCheck{}, &triage.BugCheck{Live: true}
	pair := &triage.Pairing{}
	for _, c := range []struct {
		what string
		inc  triage.Incident
		want Kind
	}{
		{"nothing", triage.Incident{}, KindSnapshot},
		{"a crash", triage.Incident{Crash: crash}, KindCrash},
		{"a dump that was asked for", triage.Incident{Crash: asked}, KindSnapshot},
		{"a bugcheck", triage.Incident{BugCheck: stop}, KindBugCheck},
		{"a bugcheck in a pair", triage.Incident{BugCheck: stop, Crash: crash, Pairing: pair}, KindBugCheck},
		{"a live dump", triage.Incident{BugCheck: live}, KindLiveDump},
		{"a live dump beside a crash", triage.Incident{BugCheck: live, Crash: crash, Pairing: pair}, KindCrash},
		{"a live dump beside a snapshot", triage.Incident{BugCheck: live, Pairing: pair}, KindSnapshot},
	} {
		c.inc.Crashing = -1
		if got := Of(&c.inc, Options{}).Kind; got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Verdict and signature speak of the same thing, also where threads hang beside it.
func TestSignatureIsOfTheKind(t *testing.T) {
	frame := func(module, function string, trust unwind.Trust) triage.Frame {
		m := &triage.Module{Module: &dump.Module{Path: module, Base: 0x10000, Size: 0x10000}}
		return triage.Frame{Frame: unwind.Frame{IP: 0x10100, Lookup: 0x10100, Trust: trust}, Module: m, Name: symbols.Name{Function: function, Source: symbols.SourceExport}}
	}
	hangs := func() []triage.Thread {
		return []triage.Thread{{Thread: dump.Thread{ID: 4}, User: &triage.Half{Frames: []triage.Frame{
			frame("ntdll.dll", "NtWaitForSingleObject", unwind.TrustContext), frame("ntdll.dll", "LdrLockLoaderLock", unwind.TrustCFI), frame("app.exe", "plug", unwind.TrustCFI)}}}}
	}
	const hangText = "HANG_LOADER_LOCK | ntdll!LdrLockLoaderLock | app!plug"
	live := &triage.BugCheck{BugCheck: dump.BugCheck{Code: 0x161}, Live: true}
	for what, c := range map[string]struct {
		inc  triage.Incident
		kind Kind
		text string
	}{
		"a hang":                                {triage.Incident{}, KindHang, hangText},
		"a hang that a debugger broke into":     {triage.Incident{Crash: &triage.Crash{Exception: dump.Exception{Code: 0x0517a7ed}}}, KindHang, hangText},
		"a hang with its kernel half":           {triage.Incident{BugCheck: live, Pairing: &triage.Pairing{}}, KindHang, hangText},
		"a system that went on, and that hangs": {triage.Incident{BugCheck: live}, KindLiveDump, hangText},
		"a crash in a process that hangs":       {triage.Incident{Crash: &triage.Crash{Exception: dump.Exception{ThreadID: 4, Code: 0xc0000094}}}, KindCrash, "INT_DIVIDE_BY_ZERO | ntdll!LdrLockLoaderLock | app!plug"},
		"a stopped system":                      {triage.Incident{BugCheck: &triage.BugCheck{BugCheck: dump.BugCheck{Code: 0xd1}}}, KindBugCheck, "BUGCHECK_0xD1 | ntdll!LdrLockLoaderLock | app!plug"},
	} {
		c.inc.Threads, c.inc.System.Arch, c.inc.Crashing = hangs(), dump.AMD64, -1
		if c.kind == KindCrash || c.kind == KindBugCheck {
			c.inc.Crashing = 0
		}
		v := Of(&c.inc, Options{})
		if v.Kind != c.kind || v.Signature == nil || v.Signature.Text != c.text {
			t.Errorf("%s: %s, %+v, want %s, %s", what, v.Kind, v.Signature, c.kind, c.text)
		}
		// Of another process than the one that it happened in a bugcheck has no name.
		other := c.inc
		other.Crashing = -1
		if v := Of(&other, Options{OneProcess: true}); (v.Signature == nil) != (v.Kind == KindBugCheck) {
			t.Errorf("%s, another process: %s, %+v", what, v.Kind, v.Signature)
		}
		// Of one thread alone nothing is said of the process.
		if one := Of(&c.inc, Options{OneThread: true}); one.Kind == KindHang || one.Signature != nil && one.Signature.Kind == "hang" {
			t.Errorf("%s, one thread: %s, %+v", what, one.Kind, one.Signature)
		}
	}
}

// One file may hold rules for every judge, and what is wrong in it is found
// whoever it is for.
func TestRuleFiles(t *testing.T) {
	var every strings.Builder
	for _, s := range sections {
		every.WriteString("[" + s + "]\n")
	}
	if _, err := NewRules(RuleFile{"all.rules", every.String()}, RuleFile{"skip.rules", "[skip]\nlog!* why=runtime\n"}); err != nil {
		t.Error(err)
	}
	// What a file holds must not reach a terminal as it is.
	for _, text := range []string{"[\x1b[2J]", "[skip]\n\x1b[2J", "[skip]\nf \x1b[2J", "[skip]\nf \x1b[2J=1", "[skip]\nf why=\x1b[2J", "[skip]\nf why=\"\x1b[2J",
		"[folder]\nf why=\x1b[2J", "[ladder]\n\x1b[2J", "[ladder]\ndriver confidence=\x1b[2J", "[ladder]\ndriver blame=\x1b[2J",
		"[wait]\nf class=\x1b[2J", "[wait]\nf class=sleep object=\x1b[2J", "[wait]\nf class=sleep object=handle arg=\x1b[2J", "\x1b[2J", "[skip]\nf \xff\x1b[2J"} {
		if _, err := NewRules(RuleFile{"x.rules", text + "\n"}); err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%q: %q", text, err)
		}
	}
	for text, line := range map[string]int{"[nothing]\n": 1, "[skip]\n\nf why=tired\n": 3, "[skip]\nf colour=red\n": 2, "[class]\nf\n": 2} {
		_, err := NewRules(RuleFile{"good.rules", ""}, RuleFile{"bad.rules", text})
		var e *rules.Error
		if !errors.As(err, &e) || e.File != "bad.rules" || e.Line != line {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}

// Who judges one dump and who compares several agree on what was written for no crash. A
// code of 0 is no sign of that: nothing public says that a dump that was asked for has it.
func TestCompareAgreesOnCrashes(t *testing.T) {
	for code, crashed := range map[uint32]bool{0xc0000005: true, 0xe06d7363: true, 0: true, 0x0517a7ed: false, 0xffffffff: false} {
		inc := &triage.Incident{Crashing: -1, Crash: &triage.Crash{Exception: dump.Exception{Code: code}}}
		if got := Of(inc, Options{}).Kind == KindCrash; got != crashed {
			t.Errorf("%#x: a crash %v, want %v", code, got, crashed)
		}
		s, err := hang.NewSeries([]*triage.Incident{inc, inc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(s.Crashes) > 0; got != crashed {
			t.Errorf("%#x: a crash %v when compared, want %v", code, got, crashed)
		}
	}
}
