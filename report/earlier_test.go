package report

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/crash"
	"dumptriage/triage/verdict"
)

func TestEarlierWords(t *testing.T) {
	thrown := &crash.Thrown{Types: []string{"app::ParseError"}, Message: "line\x1b 7"}
	raised := func(code uint32, frame int, live bool) triage.Raised {
		return triage.Raised{Exception: dump.Exception{ThreadID: 0x5c, Code: code, Address: 0x7ff712340010}, At: 0x4c1a8f0000, Frame: frame, Live: live}
	}
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Crashing: -1}
	for _, c := range []struct {
		e           crash.Earlier
		want, found string
	}{
		{crash.Earlier{Raised: raised(0xe06d7363, 3, false), Thrown: thrown}, `C++ exception app::ParseError "line\x1b 7", raised at 0x00007ff7` + "`12340010" + `, left on the stack, it may be over`, "stack"},
		{crash.Earlier{Raised: raised(0xe0001234, 3, true)}, "e0001234, which has no name, raised at 0x00007ff7`12340010, frame 3", "frame"},
		{crash.Earlier{Raised: raised(0xc0000094, -1, true), Nested: true}, "EXCEPTION_INT_DIVIDE_BY_ZERO (c0000094), raised at 0x00007ff7`12340010, the exception's record points to it", "nested"},
	} {
		var b strings.Builder
		w := newText(&b, Options{}, dump.AMD64)
		w.raising(inc, []crash.Earlier{c.e}, Options{})
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); got != "Raising: thread 5c: "+c.want { // wrapped at words
			t.Errorf("%q, want %q", got, c.want)
		}
		j := raisingJSON([]crash.Earlier{c.e}, hexFor(dump.AMD64))
		if len(j) != 1 || j[0].Found != c.found || *j[0].ThreadID != 0x5c || (j[0].Frame != nil) != (c.e.Frame >= 0) || j[0].Record != "0x0000004c1a8f0000" {
			t.Errorf("%+v", j)
		}
	}
}

// An exception whose thread is not in the dump says so, but not where one thread was
// asked for and others were left out.
func TestThreadOfExceptionMissing(t *testing.T) {
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Crashing: -1, Crash: &triage.Crash{Exception: dump.Exception{ThreadID: 0x63, Code: 0xe0001234}}}
	for _, one := range []bool{false, true} {
		v := verdict.Of(inc, verdict.Options{OneThread: one})
		var b strings.Builder
		if err := TriageText(&b, inc, Options{Verdict: v}); err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(b.String(), "Missing: the exception's thread, 63, is not in the dump\n"); says == one {
			t.Errorf("of one thread %v: %s", one, b.String())
		}
	}
}
