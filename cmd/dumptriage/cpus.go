package main

import (
	"bufio"

	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

func cpusCommand() *cli.Command {
	return &cli.Command{
		Name:  "cpus",
		Usage: "show what each processor of a kernel dump was running",
		Description: "The current thread with both halves of its stack, or idle; a deferred procedure call or an interrupt on\n" +
			"the processor's own stack is followed back onto the thread's. A live dump (procdump -mk) has none: its\n" +
			"processors went on.",
		ArgsUsage: "KERNELDUMP",
		Flags:     []cli.Flag{jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, framesFlag, hashFlag, colorFlag, quietFlag},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("cpus wants one kernel dump")
			}
			inc, opt, done, err := analyze(c, func(o *triage.Options) { o.Running = true })
			if err != nil {
				return fail(c, err)
			}
			defer done()
			if inc.KernelSpace == nil {
				return usagef("%s is a user dump: it says nothing of processors", c.Args().First())
			}
			w := bufio.NewWriterSize(c.App.Writer, 1<<16)
			write := report.CPUsText
			if c.Bool(jsonFlag.Name) {
				write = report.CPUsJSON
			}
			err = write(w, inc, opt)
			_, status := report.Status(inc)
			return finish(c, w, err, inc.Errors, status)
		},
	}
}
