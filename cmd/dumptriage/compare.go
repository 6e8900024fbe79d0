package main

import (
	"bufio"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
	"dumptriage/triage/hang"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "say what threads did between dumps of one process, taken in a row",
		ArgsUsage: "DUMP DUMP [DUMP ...]",
		Description: "Tells a process that hangs from one that is slow: which threads stand where they stood,\n" +
			"which moved, and what each used of a processor meanwhile. The dumps must be of one\n" +
			"process, by its id and time of creation; they are put in the order of their writing.",
		Flags:  []cli.Flag{jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, aloneFlag, rulesFlag, hashFlag, colorFlag, quietFlag},
		Action: runCompare,
	}
}

func runCompare(c *cli.Context) error {
	s, opt, done, err := openSeries(c)
	if err != nil {
		return fail(c, err)
	}
	defer done()
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	if c.Bool(jsonFlag.Name) {
		err = report.CompareJSON(w, s, opt)
	} else {
		err = report.CompareText(w, s, opt)
	}
	_, status := report.SeriesStatus(s)
	var damage []*dump.Error
	for _, inc := range s.Incidents {
		damage = append(damage, inc.Errors...)
	}
	return finish(c, w, err, damage, status)
}

// openSeries analyses every dump of the command line; done closes the files.
func openSeries(c *cli.Context) (s *hang.Series, opt report.Options, done func(), err error) {
	var closers []func()
	closeAll := func() {
		for _, f := range closers {
			f()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	paths := c.Args().Slice()
	if len(paths) < 2 {
		return nil, opt, nil, usagef("compare wants two dumps or more of one process; for one dump use triage")
	}
	var topt triage.Options
	if err = setSymbols(c, &topt); err != nil {
		return nil, opt, nil, err
	}
	if opt, err = reportOptions(c); err != nil {
		return nil, opt, nil, err
	}
	rules, err := ruleFiles(c)
	if err != nil {
		return nil, opt, nil, err
	}
	if c.Bool(hashFlag.Name) {
		topt.HashLimit = hashAll
	}
	var opens []*opened
	total := int64(0)
	for _, path := range paths {
		o := &opened{}
		closers = append(closers, o.Close)
		d, err := openDump(path)
		if err != nil {
			return nil, opt, nil, err
		}
		o.add(d)
		if !c.Bool(aloneFlag.Name) {
			o.addCompanion(c)
		}
		opens = append(opens, o)
		total += o.size()
	}
	limitMemory(total)
	p := newProgress(c, "analysing dumps")
	var all []*triage.Incident
	for k, o := range opens {
		p.update(k, len(opens))
		inc, err := triage.Analyze(o.user, o.kernel, o.how, topt)
		if err != nil {
			p.done()
			return nil, opt, nil, err
		}
		closers = append([]func(){func() { inc.Close() }}, closers...) // its views before the dumps
		all = append(all, inc)
	}
	p.done()
	s, err = hang.NewSeries(all, rules.Hang())
	return s, opt, closeAll, err
}
