// Package rules reads the files that say what frames mean: which are never to
// blame, which wait for what, which begin a signature. Rules are data, so that
// users can add theirs.
//
// A file is text, one rule a line:
//
//	# a comment
//	[section]
//	module!function   key=value key="a value with spaces"
//
// module is an image's base name without its extension, in any case; function
// is a short name as frames show it, case counts. Both are globs in which * is
// any run of characters. A pattern without "!" is a function of any module. The
// sections and keys are the business of who asks for them; ParseOptions names
// them, so that a misspelt one is an error and not silence.
//
// Files are written by people and trusted as far as a configuration is: errors
// say file and line, and a file is bounded by its own size.
package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rule is one line of a file.
type Rule struct {
	Section string
	Pattern Pattern
	Attrs   map[string]string // nil when there is none
	File    string
	Line    int
}

// String is where the rule stands, "waits.rules:12".
func (r *Rule) String() string { return fmt.Sprintf("%s:%d", r.File, r.Line) }

// ParseOptions names what a file may hold. A nil list allows everything.
type ParseOptions struct {
	Sections []string
	Keys     []string
}

// Error is a line that could not be read.
type Error struct {
	File string
	Line int
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Parse reads a file's rules in order. name is for errors and Rule.File.
func Parse(name, text string, opt ParseOptions) ([]Rule, error) {
	var out []Rule
	section := ""
	line := 0
	for raw := range strings.Lines(text) {
		line++
		s := strings.TrimSpace(raw)
		if s == "" || s[0] == '#' {
			continue
		}
		fail := func(format string, args ...any) error {
			return &Error{File: name, Line: line, Msg: fmt.Sprintf(format, args...)}
		}
		if !utf8.ValidString(s) {
			return nil, fail("%s is not UTF-8", Quote(s))
		}
		if s[0] == '[' {
			inner, ok := strings.CutSuffix(s[1:], "]")
			section = strings.TrimSpace(inner)
			if !ok || section == "" {
				return nil, fail("a section is written [name]")
			}
			if opt.Sections != nil && !slices.Contains(opt.Sections, section) {
				return nil, fail("no section %s; there are %s", Quote(section), list(opt.Sections))
			}
			continue
		}
		if section == "" {
			return nil, fail("a rule stands before the first [section]")
		}
		r := Rule{Section: section, File: name, Line: line}
		if err := parseRule(&r, s, opt.Keys); err != nil {
			return nil, fail("%v", err)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRule(r *Rule, s string, keys []string) error {
	pattern, rest := cutWord(s)
	if r.Pattern = NewPattern(pattern); r.Pattern.function == "" {
		return fmt.Errorf("%s names no function", Quote(pattern))
	}
	for rest != "" && rest[0] != '#' {
		var word string
		word, rest = cutWord(rest)
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return fmt.Errorf("%s is not key=value", Quote(word))
		}
		if keys != nil && !slices.Contains(keys, key) {
			return fmt.Errorf("no key %s; there are %s", Quote(key), list(keys))
		}
		if strings.HasPrefix(value, `"`) {
			text, err := strconv.Unquote(value)
			if err != nil {
				return fmt.Errorf("%s is not a quoted text", Quote(value))
			}
			value = text
		}
		if _, twice := r.Attrs[key]; twice {
			return fmt.Errorf("key %s is given twice", Quote(key))
		}
		if r.Attrs == nil {
			r.Attrs = map[string]string{}
		}
		r.Attrs[key] = value
	}
	return nil
}

// Quote is a part of a file in a message, of a long one the begin: what it holds
// must not act on the terminal that shows it.
func Quote(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "..."
}

// list is what there is, each once: judges share names.
func list(names []string) string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// cutWord splits s at the first space that is in no quotes.
func cutWord(s string) (word, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return s[:i], strings.TrimSpace(s[i:])
		}
	}
	return s, ""
}
