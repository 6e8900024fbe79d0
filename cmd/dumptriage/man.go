package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Description: "View it with: dumptriage man | man -l -",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("man takes no arguments")
			}
			_, err := io.WriteString(c.App.Writer, manPage(c.App))
			return err
		},
	}
}

// manPage makes the manual page from the verbs, flags and exit statuses
// themselves, so that it cannot go stale.
func manPage(app *cli.App) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH DUMPTRIAGE 1 "" "dumptriage %s" "User Commands"`, roff(app.Version))
	line(".SH NAME\n%s \\- %s", app.Name, roff(app.Usage))
	line(".SH SYNOPSIS\n.B dumptriage\n\\fIVERB\\fR [\\fIflags\\fR] \\fIFILES\\fR")
	line(".SH DESCRIPTION\n%s", roff(about))
	line(".SH VERBS")
	for _, cmd := range app.Commands {
		if cmd.Name == "help" {
			continue
		}
		line(".TP\n\\fB%s\\fR \\fI%s\\fR\n%s.", cmd.Name, roff(cmd.ArgsUsage), roff(capital(cmd.Usage)))
		switch {
		case strings.Contains(cmd.Description, "  "): // lined up
			line(".IP\n.nf\n%s\n.fi", roff(cmd.Description))
		case cmd.Description != "":
			line(".IP\n%s", roff(cmd.Description))
		}
	}
	line(".SH OPTIONS")
	for _, f := range allFlags(app) {
		names, usage := flagParts(f.flag)
		line(".TP\n.B %s\n%s.", roff(names), roff(capital(usage)))
		if len(f.verbs) < factVerbs(app) {
			line("Verbs: %s.", roff(strings.Join(f.verbs, ", ")))
		}
	}
	line(".SH EXIT STATUS")
	for _, s := range exitStatuses {
		line(".TP\n.B %d\n%s.", s.status, roff(capital(s.meaning)))
	}
	line(".SH ENVIRONMENT")
	for _, v := range environment {
		line(".TP\n.B %s\n%s.", roff(v.name), roff(capital(v.does)))
	}
	line(".SH EXAMPLES")
	for _, e := range examples {
		line(".TP\n.B %s\n%s.", roff(e.command), roff(capital(e.does)))
	}
	return b.String()
}

// flagOf is a flag and the verbs that take it.
type flagOf struct {
	flag  cli.DocGenerationFlag
	verbs []string
}

// allFlags collects the flags of all verbs, in the order in which they are
// first met.
func allFlags(app *cli.App) []flagOf {
	var out []flagOf
	for _, cmd := range app.Commands {
		for _, f := range cmd.Flags {
			d, ok := f.(cli.DocGenerationFlag)
			if !ok || f.Names()[0] == "help" {
				continue
			}
			i := slices.IndexFunc(out, func(o flagOf) bool { return o.flag.Names()[0] == f.Names()[0] })
			if i < 0 {
				i = len(out)
				out = append(out, flagOf{flag: d})
			}
			out[i].verbs = append(out[i].verbs, cmd.Name)
		}
	}
	return out
}

// factVerbs counts the verbs that print facts: those that take --json.
func factVerbs(app *cli.App) int {
	n := 0
	for _, cmd := range app.Commands {
		if slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), jsonFlag.Name) }) {
			n++
		}
	}
	return n
}

// roff escapes text for a manual page.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
