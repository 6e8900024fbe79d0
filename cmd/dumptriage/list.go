package main

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
)

// listFlags are the flags of every verb that prints a list of facts.
func listFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{jsonFlag, colorFlag, quietFlag}, more...)
}

// systemFlags are those of the verbs whose facts of a dump of a whole system are
// found by the kernel's symbols, too.
func systemFlags(more ...cli.Flag) []cli.Flag {
	return listFlags(append([]cli.Flag{symbolsFlag, notBesideFlag, offlineFlag}, more...)...)
}

// useKernelSymbols looks for the kernel's PDB. Such a verb asks a server only when
// its own command line names one.
func useKernelSymbols(c *cli.Context, d *triage.Dump) error {
	if !slices.Contains(c.Command.Flags, cli.Flag(symbolsFlag)) {
		return nil
	}
	p, err := symbolPath(c)
	if err != nil {
		return err
	}
	opt := storeOptions(c, p)
	if !c.IsSet(symbolsFlag.Name) {
		opt.Fetcher = nil
	}
	if !c.Bool(notBesideFlag.Name) {
		p = slices.Concat(triage.Beside(d), p)
	}
	d.UseKernelSymbols(p, opt)
	return nil
}

// listVerb runs a verb that lists facts of one dump: fill adds them.
func listVerb(kind report.ListKind, fill func(c *cli.Context, d *triage.Dump, l *report.List) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() != 1 {
			return usagef("%s wants one dump file", c.Command.Name)
		}
		opt, err := reportOptions(c)
		if err != nil {
			return err
		}
		d, err := openDump(c.Args().First())
		if err != nil {
			return fail(c, err)
		}
		defer d.Close()
		if err := useKernelSymbols(c, d); err != nil {
			return err
		}
		limit := int64(triage.DefaultHashLimit)
		if c.Bool(hashFlag.Name) {
			limit = hashAll
		}
		l := &report.List{Kind: kind, Inputs: []triage.Input{d.Describe(limit)}, System: d.System(), Process: d.Process(), Captured: d.Captured(), ThreadCount: -1, ModuleCount: -1}
		if err := fill(c, d, l); err != nil {
			return fail(c, err)
		}
		l.Errors = slices.Concat(d.Errors(), l.Errors)
		if l.Runtime != nil {
			l.Errors = append(l.Errors, l.Runtime.Damage...)
		}
		return emitList(c, l, opt)
	}
}

func emitList(c *cli.Context, l *report.List, opt report.Options) error {
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	var err error
	if c.Bool(jsonFlag.Name) {
		err = report.ListJSON(w, l, opt)
	} else {
		err = report.ListText(w, l, opt)
	}
	_, status := report.ListStatus(l)
	return finish(c, w, err, l.Errors, status)
}

// finish ends an output and returns the error that its status calls for. The
// output itself lists what was damaged; standard error only says that it does,
// for whoever sent the output elsewhere.
func finish(c *cli.Context, w *bufio.Writer, err error, errs []*dump.Error, status int) error {
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if err != nil || status == exitOK {
		return err
	}
	n := 0
	for _, e := range errs {
		if !e.Warning {
			n++
		}
	}
	s := "s"
	if n == 1 {
		s = ""
	}
	if n == 0 { // symbols fetch
		warn(c, "done in part: files are missing still, see the output")
		return statusError(status)
	}
	if status == exitFailed {
		fmt.Fprintf(c.App.ErrWriter, "dumptriage: failed: %d error%s, listed in the output\n", n, s)
	} else {
		warn(c, "done in part: %d error%s, listed in the output", n, s)
	}
	return statusError(status)
}

// wrapModules gives modules the form that the report takes.
func wrapModules(in []dump.Module) []*triage.Module {
	out := make([]*triage.Module, len(in))
	for i := range in {
		out[i] = &triage.Module{Module: &in[i]}
	}
	return out
}
