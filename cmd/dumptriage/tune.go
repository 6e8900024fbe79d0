package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"dumptriage/fleet"
	"dumptriage/fleet/store"
	"dumptriage/report"
)

// tuneBuckets finds better parameters of clusters; only --write changes the database.
func tuneBuckets(c *cli.Context, _ *store.Store, _ []string) error {
	open := store.OpenReading
	if c.Bool(writeFlag.Name) {
		open = store.OpenExisting
	}
	return withDatabase(c, open, func(s *store.Store) error { return tuneDatabase(c, s) })
}

func tuneDatabase(c *cli.Context, s *store.Store) error {
	name := c.String(labelsFlag.Name)
	if name == "" {
		return usagef("buckets tune wants --labels FILE")
	}
	f, err := os.Open(name)
	if err != nil {
		return usagef("--labels: %v", err)
	}
	defer f.Close()
	labels, err := fleet.ReadLabels(f, name)
	if err != nil {
		return usagef("--labels: %v", err)
	}
	p := newProgress(c, "trying parameters")
	tuned, stacks, err := fleet.Tune(c.Context, s, labels, p.update)
	p.done()
	if err != nil {
		return err
	}
	if stacks == 0 {
		return usagef("--labels: no dump of the database is in %s", name)
	}
	var rows []report.TuneRow
	for _, t := range tuned {
		rows = append(rows, fleet.TuneRow(t, tuned[0].Params))
	}
	if c.Bool(jsonFlag.Name) {
		err = report.TuneJSON(c.App.Writer, rows, stacks, basicOptions(c))
	} else {
		err = report.TuneText(c.App.Writer, rows, stacks)
	}
	if err != nil {
		return err
	}
	if c.Bool(writeFlag.Name) && len(tuned) > 1 {
		return s.Recluster(c.Context, tuned[1].Params)
	}
	return nil
}
