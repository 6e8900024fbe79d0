// Package glob matches texts with patterns of stars, as rules and the names of processes
// on a command line have them. A pattern may be anyone's: none takes longer than its
// length times the text's.
package glob

import "strings"

// Stars matches s with a pattern in which * is any run of bytes. A question mark is
// itself: names that a compiler has mangled hold some.
func Stars(pattern, s string) bool { return match(pattern, s, false) }

// Match is Stars, and ? is any one byte.
func Match(pattern, s string) bool { return match(pattern, s, true) }

// match goes back to the last star alone.
func match(pattern, s string, question bool) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == s[i] || question && pattern[p] == '?'):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
