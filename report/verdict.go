package report

import (
	"io"

	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/crash"
	"dumptriage/triage/verdict"
)

// AnalysisJSON is the verdict: what happened, in general and in one sentence,
// and who is to blame. Its parts say the rest.
type AnalysisJSON struct {
	Class      string             `json:"class,omitempty" jsonschema_description:"crash, bugcheck, live_dump, hang or snapshot"`
	Reason     string             `json:"reason,omitempty" jsonschema_description:"one sentence"`
	Blame      string             `json:"blame,omitempty" jsonschema_description:"module!function held responsible"`
	Confidence string             `json:"confidence,omitempty" jsonschema_description:"high, medium or low"`
	Crash      *CrashAnalysisJSON `json:"crash,omitempty" jsonschema_description:"of a dump with an exception"`
	Hang       *HangAnalysisJSON  `json:"hang,omitempty" jsonschema_description:"what the threads do to each other"`
}

// CrashAnalysisJSON is what a crash was.
type CrashAnalysisJSON struct {
	Class string `json:"class"`
}

// analysisJSON says what an incident was. Without a verdict it is what the
// incident itself proves.
func analysisJSON(inc *triage.Incident, v *verdict.Verdict) *AnalysisJSON {
	var a *AnalysisJSON
	switch {
	case inc.BugCheck != nil:
		a = &AnalysisJSON{Class: string(verdict.KindBugCheck)}
		if inc.BugCheck.Live {
			a.Class = string(verdict.KindLiveDump)
		}
		a.Reason, _, _ = codes.BugCheck(inc.BugCheck.Code)
		if b := inc.BugCheck.Blame; b != nil && b.Module != nil {
			a.Blame, a.Confidence = b.Module.Name(), b.Confidence
		}
	case inc.Crash != nil:
		a = &AnalysisJSON{Class: string(verdict.KindCrash), Reason: CrashType(&inc.Crash.Exception)}
	case v != nil:
		a = &AnalysisJSON{Class: string(v.Kind)}
		a.hangReason(inc, v.Hang)
	default:
		return nil
	}
	if v != nil {
		a.crash(v.Crash)
		a.Hang = hangJSON(inc, v.Hang)
	}
	return a
}

func (a *AnalysisJSON) crash(c *crash.Verdict) {
	if c == nil {
		return
	}
	a.Crash = &CrashAnalysisJSON{Class: string(c.Class)}
}

// TriageText writes the verdict for people: what happened and who is to blame,
// then the stack of the thread that it happened on. Brief leaves out the stack.
func TriageText(w io.Writer, inc *triage.Incident, opt Options) error {
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	t.verdict(inc, opt.Verdict)
	if opt.Verdict != nil {
		t.hang(inc, opt.Verdict.Hang, opt.Brief)
	}
	t.heading(inc)
	t.crash(inc)
	t.bugCheck(inc)
	if inc.Crashing >= 0 && inc.Crashing < len(inc.Threads) {
		t.line("", "")
		t.thread(inc, inc.Crashing)
	}
	if opt.Verdict != nil && !opt.Brief {
		t.hangStacks(inc, opt.Verdict.Hang)
	}
	t.explainSignature(opt)
	t.missing(inc.Missing)
	t.errors(inc.Errors)
	return t.flush()
}

// verdict writes the block that a reader in a hurry reads alone.
func (t *text) verdict(inc *triage.Incident, v *verdict.Verdict) {
	a := analysisJSON(inc, v)
	if a == nil {
		return
	}
	t.line(sgrBold, "Verdict: %s", clean(joinWith(": ", a.Class, a.Reason)))
	t.signature(v)
}
