package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"dumptriage/fleet"
	"dumptriage/fleet/store"
	"dumptriage/report"
)

// This file has what takes two buckets or two databases.

// idPattern is what stands for a bucket and not for a file.
var idPattern = regexp.MustCompile(`^[0-9a-f]{1,16}$`)

// mergeAnything merges one bucket into another, or other databases into one.
func mergeAnything(c *cli.Context, _ *store.Store, args []string) error {
	notID := func(s string) bool { return !idPattern.MatchString(s) }
	switch {
	case !slices.ContainsFunc(args, notID) && len(args) == 2:
		return withDatabase(c, store.OpenExisting, func(s *store.Store) error { return mergeBuckets(c, s, args[0], args[1]) })
	case !slices.ContainsFunc(args, func(s string) bool { return !notID(s) }):
		return joinDatabases(c, args)
	}
	return usagef("buckets merge wants the ids of two buckets, or databases (%s as a file is ./%s)", firstID(args), firstID(args))
}

func firstID(args []string) string { return args[slices.IndexFunc(args, idPattern.MatchString)] }

func mergeBuckets(c *cli.Context, s *store.Store, fromPrefix, intoPrefix string) error {
	from, err := s.Resolve(c.Context, fromPrefix)
	if err != nil {
		return err
	}
	into, err := s.Resolve(c.Context, intoPrefix)
	if err != nil {
		return err
	}
	if err := s.Merge(c.Context, from, into); store.CannotMerge(err) {
		return usagef("%v", err)
	} else if err != nil {
		return err
	}
	return printBucket(c, s, into)
}

// joinDatabases adds other databases to the one of --db. All are looked at before anything
// is written.
func joinDatabases(c *cli.Context, paths []string) error {
	whole := c.String(dbFlag.Name)
	if whole == "" {
		return usagef("buckets merge wants a database to add to: --db FILE")
	}
	is, _ := os.Stat(whole)
	for _, path := range paths {
		err := withDatabaseAt(c, path, store.OpenReading, func(*store.Store) error { return nil })
		if err != nil {
			return err
		}
		if part, err := os.Stat(path); err == nil && is != nil && os.SameFile(is, part) {
			return usagef("%s is the database to add to", path)
		}
	}
	var joined []report.JoinedJSON
	err := withDatabaseAt(c, whole, store.Open, func(s *store.Store) error {
		for _, path := range paths {
			j, err := joinDatabase(c, s, path)
			if err != nil {
				return err
			}
			joined = append(joined, fleet.JoinedJSON(path, j))
		}
		tellRegressions(c, s)
		return nil
	})
	switch {
	case err != nil:
		return err
	case c.Bool(jsonFlag.Name):
		return report.JoinedDocument(c.App.Writer, joined, basicOptions(c))
	}
	return report.JoinedText(c.App.Writer, joined, basicOptions(c))
}

func joinDatabase(c *cli.Context, s *store.Store, path string) (j store.Joined, err error) {
	err = withDatabaseAt(c, path, store.OpenReading, func(part *store.Store) error {
		j, err = s.Join(c.Context, part)
		if _, ok := errors.AsType[*store.OtherError](err); ok {
			return err // which is said to be of path
		}
		return inDatabase(c.String(dbFlag.Name), err)
	})
	return j, err
}

// tellRegressions names the buckets that are back.
func tellRegressions(c *cli.Context, s *store.Store) {
	for _, r := range s.Regressions() {
		warn(c, "bucket %s is back: fixed in %s, met in %s", r.Bucket, r.Fixed, r.Version)
	}
}

// diffBuckets tells what is new in one of two databases, or between two dates.
func diffBuckets(c *cli.Context, _ *store.Store, args []string) error {
	from, isDate := date(args[0])
	var to time.Time
	if len(args) == 2 {
		second, ok := date(args[1])
		if ok != isDate {
			return usagef("buckets diff wants two databases or two dates, not one of each")
		}
		if isDate && !from.Before(second) {
			return usagef("buckets diff wants the earlier date first")
		}
		to = second
	}
	var d fleet.Difference
	var err error
	compared := report.ComparedJSON{Newer: c.String(dbFlag.Name)}
	if isDate {
		compared.Since = args[0]
		if len(args) == 2 {
			compared.Until = args[1]
		}
		err = withDatabase(c, store.OpenReading, func(s *store.Store) error {
			d, err = fleet.DiffSince(c.Context, s, from, to)
			return err
		})
	} else {
		compared.Older = args[0]
		if len(args) == 2 {
			compared.Newer = args[1]
		}
		d, err = diffDatabases(c, args)
	}
	if err != nil {
		return err
	}
	compared.BucketsBefore, compared.Buckets = d.Before, d.After
	diff := report.BucketDiff{Compared: compared, Changed: d.List()}
	switch {
	case c.Bool(jsonFlag.Name):
		return report.BucketDiffJSON(c.App.Writer, diff, basicOptions(c))
	case c.Bool(csvFlag.Name):
		return report.BucketsCSV(c.App.Writer, diff.Changed, basicOptions(c))
	}
	return report.BucketDiffText(c.App.Writer, diff, basicOptions(c))
}

// date is a day as people write it.
func date(s string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return t, err == nil
}

func diffDatabases(c *cli.Context, args []string) (d fleet.Difference, err error) {
	newer := c.String(dbFlag.Name)
	if len(args) == 2 {
		if newer != "" {
			return d, usagef("buckets diff takes two databases: %s, %s, and no --db", args[0], args[1])
		}
		newer = args[1]
	}
	if newer == "" {
		return d, usagef("buckets diff wants a newer database: a second operand, or --db FILE")
	}
	err = withDatabaseAt(c, newer, store.OpenReading, func(is *store.Store) error {
		return withDatabaseAt(c, args[0], store.OpenReading, func(was *store.Store) error {
			d, err = fleet.Diff(c.Context, was, is)
			return err
		})
	})
	if err != nil {
		return d, fmt.Errorf("comparing: %w", err)
	}
	return d, nil
}
