package signature

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"dumptriage/triage/rules"
)

// The sections of a rule file that signatures are made by.
const (
	sectionSentinel   = "sentinel"
	sectionIrrelevant = "irrelevant"
	sectionPrefix     = "prefix"
	sectionKeep       = "keep"
	sectionInternal   = "internal"
	sectionSystem     = "system"
)

// Sections are the sections that a rule file may have for signatures.
var Sections = []string{sectionSentinel, sectionIrrelevant, sectionPrefix, sectionKeep, sectionInternal, sectionSystem}

//go:embed signature.rules
var builtinText string

// Rules are compiled rules, safe for concurrent use.
type Rules struct{ sentinel, internal, system, rest *rules.Set }

// NewRules compiles the user's rules, which come before the built-in ones. Those
// of other sections are not for signatures and ignored.
func NewRules(user []rules.Rule) *Rules {
	var sentinel, internal, system, rest []rules.Rule
	for _, r := range slices.Concat(user, builtinRules()) {
		switch {
		case r.Section == sectionSentinel:
			sentinel = append(sentinel, r)
		case r.Section == sectionInternal:
			internal = append(internal, r)
		case r.Section == sectionSystem:
			system = append(system, r)
		case slices.Contains(Sections, r.Section):
			rest = append(rest, r)
		}
	}
	return &Rules{rules.NewSet(sentinel), rules.NewSet(internal), rules.NewSet(system), rules.NewSet(rest)}
}

// Builtin returns the rules that algorithm bkt1 has.
var Builtin = sync.OnceValue(func() *Rules { return NewRules(nil) })

var builtinRules = sync.OnceValue(func() []rules.Rule {
	list, err := rules.Parse("signature.rules", builtinText, rules.ParseOptions{Sections: Sections, Keys: []string{}})
	if err != nil {
		panic(err) // part of the program; a test parses it
	}
	return list
})

// Sentinel reports whether what stands above a canonical frame is the machinery of
// reporting.
func (r *Rules) Sentinel(frame string) bool {
	module, rest := splitName(frame)
	return r.sentinel.Find(module, strings.TrimPrefix(rest, "!")) != nil
}

// Ordinary reports whether a canonical frame says something of its own: no rule
// makes the walk of a signature leave it out or go on past it.
func (r *Rules) Ordinary(frame string) bool {
	module, rest := splitName(frame)
	function := strings.TrimPrefix(rest, "!")
	if r.sentinel.Find(module, function) != nil {
		return false
	}
	rule := r.rest.Find(module, function)
	return rule == nil || rule.Section == sectionKeep
}
