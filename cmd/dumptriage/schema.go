package main

import (
	"github.com/urfave/cli/v2"

	"dumptriage/report"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the JSON schema of --json output",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("schema takes no files")
			}
			_, err := c.App.Writer.Write(report.Schema())
			return err
		},
	}
}
