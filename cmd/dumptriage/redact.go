package main

import (
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/report/redact"
)

var redactFlag = &cli.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "leave out what tells of people and machines: users, folders, command lines, texts in memory"}

// factless are the verbs that print no facts of dumps.
var factless = []string{"schema", "completion", "man"}

// addRedact gives a verb the flag --redact: all have it, so that none is forgotten.
func addRedact(cmd *cli.Command) {
	if !slices.Contains(factless, cmd.Name) && !slices.Contains(cmd.Flags, cli.Flag(redactFlag)) {
		cmd.Flags = append(cmd.Flags, redactFlag)
	}
}

// basicOptions are what every output takes from the command line.
func basicOptions(c *cli.Context) report.Options {
	opt := report.Options{Tool: tool()}
	if c.Bool(redactFlag.Name) {
		opt.Redact = newRedactor(c)
	}
	return opt
}

// newRedactor makes a redactor that knows the paths of the command line, for
// messages that quote them.
func newRedactor(c *cli.Context) *redact.Redactor {
	r := report.NewRedactor()
	for _, path := range c.Args().Slice() {
		r.Learn(path)
	}
	for _, f := range []string{imagesFlag.Name, symbolsFlag.Name} {
		for _, place := range c.StringSlice(f) {
			r.LearnFolder(place)
		}
	}
	for _, path := range append(c.StringSlice(rulesFlag.Name), c.String(dbFlag.Name), c.String(outFlag.Name), c.String(toFlag.Name)) {
		r.Learn(path)
	}
	return r
}

// redactedErrors takes paths out of messages too, for whoever keeps both outputs in
// one file.
func redactedErrors(args []string, w io.Writer) io.Writer {
	r := argumentRedactor(args)
	if r == nil {
		return w
	}
	return redactedWriter{w, r}
}

// argumentRedactor is newRedactor for where no flags are parsed yet; nil when the
// arguments do not ask for one.
func argumentRedactor(args []string) *redact.Redactor {
	asked := slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return name == redactFlag.Name && strings.HasPrefix(a, "-")
	})
	if !asked {
		return nil
	}
	r := report.NewRedactor()
	folders := []string{"--" + imagesFlag.Name, "-" + imagesFlag.Aliases[0], "--" + symbolsFlag.Name, "-" + symbolsFlag.Aliases[0]}
	for i, a := range args {
		if i > 0 && slices.Contains(folders, args[i-1]) {
			r.LearnFolder(a)
		} else if !strings.HasPrefix(a, "-") {
			r.Learn(a)
		} else if name, value, ok := strings.Cut(a, "="); ok && slices.Contains(folders, name) {
			r.LearnFolder(value)
		} else if ok {
			r.Learn(value)
		}
	}
	return r
}

// redactedWriter takes whole messages.
type redactedWriter struct {
	w io.Writer
	r *redact.Redactor
}

func (w redactedWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.Message(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
