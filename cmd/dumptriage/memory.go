package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
)

func memoryCommand() *cli.Command {
	return &cli.Command{
		Name:      "memory",
		Usage:     "list the memory that a dump holds and what it knows of protections",
		ArgsUsage: "DUMP",
		Flags:     listFlags(),
		Action: listVerb(report.ListMemory, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			l.Regions = d.Regions()
			if m, ok := d.Memory().(interface{ Ranges() []dump.Range }); ok {
				l.Ranges = m.Ranges()
			}
			return nil
		}),
	}
}
