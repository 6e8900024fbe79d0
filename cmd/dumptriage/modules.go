package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

func modulesCommand() *cli.Command {
	return &cli.Command{
		Name:  "modules",
		Usage: "list loaded and unloaded modules with their versions and debug ids",
		Description: "The debug id, with the PDB's name, is what symbol stores file a PDB under; the time stamp and\n" +
			"size are what they file an image under (code_id in the JSON). Of a kernel dump they are the kernel's;\n" +
			"of a full one --process lists those of a process.",
		ArgsUsage: "DUMP",
		Flags:     systemFlags(processFlag),
		Action:    listVerb(report.ListModules, listModules),
	}
}

func listModules(c *cli.Context, d *triage.Dump, l *report.List) error {
	p, err := oneProcess(c, d)
	if err != nil {
		return err
	}
	if p != nil { // a process's own
		l.Process = p
		src := d.ProcessView(p)
		l.Modules, l.Unloaded = wrapModules(src.Modules()), src.UnloadedModules()
		absentModules(d, l, p)
		return nil
	}
	l.Modules, l.Unloaded = wrapModules(d.Modules()), d.UnloadedModules()
	return nil
}
