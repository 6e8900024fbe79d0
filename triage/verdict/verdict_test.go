package verdict

import (
	"errors"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/rules"
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
	for text, line := range map[string]int{"[nothing]\n": 1, "[skip]\n\nf why=tired\n": 3, "[skip]\nf colour=red\n": 2, "[class]\nf\n": 2} {
		_, err := NewRules(RuleFile{"good.rules", ""}, RuleFile{"bad.rules", text})
		var e *rules.Error
		if !errors.As(err, &e) || e.File != "bad.rules" || e.Line != line {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}
