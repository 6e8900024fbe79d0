package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

func infoCommand() *cli.Command {
	return &cli.Command{
		Name:        "info",
		Usage:       "show what a dump is: kind, system, process, exception or bugcheck",
		Description: "Reads the header and directory of a dump, but not its memory.",
		ArgsUsage:   "DUMP",
		Flags:       listFlags(hashFlag),
		Action: listVerb(report.ListInfo, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			l.Crash, l.BugCheck = d.Exception(), d.BugCheck()
			l.ThreadCount, l.ModuleCount = len(d.Threads()), len(d.Modules())
			return nil
		}),
	}
}
