package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
)

func threadsCommand() *cli.Command {
	return &cli.Command{
		Name:  "threads",
		Usage: "list the threads without walking them",
		Description: "Ids, TEBs, states, start addresses, times and names, and the exceptions of .NET threads. Times are\n" +
			"seconds of processor time.\n" +
			"Of a full kernel dump the threads of all processes, or of the one that --process names.",
		ArgsUsage: "DUMP",
		Flags:     systemFlags(processFlag),
		Action: listVerb(report.ListThreads, func(c *cli.Context, d *triage.Dump, l *report.List) error {
			chosen, err := chosenProcesses(c, d)
			if err != nil {
				return err
			}
			named := c.String(processFlag.Name) != ""
			for _, t := range d.Threads() {
				if named && !slices.ContainsFunc(chosen, func(p *dump.Process) bool { return t.Kernel != nil && t.Kernel.EPROCESS == p.EPROCESS }) {
					continue
				}
				l.Threads = append(l.Threads, triage.Thread{Thread: t, KernelInfo: t.Kernel})
			}
			if named && len(l.Threads) == 0 {
				for _, p := range chosen {
					sayAbsent(l, "threads", "%s", triage.NoThreads(p))
				}
			}
			var one *dump.Process
			if named && len(chosen) == 1 {
				one = chosen[0]
				l.Process = one
			}
			l.Runtime = triage.AddManaged(d, one, l.Threads)
			return nil
		}),
	}
}
