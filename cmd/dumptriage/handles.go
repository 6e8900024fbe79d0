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
		Name:  "handles",
		Usage: "list the open handles with their types and names",
		Description: "A user dump holds handles when it was written with handle data (procdump -ma does). Of a full\n" +
			"kernel dump the handle table of one process is read: of that which --process names, else of the\n" +
			"one whose thread stopped the system.",
		ArgsUsage: "DUMP",
		Flags:     systemFlags(processFlag),
		Action: listVerb(report.ListHandles, func(c *cli.Context, d *triage.Dump, l *report.List) error {
			p, err := oneProcess(c, d)
			if err != nil {
				return err
			}
			if f, ok := d.Source.(*minidump.File); ok {
				if f.Has(minidump.StreamHandleData) {
					l.Handles = append([]dump.Handle{}, d.Handles()...)
				}
				return nil
			}
			if p == nil {
				p = d.Process()
			}
			l.Process = p
			l.Handles = d.ProcessView(p).Handles()
			absentHandles(d, l, p)
			return nil
		}),
	}
}
