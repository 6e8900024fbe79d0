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
			"size are what they file an image under (code_id in the JSON).",
		ArgsUsage: "DUMP",
		Flags:     listFlags(),
		Action:    listVerb(report.ListModules, listModules),
	}
}

func listModules(_ *cli.Context, d *triage.Dump, l *report.List) error {
	l.Modules, l.Unloaded = wrapModules(d.Modules()), d.UnloadedModules()
	return nil
}
