package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:        "schema",
		Usage:       "print the JSON schema of --json output",
		Description: "JSON Schema 2020-12 of the one object that every verb prints with --json.",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("schema takes no files")
			}
			_, err := c.App.Writer.Write(report.Schema())
			return err
		},
	}
}
