package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

func threadsCommand() *cli.Command {
	return &cli.Command{
		Name:        "threads",
		Usage:       "list the threads without walking them",
		Description: "Ids, TEBs, states, start addresses, times and names. Times are seconds of processor time.",
		ArgsUsage:   "DUMP",
		Flags:       listFlags(),
		Action: listVerb(report.ListThreads, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			for _, t := range d.Threads() {
				l.Threads = append(l.Threads, triage.Thread{Thread: t, KernelInfo: t.Kernel})
			}
			return nil
		}),
	}
}
