package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// otherFlag ends the sentence that a verb has no such flag: with the flag that was
// probably meant, or with the verbs that have it.
func otherFlag(c *cli.Context, typed string) string {
	if near := nearestFlag(c.Command, typed); near != "" {
		return "; did you mean " + dashed(near) + "?"
	}
	var verbs []string
	for _, cmd := range c.App.Commands {
		if slices.Contains(flagNames(cmd), typed) {
			verbs = append(verbs, cmd.Name)
		}
	}
	switch {
	case len(verbs) == 0:
		return ""
	case len(verbs) > 3:
		return "; other verbs have it"
	}
	return "; it belongs to " + strings.Join(verbs, ", ")
}

// nearestFlag returns the verb's flag that a mistyped or shortened name stands
// for, "" when none is near: one edit in three letters.
func nearestFlag(cmd *cli.Command, typed string) string {
	best, least := "", len(typed)/3+1
	for _, name := range flagNames(cmd) {
		if len(name) == 1 || len(typed) < 3 {
			continue
		}
		d := edits(typed, name)
		if strings.HasPrefix(name, typed) {
			d = 0
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// flagNames are the names, long and short, of a verb's flags that help shows.
func flagNames(cmd *cli.Command) []string {
	var names []string
	for _, f := range cmd.Flags {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			names = append(names, f.Names()...)
		}
	}
	return names
}

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// valueWanted ends the sentence that a flag does not take a value: with what it
// takes.
func valueWanted(c *cli.Context, name string) string {
	for _, f := range c.Command.Flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return ", but a duration such as 30s"
		case *cli.IntFlag:
			return ", but a number"
		}
	}
	return ""
}
