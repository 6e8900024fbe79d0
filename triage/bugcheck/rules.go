package bugcheck

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"dumptriage/triage/rules"
)

//go:embed blame.rules
var blameText string

// The sections of rule files and their keys.
var (
	Sections = []string{"ladder", "kernel_module", "framework", "bugcheck"}
	Keys     = []string{"confidence", "why", "blame", "cap"}
)

// Rules say who is to blame, ready for use. They do not change.
type Rules struct {
	ladder                       []rules.Rule
	kernel, framework, bugchecks *rules.Set
}

var (
	confidences = []string{"low", "medium", "high"} // ascending
	blames      = []string{"hardware", "nobody"}
)

// Check reports a user's rule that names a step, a confidence or a blame that
// there is not.
func Check(list []rules.Rule) error {
	for i := range list {
		r := &list[i]
		if !slices.Contains(Sections, r.Section) {
			continue
		}
		if r.Section == "ladder" && !slices.Contains(steps, step(r.Pattern.Function())) {
			return fail(r, "no step %s; there are %v", rules.Quote(r.Pattern.Function()), steps)
		}
		for _, key := range []string{"confidence", "cap"} {
			if v, ok := r.Attrs[key]; ok && !slices.Contains(confidences, v) {
				return fail(r, "%s=%s: it is low, medium or high", key, rules.Quote(v))
			}
		}
		if v, ok := r.Attrs["blame"]; ok && !slices.Contains(blames, v) {
			return fail(r, "blame=%s: it is hardware or nobody", rules.Quote(v))
		}
	}
	return nil
}

func fail(r *rules.Rule, format string, args ...any) error {
	return &rules.Error{File: r.File, Line: r.Line, Msg: fmt.Sprintf(format, args...)}
}

// NewRules puts a user's rules before the built-in ones. Those of other sections
// are ignored. A user's ladder takes the place of the built-in one.
func NewRules(user []rules.Rule) (*Rules, error) {
	if err := Check(user); err != nil {
		return nil, err
	}
	own, err := rules.Parse("blame.rules", blameText, rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil {
		return nil, err
	}
	of := func(list []rules.Rule, section string) []rules.Rule {
		var out []rules.Rule
		for _, r := range list {
			if r.Section == section {
				out = append(out, r)
			}
		}
		return out
	}
	both := func(section string) *rules.Set {
		return rules.NewSet(append(of(user, section), of(own, section)...))
	}
	r := &Rules{ladder: of(user, "ladder"), kernel: both("kernel_module"), framework: both("framework"), bugchecks: both("bugcheck")}
	if len(r.ladder) == 0 {
		r.ladder = of(own, "ladder")
	}
	return r, Check(own)
}

var builtIn = sync.OnceValue(func() *Rules {
	r, err := NewRules(nil)
	if err != nil {
		panic(err) // its test reads them too
	}
	return r
})

// role is what a module is to blame.
type role uint8

const (
	roleDriver    role = iota // may be blamed
	roleFramework             // only when no driver is at hand
	roleKernel                // never but for want of anybody
)

func (r *Rules) role(module, function string) role {
	switch {
	case r.kernel.Find(module, function) != nil:
		return roleKernel
	case r.framework.Find(module, function) != nil:
		return roleFramework
	}
	return roleDriver
}

// of returns what the rules say of a bugcheck, of its kind before the code in general.
func (r *Rules) of(name string, kind uint64) (blame, most string, source string) {
	rule := r.bugchecks.Find("", fmt.Sprintf("%s/%x", name, kind))
	if rule == nil {
		rule = r.bugchecks.Find("", name)
	}
	if rule == nil {
		return "", "", ""
	}
	return rule.Attrs["blame"], rule.Attrs["cap"], rule.String()
}

// least returns the lower of two confidences; "" is none.
func least(a, b string) string {
	if b == "" || a != "" && slices.Index(confidences, a) < slices.Index(confidences, b) {
		return a
	}
	return b
}
