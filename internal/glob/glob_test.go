package glob

import (
	"strings"
	"testing"
)

func TestStars(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"abc", "abc", true}, {"abc", "abcd", false}, {"a*", "a", true}, {"*", "", true}, {"", "", true}, {"", "a", false},
		{"*Lock*", "AcquireLockNow", true}, {"a*c*e", "abcde", true}, {"a*c*e", "abcd", false}, {"a**b", "ab", true}, {"a?", "ab", false}, {"a?", "a?", true},
		{strings.Repeat("*a", 50), strings.Repeat("a", 49), false},
	} {
		if got := Stars(c.pattern, c.s); got != c.want {
			t.Errorf("Stars(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// TestMatch compares with what patterns mean, and takes a pattern that would take a
// careless matcher for ever.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"?", "", false}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXbY", false}, {"**a", "ba", true}, {"a?", "ab", true}, {"a?", "a", false},
		{strings.Repeat("*a", 200) + "b", strings.Repeat("a", 20000), false},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("%.20q on %.20q: %v", c.pattern, c.text, got)
		}
	}
}
