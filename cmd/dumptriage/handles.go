package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/minidump"
	"dumptriage/report"
	"dumptriage/triage"
)

func handlesCommand() *cli.Command {
	return &cli.Command{
		Name:        "handles",
		Usage:       "list the open handles with their types and names",
		Description: "A dump holds handles when it was written with handle data (procdump -ma does).",
		ArgsUsage:   "DUMP",
		Flags:       listFlags(),
		Action: listVerb(report.ListHandles, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			if f, ok := d.Source.(*minidump.File); ok && f.Has(minidump.StreamHandleData) {
				l.Handles = append([]dump.Handle{}, d.Handles()...)
			}
			return nil
		}),
	}
}
