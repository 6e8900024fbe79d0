package main

import (
	"bufio"
	"cmp"
	"errors"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

func stacksCommand() *cli.Command {
	return &cli.Command{
		Name:      "stacks",
		Usage:     "show the stack of every thread, kernel and user half joined",
		ArgsUsage: "DUMP [KERNELDUMP]",
		Description: "Walks every thread of a user dump, a kernel dump, or both. X.Kernel.dmp beside X.dmp\n" +
			"is found by itself. x64 stacks need the images of the modules on them: a full-memory\n" +
			"dump holds them, for others name their folders with --images.\n" +
			"Of a full kernel dump: the threads of the process whose thread stopped the system, and what the processors\n" +
			"were running; --process and --all choose others.",
		Flags:  []cli.Flag{jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, threadFlag, processFlag, allFlag, callbacksFlag, uniqueFlag, framesFlag, aloneFlag, rulesFlag, hashFlag, colorFlag, quietFlag},
		Action: runStacks,
	}
}

func runStacks(c *cli.Context) error {
	inc, opt, done, err := analyze(c)
	if err != nil {
		return fail(c, err)
	}
	defer done()
	opt.Unique = c.Bool(uniqueFlag.Name)
	return emit(c, inc, opt)
}

// analyze opens the inputs and analyses them with the options of the command
// line and what more sets; done closes the files.
func analyze(c *cli.Context, more ...func(*triage.Options)) (inc *triage.Incident, opt report.Options, done func(), err error) {
	var topt triage.Options
	if err = setSymbols(c, &topt); err != nil {
		return nil, opt, nil, err
	}
	if topt.Thread, err = threadID(c); err != nil {
		return nil, opt, nil, err
	}
	topt.Process, topt.AllProcesses = c.String(processFlag.Name), c.Bool(allFlag.Name)
	topt.Callbacks = c.Bool(callbacksFlag.Name)
	frames, err := frameLimit(c)
	if err != nil {
		return nil, opt, nil, err
	}
	topt.Frames = walkLimit(frames)
	if opt, err = reportOptions(c); err != nil {
		return nil, opt, nil, err
	}
	opt.Frames = frames
	rules, err := ruleFiles(c)
	if err != nil {
		return nil, opt, nil, err
	}
	if c.Bool(hashFlag.Name) {
		topt.HashLimit = hashAll
	}
	for _, set := range more {
		set(&topt)
	}
	in, err := openInputs(c)
	if err != nil {
		return nil, opt, nil, err
	}
	p := newProgress(c, "walking threads")
	topt.Progress = p.update
	inc, err = triage.Analyze(in.user, in.kernel, in.how, topt)
	p.done()
	if err == nil && topt.Thread != nil && len(inc.Threads) == 0 {
		hintThread(c, in.user, in.kernel)
	}
	if err == nil && topt.Process != "" && (in.user == nil || in.kernel == nil) {
		if _, err = chosenProcesses(c, cmp.Or(in.kernel, in.user)); err != nil {
			inc.Close()
		}
	}
	if err != nil {
		in.Close()
		return nil, opt, nil, err
	}
	opt.Verdict = verdict.Of(inc, verdict.Options{Rules: rules, OneThread: topt.Thread != nil, OneProcess: topt.Process != ""})
	return inc, opt, func() { inc.Close(); in.Close() }, nil
}

// emit prints an incident and returns the status that its damage calls for.
func emit(c *cli.Context, inc *triage.Incident, opt report.Options) error {
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	var err error
	if c.Bool(jsonFlag.Name) {
		err = report.JSON(w, inc, opt)
	} else {
		err = report.Text(w, inc, opt)
	}
	_, status := report.Status(inc)
	return finish(c, w, err, inc.Errors, status)
}

// fail reports an error that left nothing to show. With --json even a failure
// prints an object; wrong usage never does.
func fail(c *cli.Context, err error) error {
	var usage usageError
	if errors.As(err, &usage) || !c.Bool(jsonFlag.Name) {
		return err
	}
	if werr := report.FailureJSON(c.App.Writer, basicOptions(c), failedInputs(c), []*dump.Error{dump.AsError(err)}); werr != nil {
		return werr
	}
	return err
}
