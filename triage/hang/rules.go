package hang

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dumptriage/triage/rules"
)

//go:embed waits.rules
var builtinText string

// Sections and Keys are what rules about waits are made of.
var (
	Sections = []string{"wait", "hold", "role", "plumbing"}
	Keys     = []string{"class", "object", "arg", "count", "all", "any", "lock", "role", "over", "calls"}
)

// Rules are rules ready for use.
type Rules struct {
	wait, hold, role, plumbing *rules.Set
	params                     map[*rules.Rule]waitRule
}

// waitRule is what a [wait] rule says, read.
type waitRule struct {
	class                Class
	object               Kind
	arg, count, all, any int     // -1 none
	over                 []Class // the classes that it takes the place of, nil any but a lock
}

// callsOut says of a [hold] rule that the function holds the lock only while it has
// called what is not of its own module.
const callsOut = "out"

// maxArg is the highest argument that a rule may name: the last in a register.
const maxArg = 3

var builtin = sync.OnceValues(func() ([]rules.Rule, error) {
	return rules.Parse("waits.rules", builtinText, rules.ParseOptions{Sections: Sections, Keys: Keys})
})

// NewRules puts a user's rules in front of the built-in ones; those of other
// sections are not looked at. The error is a *rules.Error.
func NewRules(user []rules.Rule) (*Rules, error) {
	own, err := builtin()
	if err != nil {
		return nil, err
	}
	r := &Rules{params: map[*rules.Rule]waitRule{}}
	by := map[string][]rules.Rule{}
	for _, rule := range append(slices.Clone(user), own...) {
		by[rule.Section] = append(by[rule.Section], rule)
	}
	for i := range by["wait"] {
		rule := &by["wait"][i]
		if r.params[rule], err = readWait(rule); err != nil {
			return nil, &rules.Error{File: rule.File, Line: rule.Line, Msg: err.Error()}
		}
	}
	for _, rule := range by["hold"] {
		if text, ok := rule.Attrs["calls"]; ok && text != callsOut {
			return nil, &rules.Error{File: rule.File, Line: rule.Line, Msg: fmt.Sprintf("calls wants %s, not %q", callsOut, text)}
		}
	}
	r.wait, r.hold, r.role, r.plumbing = rules.NewSet(by["wait"]), rules.NewSet(by["hold"]), rules.NewSet(by["role"]), rules.NewSet(by["plumbing"])
	return r, nil
}

func readWait(rule *rules.Rule) (waitRule, error) {
	w := waitRule{class: Class(rule.Attrs["class"]), object: Kind(rule.Attrs["object"]), arg: -1, count: -1, all: -1, any: -1}
	if !slices.Contains(classes, w.class) {
		return w, fmt.Errorf("no class %q", w.class)
	}
	if w.object != KindNone && !slices.Contains(kinds, w.object) {
		return w, fmt.Errorf("no kind of object %q", w.object)
	}
	for key, to := range map[string]*int{"arg": &w.arg, "count": &w.count, "all": &w.all, "any": &w.any} {
		text, ok := rule.Attrs[key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxArg {
			return w, fmt.Errorf("%s wants the number of an argument, 0 to %d, not %q", key, maxArg, text)
		}
		*to = n
	}
	if text, ok := rule.Attrs["over"]; ok {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(classes, Class(name)) {
				return w, fmt.Errorf("no class %q", name)
			}
			w.over = append(w.over, Class(name))
		}
	}
	if (w.object == KindNone) != (w.arg < 0) {
		return w, fmt.Errorf("object and arg go together")
	}
	if w.object == KindHandles && w.count < 0 {
		return w, fmt.Errorf("object=handles wants count")
	}
	return w, nil
}
