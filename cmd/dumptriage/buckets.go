package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/fleet"
	"dumptriage/fleet/store"
	"dumptriage/report"
	"dumptriage/triage"
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
		ArgsUsage: "list|show ID|set ID|merge FROM INTO|merge OTHER.db ...|diff OLDER.db [NEWER.db]|diff DATE [DATE]|export|tune",
		UsageText: "dumptriage buckets list|show|set|merge|diff|export|tune --db FILE [flags]",
		Description: "buckets list                      what there is, the buckets with most dumps first\n" +
			"buckets show ID                   one of them, with its versions and dumps\n" +
			"buckets set ID --state STATE      mark one as new, known or fixed; --fixed-in and --note too\n" +
			"buckets merge FROM INTO           count one bucket's dumps as another's\n" +
			"buckets merge OTHER.db ...        add other databases, such as those of several machines\n" +
			"buckets diff OLDER.db [NEWER.db]  what is new against an older database\n" +
			"buckets diff DATE [DATE]          what is new since a date such as 2024-05-31 (UTC), or between two\n" +
			"buckets export                    all of it, a JSON line a bucket\n" +
			"buckets tune --labels FILE        the parameters of clusters that agree best with what people say\n" +
			"All of them want --db FILE. The beginning of an id will do.",
		Flags:  []cli.Flag{dbFlag, stateFlag, topFlag, fixedFlag, noteFlag, labelsFlag, writeFlag, csvFlag, jsonFlag, quietFlag},
		Action: runBuckets,
	}
}

// bucketAction is a word behind the verb.
type bucketAction struct {
	least, most int        // operands
	flags       []string   // of those that not every action has
	open        openerOfDB // nil: it opens databases itself
	run         func(c *cli.Context, s *store.Store, args []string) error
}

type openerOfDB func(context.Context, string) (*store.Store, error)

var bucketActions = map[string]bucketAction{
	"list":   {0, 0, []string{"state", "top", "csv", "json"}, store.OpenReading, listBuckets},
	"show":   {1, 1, []string{"json"}, store.OpenReading, showBucket},
	"set":    {1, 1, []string{"state", "fixed-in", "note", "json"}, store.OpenExisting, setBucket},
	"merge":  {1, math.MaxInt, []string{"json"}, nil, mergeAnything},
	"diff":   {1, 2, []string{"csv", "json"}, nil, diffBuckets},
	"export": {0, 0, []string{"state", "top", "csv", "json"}, store.OpenReading, exportBuckets},
	"tune":   {0, 0, []string{"labels", "write", "json"}, nil, tuneBuckets},
}

// everyAction is what each of them takes.
var everyAction = []string{"db", "quiet", "redact"}

func runBuckets(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usagef("buckets wants list, show, set, merge, diff, export or tune")
	}
	action, ok := bucketActions[args[0]]
	switch {
	case !ok:
		return usagef("buckets wants list, show, set, merge, diff, export or tune, not %q", args[0])
	case len(args)-1 < action.least || len(args)-1 > action.most:
		return usagef("buckets %s does not take %s", args[0], operandsWord(len(args)-1))
	}
	if err := checkBucketFlags(c, args[0], action.flags); err != nil {
		return err
	}
	var err error
	if action.open == nil {
		err = action.run(c, nil, args[1:])
	} else {
		err = withDatabase(c, action.open, func(s *store.Store) error { return action.run(c, s, args[1:]) })
	}
	if errors.Is(err, store.ErrNoBucket) {
		return usagef("%v", err)
	}
	return failBuckets(c, err)
}

func operandsWord(n int) string {
	if n == 1 {
		return "an operand"
	}
	return fmt.Sprintf("%d operands", n)
}

// checkBucketFlags refuses flags that an action would not heed.
func checkBucketFlags(c *cli.Context, action string, takes []string) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if c.IsSet(name) && !slices.Contains(takes, name) && !slices.Contains(everyAction, name) {
			return usagef("buckets %s has no flag --%s", action, name)
		}
	}
	if c.Bool(csvFlag.Name) && c.Bool(jsonFlag.Name) {
		return usagef("--csv and --json are two forms: take one")
	}
	if c.IsSet(topFlag.Name) && c.Int(topFlag.Name) < 1 {
		return usagef("--top wants a number from 1 on")
	}
	return nil
}

// failBuckets prints a failure as JSON too, where that is wanted.
func failBuckets(c *cli.Context, err error) error {
	var usage usageError
	if err == nil || errors.As(err, &usage) || !c.Bool(jsonFlag.Name) {
		return err
	}
	e := dump.AsError(err)
	if out, ok := c.App.Writer.(*output); ok && out.begun { // half of the answer is out
		return err
	}
	if errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrEmpty) || store.IsNoDatabase(err) {
		e.Code = dump.UnsupportedFormat
	} else if errors.Is(err, store.ErrDamaged) || store.IsDamage(err) {
		e.Code = dump.BadRecord
	}
	if werr := report.FailureJSON(c.App.Writer, basicOptions(c), []triage.Input{{Path: c.String(dbFlag.Name), Size: -1}}, []*dump.Error{e}); werr != nil {
		return werr
	}
	return err
}

// withDatabase does something with the database that --db names.
func withDatabase(c *cli.Context, open openerOfDB, do func(*store.Store) error) error {
	path := c.String(dbFlag.Name)
	if path == "" {
		return usagef("buckets wants a database: --db FILE")
	}
	return withDatabaseAt(c, path, open, do)
}

// withDatabaseAt does something with a database; errors name it.
func withDatabaseAt(c *cli.Context, path string, open openerOfDB, do func(*store.Store) error) error {
	s, err := open(c.Context, path)
	if errors.Is(err, os.ErrNotExist) {
		return usagef("%s: no such database; batch --db makes one", path)
	}
	if err != nil {
		return &databaseError{"", err}
	}
	err = inDatabase(path, do(s))
	if cerr := s.Close(context.Background()); err == nil {
		err = inDatabase(path, cerr)
	}
	return err
}

// databaseError is one that says which database it is about.
type databaseError struct {
	path string // "" when err says it
	err  error
}

func (e *databaseError) Error() string {
	if e.path == "" {
		return e.err.Error()
	}
	return e.path + ": " + e.err.Error()
}

func (e *databaseError) Unwrap() error { return e.err }

// inDatabase says which database an error is about.
func inDatabase(path string, err error) error {
	var usage usageError
	var said *databaseError
	var output outputError
	if err == nil || errors.As(err, &usage) || errors.As(err, &said) || errors.As(err, &output) || errors.Is(err, store.ErrNoBucket) {
		return err
	}
	return &databaseError{path, err}
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
	if c.Bool(csvFlag.Name) {
		return report.BucketsCSV(c.App.Writer, list, basicOptions(c))
	}
	for i := range list {
		id := list[i].ID
		if list[i], err = wholeBucket(c, s, id); errors.Is(err, store.ErrNoBucket) { // nobody asked for it by name
			return fmt.Errorf("%w: bucket %s is listed and not found", store.ErrDamaged, id)
		} else if err != nil {
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
		return report.BucketDocument(c.App.Writer, &b, basicOptions(c))
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
	if change.FixedVersion != nil && *change.State == store.StateFixed {
		n, err := s.From(c.Context, id, *change.FixedModule, *change.FixedVersion)
		if err != nil {
			return err
		}
		if n > 0 {
			warn(c, "%d of its dumps are of %s or a later version already; only dumps to come make it regressed", n, c.String(fixedFlag.Name))
		}
	}
	return printBucket(c, s, id)
}

// maxNote is how long a note may be; the database is no place for documents.
const maxNote = 4000

// versionPattern is what versions are compared by.
var versionPattern = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9}){0,7}$`)

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
		if !versionPattern.MatchString(version) || ok && module == "" {
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
		if len(note) > maxNote {
			return change, usagef("--note wants at most %d bytes, not %d", maxNote, len(note))
		}
		change.Note = &note
	}
	if change == (store.Change{}) {
		return change, usagef("set wants --state, --fixed-in or --note")
	}
	return change, nil
}
