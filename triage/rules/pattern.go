package rules

import (
	"strings"

	"dumptriage/internal/glob"
)

// Pattern matches frames by module and function.
type Pattern struct {
	module, function string
	anyModule        bool
}

// NewPattern reads "module!function", or "function" for any module.
func NewPattern(s string) Pattern {
	module, function, ok := strings.Cut(s, "!")
	// A pattern like "*operator!" has no module part: operators' names hold "!".
	if !ok || strings.HasSuffix(module, "operator") {
		return Pattern{function: s, anyModule: true}
	}
	return Pattern{module: strings.ToLower(module), function: function, anyModule: module == "*"}
}

// Match reports whether a frame matches. module is what Module returned.
func (p Pattern) Match(module, function string) bool {
	return (p.anyModule || glob.Stars(p.module, module)) && glob.Stars(p.function, function)
}

// Module is an image's name as patterns compare it: no folder, no .exe, .dll or
// .sys, lower case; the kernel under each of its file names is "nt".
func Module(image string) string {
	if i := strings.LastIndexAny(image, `\/`); i >= 0 {
		image = image[i+1:]
	}
	image = strings.ToLower(image)
	for _, ext := range []string{".exe", ".dll", ".sys"} {
		image = strings.TrimSuffix(image, ext)
	}
	switch image {
	case "ntoskrnl", "ntkrnlmp", "ntkrnlpa", "ntkrpamp", "ntkrla57":
		return "nt"
	}
	return image
}

// Set finds the first rule that a frame matches, in the order of the rules.
// It answers in a few map look-ups for rules whose function has no star.
type Set struct {
	exact map[string][]int // by function
	globs []int            // in order
	rules []Rule
}

// NewSet indexes rules.
func NewSet(rules []Rule) *Set {
	s := &Set{exact: map[string][]int{}, rules: rules}
	for i := range rules {
		if f := rules[i].Pattern.function; strings.Contains(f, "*") {
			s.globs = append(s.globs, i)
		} else {
			s.exact[f] = append(s.exact[f], i)
		}
	}
	return s
}

// Find returns the first matching rule, nil when there is none. module is what
// Module returned.
func (s *Set) Find(module, function string) *Rule {
	best := len(s.rules)
	for _, i := range s.exact[function] {
		if s.rules[i].Pattern.Match(module, function) {
			best = i
			break
		}
	}
	for _, i := range s.globs {
		if i >= best {
			break
		}
		if s.rules[i].Pattern.Match(module, function) {
			best = i
			break
		}
	}
	if best == len(s.rules) {
		return nil
	}
	return &s.rules[best]
}

// Function is the pattern's part about functions, for sections whose lines begin
// with a plain word.
func (p Pattern) Function() string { return p.function }
