package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dumptriage/fleet"
	"dumptriage/fleet/store"
	"dumptriage/report"
)

var (
	dbFlag     = &cli.StringFlag{Name: "db", Usage: "the bucket database `FILE`"}
	stateFlag  = &cli.StringFlag{Name: "state", Usage: "list: only buckets in this `STATE`; set: new, known or fixed"}
	topFlag    = &cli.IntFlag{Name: "top", DefaultText: "all", Usage: "list at most `N` buckets"}
	fixedFlag  = &cli.StringFlag{Name: "fixed-in", Usage: "set: the `VERSION` that has it no more, of the process's image, or MODULE=VERSION"}
	labelsFlag = &cli.StringFlag{Name: "labels", Usage: "tune: lines of a dump's key or path, or a bucket's id, and the fault's name, from `FILE`"}
	writeFlag  = &cli.BoolFlag{Name: "write", DisableDefaultText: true, Usage: "tune: use the best parameters from now on, and make the clusters anew"}
	csvFlag    = &cli.BoolFlag{Name: "csv", DisableDefaultText: true, Usage: "list, diff: a table for spreadsheets"}
	noteFlag   = &cli.StringFlag{Name: "note", Usage: "set: a `TEXT` such as a ticket's number"}
)

func bucketsCommand() *cli.Command {
	return &cli.Command{
		Name:      "buckets",
		Usage:     "list, show and mark the buckets of a database that batch --db fills",
		ArgsUsage: "list|show ID|set ID|merge FROM INTO|diff OLDER.db|diff DATE|export|tune",
		UsageText: "dumptriage buckets list|show|set|merge|diff|export|tune --db FILE [flags]",
		Description: "list shows the buckets, show one of them with its versions and dumps, set marks one as known or\n" +
			"fixed, merge makes one bucket count as another, diff tells what is new against an older database\n" +
			"or since a date such as 2024-05-31 (UTC),\n" +
			"export prints all as JSON lines, and tune finds the parameters of clusters that agree best with\n" +
			"what people say of dumps. The beginning of an id will do.",
		Flags:  []cli.Flag{dbFlag, stateFlag, topFlag, fixedFlag, noteFlag, labelsFlag, writeFlag, csvFlag, jsonFlag, quietFlag},
		Action: runBuckets,
	}
}

// bucketActions are the words behind the verb and how many operands each takes.
var bucketActions = map[string]struct {
	operands int
	run      func(c *cli.Context, s *store.Store, args []string) error
}{
	"list": {0, listBuckets}, "show": {1, showBucket}, "set": {1, setBucket}, "merge": {2, mergeBuckets}, "diff": {1, diffBuckets}, "export": {0, exportBuckets}, "tune": {0, tuneBuckets},
}

func runBuckets(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usagef("buckets wants list, show, set, merge, diff, export or tune")
	}
	action, ok := bucketActions[args[0]]
	switch {
	case !ok:
		return usagef("buckets wants list, show, set, merge, diff, export or tune, not %q", args[0])
	case len(args)-1 != action.operands:
		return usagef("buckets %s takes %d operands", args[0], action.operands)
	case c.String(dbFlag.Name) == "":
		return usagef("buckets wants a database: --db FILE")
	}
	ctx := context.Background()
	s, err := store.OpenExisting(ctx, c.String(dbFlag.Name))
	if errors.Is(err, os.ErrNotExist) {
		return usagef("%s: no such database; batch --db makes one", c.String(dbFlag.Name))
	}
	if err != nil {
		return err
	}
	err = inDatabase(c, action.run(c, s, args[1:]))
	if cerr := s.Close(ctx); err == nil {
		err = inDatabase(c, cerr)
	}
	if errors.Is(err, store.ErrNoBucket) {
		return usagef("%v", err)
	}
	return err
}

// inDatabase says which database an error is about.
func inDatabase(c *cli.Context, err error) error {
	var usage usageError
	if err == nil || errors.As(err, &usage) || errors.Is(err, store.ErrNoBucket) {
		return err
	}
	return fmt.Errorf("%s: %w", c.String(dbFlag.Name), err)
}

// bucketList reads the buckets that the flags ask for.
func bucketList(c *cli.Context, s *store.Store) ([]report.BucketJSON, error) {
	state := store.State(c.String(stateFlag.Name))
	if state != "" && !slices.Contains(store.States, state) {
		return nil, usagef("--state wants new, known, fixed or regressed, not %q", state)
	}
	list, err := s.Buckets(c.Context, state)
	if err != nil {
		return nil, err
	}
	if n := c.Int(topFlag.Name); n > 0 && n < len(list) {
		list = list[:n]
	}
	var out []report.BucketJSON
	for i := range list {
		out = append(out, fleet.BucketJSON(&list[i]))
	}
	return out, nil
}

func listBuckets(c *cli.Context, s *store.Store, _ []string) error {
	list, err := bucketList(c, s)
	if err != nil {
		return err
	}
	return printBuckets(c, list)
}

func printBuckets(c *cli.Context, list []report.BucketJSON) error {
	if c.Bool(jsonFlag.Name) {
		return report.BucketsJSON(c.App.Writer, list, basicOptions(c))
	}
	if c.Bool(csvFlag.Name) {
		return report.BucketsCSV(c.App.Writer, list, basicOptions(c))
	}
	return report.BucketsText(c.App.Writer, list, basicOptions(c))
}

func exportBuckets(c *cli.Context, s *store.Store, _ []string) error {
	list, err := bucketList(c, s)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i], err = wholeBucket(c, s, list[i].ID); err != nil {
			return err
		}
	}
	return report.BucketLines(c.App.Writer, list, basicOptions(c))
}

// wholeBucket is a bucket with all that is known of it.
func wholeBucket(c *cli.Context, s *store.Store, id string) (report.BucketJSON, error) {
	b, err := s.Bucket(c.Context, id)
	if err != nil {
		return report.BucketJSON{}, err
	}
	j := fleet.BucketJSON(&b)
	j.Related, err = s.Related(c.Context, id)
	return j, err
}

func showBucket(c *cli.Context, s *store.Store, args []string) error {
	id, err := s.Resolve(c.Context, args[0])
	if err != nil {
		return err
	}
	return printBucket(c, s, id)
}

func printBucket(c *cli.Context, s *store.Store, id string) error {
	b, err := wholeBucket(c, s, id)
	if err != nil {
		return err
	}
	if c.Bool(jsonFlag.Name) {
		return report.BucketsJSON(c.App.Writer, []report.BucketJSON{b}, basicOptions(c))
	}
	return report.BucketText(c.App.Writer, &b, basicOptions(c))
}

func setBucket(c *cli.Context, s *store.Store, args []string) error {
	change, err := bucketChange(c)
	if err != nil {
		return err
	}
	id, err := s.Resolve(c.Context, args[0])
	if err != nil {
		return err
	}
	if err := s.Set(c.Context, id, change); err != nil {
		return err
	}
	return printBucket(c, s, id)
}

func bucketChange(c *cli.Context) (change store.Change, err error) {
	if c.IsSet(stateFlag.Name) {
		state := store.State(c.String(stateFlag.Name))
		if state != store.StateNew && state != store.StateKnown && state != store.StateFixed {
			return change, usagef("--state wants new, known or fixed, not %q", state)
		}
		change.State = &state
	}
	if c.IsSet(fixedFlag.Name) {
		module, version, ok := strings.Cut(c.String(fixedFlag.Name), "=")
		if !ok {
			module, version = "", module
		}
		if strings.Trim(version, "0123456789.") != "" || version == "" {
			return change, usagef("--fixed-in wants a version such as 1.2.3.4 or app.dll=1.2.3.4, not %q", c.String(fixedFlag.Name))
		}
		change.FixedModule, change.FixedVersion = &module, &version
		if change.State == nil {
			fixed := store.StateFixed
			change.State = &fixed
		}
	}
	if c.IsSet(noteFlag.Name) {
		note := c.String(noteFlag.Name)
		change.Note = &note
	}
	if change == (store.Change{}) {
		return change, usagef("set wants --state, --fixed-in or --note")
	}
	return change, nil
}

func mergeBuckets(c *cli.Context, s *store.Store, args []string) error {
	from, err := s.Resolve(c.Context, args[0])
	if err != nil {
		return err
	}
	into, err := s.Resolve(c.Context, args[1])
	if err != nil {
		return err
	}
	if err := s.Merge(c.Context, from, into); err != nil {
		return usagef("%v", err)
	}
	return printBucket(c, s, into)
}

func diffBuckets(c *cli.Context, s *store.Store, args []string) error {
	if since, err := time.Parse(time.DateOnly, args[0]); err == nil {
		d, err := fleet.DiffSince(c.Context, s, since)
		if err != nil {
			return err
		}
		return printBuckets(c, d.List())
	}
	older, err := store.OpenExisting(c.Context, args[0])
	if err != nil {
		return usagef("%v", err)
	}
	d, err := fleet.Diff(c.Context, older, s)
	if cerr := older.Close(c.Context); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("compared with %s: %w", args[0], err)
	}
	return printBuckets(c, d.List())
}

func tuneBuckets(c *cli.Context, s *store.Store, _ []string) error {
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
