package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/triage"
)

func driversCommand() *cli.Command {
	return &cli.Command{
		Name:        "drivers",
		Usage:       "list the drivers of a kernel dump, loaded and unloaded",
		Description: "The modules of the kernel, as the verb modules lists them; a user dump has none.",
		ArgsUsage:   "KERNELDUMP",
		Flags:       systemFlags(),
		Action: listVerb(report.ListDrivers, func(c *cli.Context, d *triage.Dump, l *report.List) error {
			if !d.Kernel() {
				return usagef("%s is a user dump and has no drivers; see: dumptriage modules", d.Path)
			}
			return listModules(c, d, l)
		}),
	}
}
