package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/kdump"
	"dumptriage/report"
	"dumptriage/triage"
)

// countKnown is a count of threads or modules. Nothing runs without either, so
// that a dump which lists none does not say how many there are.
func countKnown(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// wholeSystem says how a full kernel dump is read, nil for any other.
func wholeSystem(d *triage.Dump) *report.WholeSystem {
	k, ok := d.Source.(*kdump.File)
	if !ok || !k.Full() {
		return nil
	}
	m := k.PhysicalMemory()
	w := &report.WholeSystem{Pages: m.Pages(), Layout: m.Layout(), DebuggerData: k.KDBGFound(), Offsets: k.Layout(), Processes: len(k.Processes())}
	w.PageTables, w.PageTablesFrom = k.PageTables()
	return w
}

func infoCommand() *cli.Command {
	return &cli.Command{
		Name:        "info",
		Usage:       "show what a dump is: kind, system, process, exception or bugcheck",
		Description: "Reads the header and directory of a dump, but not its memory.",
		ArgsUsage:   "DUMP",
		Flags:       systemFlags(hashFlag),
		Action: listVerb(report.ListInfo, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			l.Whole = wholeSystem(d)
			l.Crash, l.BugCheck = d.Exception(), d.BugCheck()
			if k, ok := d.Source.(*kdump.File); ok {
				for _, b := range k.Blobs() {
					l.Blobs = append(l.Blobs, report.Blob(b))
				}
			}
			l.ThreadCount, l.ModuleCount = countKnown(len(d.Threads())), countKnown(len(d.Modules()))
			return nil
		}),
	}
}
