// Package verdict puts together what an incident was: the crash, the hang, the
// bugcheck and the signature, each judged by its own package.
package verdict

import (
	"slices"
	"sync"

	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/crash"
	"dumptriage/triage/hang"
	"dumptriage/triage/rules"
	"dumptriage/triage/signature"
)

// Kind says what sort of incident it was. Its text is part of the JSON contract.
type Kind string

// The kinds.
const (
	KindCrash    Kind = "crash"     // a user dump with an exception
	KindBugCheck Kind = "bugcheck"  // the system stopped
	KindLiveDump Kind = "live_dump" // a kernel dump of a system that went on
	KindHang     Kind = "hang"      // no exception, and threads that block each other
	KindSnapshot Kind = "snapshot"  // no exception: somebody asked for the dump
)

// Verdict is all that the judges say. A part is nil where its judge has nothing
// to say.
type Verdict struct {
	Kind     Kind
	Crash    *crash.Verdict
	Hang     *hang.Verdict
	BugCheck *bugcheck.Verdict
	Raising  []crash.Earlier // what threads raise or handle, of a dump without an exception
	// Signature names the incident; nil when what it is made from was left out.
	Signature *signature.Signature
	OneThread bool // as Options.OneThread: Hang has the thread's wait, and no say on the process
}

// Options steer a verdict. The zero value is usable.
type Options struct {
	Rules *Rules // nil for the built-in ones alone
	// OneThread says that only one thread was looked at. Then nothing is said of
	// what the threads do to each other, and the incident has a name only if the
	// thread is the one that it happened on.
	OneThread bool
	// OneProcess says that a process was chosen: a bugcheck has a name only if the
	// thread that it happened on is among the threads.
	OneProcess bool
}

// Rules are the rules of every judge, ready for use.
type Rules struct {
	crash     *crash.Rules
	hang      *hang.Rules
	bugcheck  *bugcheck.Rules
	signature *signature.Rules
	own       []rules.Rule
}

// OwnClasses are users' rules that give a crash a class which is none of CrashClasses.
func (r *Rules) OwnClasses() []rules.Rule { return r.own }

// CrashClasses are the classes of crashes that the built-in rules know.
func CrashClasses() []string {
	var all []string
	for _, c := range crash.Classes {
		all = append(all, string(c))
	}
	return all
}

// RuleFile is the text of a user's rule file.
type RuleFile struct{ Name, Text string }

// sections and keys are those of all judges: one file may hold rules for each.
var (
	sections = slices.Concat(crash.Sections, hang.Sections, bugcheck.Sections, signature.Sections)
	keys     = slices.Concat(crash.Keys, hang.Keys, bugcheck.Keys)
)

// NewRules reads users' rule files, which come before the built-in rules, the
// first file first. The error is a *rules.Error and names file and line.
func NewRules(files ...RuleFile) (*Rules, error) {
	var user []rules.Rule
	for _, f := range files {
		list, err := rules.Parse(f.Name, f.Text, rules.ParseOptions{Sections: sections, Keys: keys})
		if err != nil {
			return nil, err
		}
		if err := crash.Check(list); err != nil {
			return nil, err
		}
		user = append(user, list...)
	}
	h, err := hang.NewRules(user)
	if err != nil {
		return nil, err
	}
	b, err := bugcheck.NewRules(user)
	if err != nil {
		return nil, err
	}
	return &Rules{crash: crash.NewRules(user), hang: h, bugcheck: b, signature: signature.NewRules(user), own: crash.OwnClasses(user)}, nil
}

// builtIn are the rules of the package's own files.
var builtIn = sync.OnceValue(func() *Rules {
	r, err := NewRules()
	if err != nil {
		panic(err) // their tests read them too
	}
	return r
})

// Hang returns the rules about waits, for what compares dumps; nil gives the
// built-in ones.
func (r *Rules) Hang() *hang.Rules {
	if r == nil {
		return nil
	}
	return r.hang
}

// Of judges an incident.
func Of(inc *triage.Incident, opt Options) *Verdict {
	r := opt.Rules
	if r == nil {
		r = builtIn()
	}
	v := &Verdict{Crash: crash.Of(inc, r.crash), Hang: hang.Of(inc, r.hang), BugCheck: bugcheck.Of(inc, r.bugcheck), OneThread: opt.OneThread}
	v.Raising = crash.Raising(inc, r.crash)
	v.Kind = v.kind(inc)
	if opt.OneProcess && v.Kind == KindBugCheck && inc.Crashing < 0 {
		return v
	}
	if !opt.OneThread || v.Kind != KindSnapshot && v.Kind != KindLiveDump && inc.Crashing >= 0 {
		v.Signature = signature.Of(inc, v.named(inc, r))
	}
	return v
}

// named is what the other judges have to say to the signature.
func (v *Verdict) named(inc *triage.Incident, r *Rules) signature.Options {
	opt := signature.Options{Rules: r.signature, NoFault: v.Crash != nil && v.Crash.NoFault()}
	if v.Crash != nil {
		opt.Class = className(v.Crash, inc.Crash.Code)
	}
	opt.Blame = v.blamed()
	if h := v.Hang; h != nil && h.Subject >= 0 {
		opt.Thread = &h.Subject
		if h.Hangs() {
			opt.Hang = &signature.Hang{Class: string(h.State), Threads: h.Chain(), Cycle: len(h.Cycles) > 0}
		}
		if h.State == hang.Possible {
			// The same hang, in a dump that holds less memory.
			opt.Hang.Class = string(hang.Deadlock)
		}
	}
	return opt
}

// blamed is the driver that a bugcheck is blamed on for what is not on its thread's stack.
func (v *Verdict) blamed() string {
	if v.BugCheck == nil {
		return ""
	}
	b := &v.BugCheck.Blame
	if b.Culprit != bugcheck.CulpritDriver || b.Index >= 0 || b.Name == "" || b.Confidence == "low" {
		return ""
	}
	if b.Frame != nil && b.Frame.Module != nil {
		return signature.Place(b.Frame)
	}
	return rules.Module(b.Name)
}

func (v *Verdict) kind(inc *triage.Incident) Kind {
	switch {
	case inc.BugCheck != nil && !inc.BugCheck.Live && !v.BugCheck.Live:
		return KindBugCheck
	case inc.BugCheck != nil && !inc.LiveCompanion():
		return KindLiveDump
	case v.Crash != nil && !v.Crash.NoFault():
		return KindCrash
	case v.Hang.Hangs() && !v.OneThread:
		return KindHang
	}
	return KindSnapshot
}
