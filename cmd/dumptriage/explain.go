package main

import (
	"bufio"
	"strconv"

	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

var (
	frameFlag   = &cli.StringFlag{Name: "frame", Aliases: []string{"f"}, Usage: "the frame with this `NUMBER` (decimal, or 0x and hexadecimal as stacks prints it)"}
	kernelFlag  = &cli.BoolFlag{Name: "kernel", Usage: "look at the kernel half alone"}
	handlerFlag = &cli.BoolFlag{Name: "handler", Usage: "look at the frames of the exception's handler, where the thread stood when the dump was written"}
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "tell how one frame was found: the rule, what it read, and why no better rule served",
		ArgsUsage: "DUMP [KERNELDUMP]",
		Description: "Prints the rule that found the frame, the image and the function table entry, each\n" +
			"operation undone with the address read and its value, and why each better rule did not\n" +
			"apply. The number behind the last frame asks why the stack ends there.",
		Flags:  []cli.Flag{threadFlag, frameFlag, kernelFlag, handlerFlag, jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, aloneFlag, colorFlag, quietFlag},
		Action: runExplain,
	}
}

func runExplain(c *cli.Context) error {
	want, err := explainFrame(c)
	if err != nil {
		return fail(c, err)
	}
	inc, opt, done, err := analyze(c, func(o *triage.Options) { o.Explain = want })
	if err != nil {
		return fail(c, err)
	}
	defer done()
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	if c.Bool(jsonFlag.Name) {
		err = report.JSON(w, inc, opt)
	} else {
		err = report.ExplainText(w, inc, opt)
	}
	_, status := report.Status(inc)
	return finish(c, w, err, inc.Errors, status)
}

func explainFrame(c *cli.Context) (*triage.ExplainFrame, error) {
	if c.String(threadFlag.Name) == "" || c.String(frameFlag.Name) == "" {
		return nil, usagef("explain wants --thread ID and --frame NUMBER")
	}
	n, err := strconv.ParseUint(c.String(frameFlag.Name), 0, 31)
	if err != nil {
		return nil, usagef("--frame wants a number such as 12 or 0xc, not %q", c.String(frameFlag.Name))
	}
	if c.Bool(kernelFlag.Name) && c.Bool(handlerFlag.Name) {
		return nil, usagef("--kernel and --handler exclude each other")
	}
	return &triage.ExplainFrame{Frame: int(n), Kernel: c.Bool(kernelFlag.Name), Handler: c.Bool(handlerFlag.Name)}, nil
}
