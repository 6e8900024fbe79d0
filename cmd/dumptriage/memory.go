package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
)

func memoryCommand() *cli.Command {
	return &cli.Command{
		Name:  "memory",
		Usage: "list the memory that a dump holds and what it knows of protections",
		Description: "First the regions that the process had, where the dump describes them; then the ranges of\n" +
			"memory that the dump holds. Sizes and offsets are hexadecimal, totals decimal.",
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
