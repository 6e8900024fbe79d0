package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// about is what help and the manual page say of the program.
const about = "Reads user minidumps and kernel dumps, unwinds every thread with the data that Windows uses,\n" +
	"and joins the kernel half of a stack to its user half. Needs no Windows, network or symbols.\n" +
	"FILES may be compressed (.zst, .gz, .zip, .cab); - is standard input."

var examples = []struct{ command, does string }{
	{"dumptriage triage app.dmp", "what happened, who is to blame, what to do next"},
	{"dumptriage stacks app.dmp", "every stack of a dump; app.Kernel.dmp beside it is used too"},
	{"dumptriage stacks app.dmp app.Kernel.dmp", "both halves of every stack"},
	{"dumptriage stacks app.dmp --images C_Windows/", "unwind with the images in a folder"},
	{"dumptriage stacks app.dmp --unique --json", "equal stacks once, for a program to read"},
	{"dumptriage symbols list app.dmp", "which images and symbols it needs, found and missing"},
	{"dumptriage compare first.dmp later.dmp", "hung or slow: what moved between two dumps"},
	{"dumptriage batch /dumps --db buckets.db", "many dumps, counted by what happened"},
	{"dumptriage info MEMORY.DMP.zst", "what a file is"},
}

// description is the text below the usage line of the program's help.
func description() string {
	var b strings.Builder
	b.WriteString(about + "\n\nExamples:\n")
	for _, e := range examples {
		fmt.Fprintf(&b, "  %-48s %s\n", e.command, e.does)
	}
	b.WriteString("\nExit status:\n")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, "  %-3d  %s\n", s.status, s.meaning)
	}
	b.WriteString("\nEnvironment:\n")
	for _, v := range environment {
		fmt.Fprintf(&b, "  %-26s %s\n", v.name, v.does)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// flagParts returns how a flag is typed, "--images DIR, -i DIR", and what it does.
func flagParts(f cli.DocGenerationFlag) (names, usage string) {
	usage = f.GetUsage()
	value := ""
	if f.TakesValue() {
		value = " VALUE"
		if _, rest, ok := strings.Cut(usage, "`"); ok {
			name, _, _ := strings.Cut(rest, "`")
			value = " " + name
		}
	}
	var typed []string
	for _, n := range f.Names() {
		typed = append(typed, dashed(n)+value)
	}
	return strings.Join(typed, ", "), strings.ReplaceAll(usage, "`", "")
}

// flagLine is a flag's line in the help of a verb.
func flagLine(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	names, usage := flagParts(d)
	if text := d.GetDefaultText(); f == colorFlag || f == framesFlag || f == jobsFlag || f == lengthFlag {
		usage += " (default: " + strings.Trim(text, `"`) + ")"
	}
	return names + "\t" + strings.Join(wrapWords(usage, flagWidth), "\n\t")
}

// flagWidth is how wide the words about a flag are in help.
const flagWidth = 78

// wrapWords breaks a text at spaces into lines of at most so many bytes, if its words allow.
func wrapWords(s string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
