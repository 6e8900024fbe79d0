package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/fleet"
	"dumptriage/fleet/store"
	"dumptriage/report"
	"dumptriage/report/redact"
	"dumptriage/triage"
)

var (
	jobsFlag      = &cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, DefaultText: "one a processor", Usage: "triage `N` dumps at a time"}
	outFlag       = &cli.StringFlag{Name: "out", Usage: "write the JSON lines to `FILE` and the table to standard output"}
	resumeFlag    = &cli.BoolFlag{Name: "resume", DisableDefaultText: true, Usage: "go on where an earlier run with the same --out was ended"}
	shardFlag     = &cli.StringFlag{Name: "shard", Usage: "do the share `I/N` of the dumps: 2/8 is the second of eight"}
	timeoutFlag   = &cli.DurationFlag{Name: "timeout", DefaultText: "none", Usage: "give up on a dump after `DURATION`, such as 30s"}
	maxMemoryFlag = &cli.StringFlag{Name: "max-memory", Usage: "give up on a dump for which the program itself takes more memory than `SIZE`, such as 512M; pages of mapped files, which the system can take back, are not counted"}
	workerFlag    = &cli.BoolFlag{Name: "as-worker", Hidden: true}
)

func batchCommand() *cli.Command {
	return &cli.Command{
		Name:      "batch",
		Usage:     "triage many dumps: a JSON line for each, and a table of buckets",
		ArgsUsage: "DIR|PATTERN|LIST|DUMP|- ...",
		Description: "Takes folders (the dumps in and below them), patterns, dump files, text files that list\n" +
			"paths, and - for such a list on standard input. X.dmp and X.Kernel.dmp beside it are one\n" +
			"incident. The lines come in the order of the input on standard output, the table on standard\n" +
			"error. A dump that breaks something is a line with the status ERROR; the others go on.\n" +
			"With --timeout or --max-memory dumps are triaged in processes of their own.",
		Flags: []cli.Flag{jobsFlag, outFlag, dbFlag, resumeFlag, shardFlag, timeoutFlag, maxMemoryFlag, rulesFlag,
			imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, framesFlag, aloneFlag, hashFlag, quietFlag, workerFlag},
		Action: runBatch,
	}
}

func runBatch(c *cli.Context) error {
	limits, err := batchLimits(c)
	if err != nil {
		return err
	}
	newAnalyzer, err := analyzers(c)
	if err != nil {
		return err
	}
	if c.Bool(workerFlag.Name) {
		w := newAnalyzer()
		defer w.Close()
		return fleet.Serve(w, limits, os.Stdin, c.App.Writer)
	}
	if c.IsSet(jobsFlag.Name) && c.Int(jobsFlag.Name) < 1 {
		return usagef("--jobs wants a number from 1 on")
	}
	jobs, err := batchJobs(c)
	if err != nil {
		return err
	}
	if err := checkOut(c); err != nil { // before a database is made
		return err
	}
	b := &batchRun{c: c, total: len(jobs), progress: newProgress(c, "triaging dumps")}
	if path := c.String(dbFlag.Name); path != "" {
		if b.db, err = store.Open(c.Context, path); err != nil {
			return err
		}
	}
	done, err := b.open()
	if err != nil {
		return b.close(err)
	}
	n := c.Int(jobsFlag.Name)
	if n <= 0 { // not set
		n = runtime.GOMAXPROCS(0)
	}
	limitMemory(int64(n) * batchMemory)
	err = fleet.Run(context.Background(), fleet.Config{
		Queue: fleet.NewMemory(jobs), Workers: n, Emit: b.emit, Skip: done.Has,
		New: func() (fleet.Worker, error) {
			if limits == (fleet.Limits{}) {
				return newAnalyzer(), nil
			}
			opt := basicOptions(c)
			opt.BatchOptions = recordFlags(c)
			return &fleet.Process{Options: opt, Limits: limits, Command: workerCommand}, nil
		},
	})
	b.progress.done()
	if err := b.close(err); err != nil {
		return err
	}
	return b.table()
}

// recordFlags tells runs with equal records from others: "" when no flag was given that
// changes a record, else a hash. Of redacted records it does not depend on paths, which
// might be guessed by it.
func recordFlags(c *cli.Context) string {
	var all []string
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(runFlags, name) {
			continue
		}
		value := fmt.Sprint(c.Value(name))
		if list, ok := c.Value(name).(cli.StringSlice); ok {
			value = strings.Join(list.Value(), "\x00")
		}
		if c.Bool(redactFlag.Name) && slices.Contains(pathFlags, name) {
			value = ""
		}
		all = append(all, name+"="+value)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// runFlags are the flags of batch that change no record, only whether and where there is one.
var runFlags = []string{jobsFlag.Name, outFlag.Name, dbFlag.Name, resumeFlag.Name, shardFlag.Name, timeoutFlag.Name, maxMemoryFlag.Name, quietFlag.Name, workerFlag.Name}

var pathFlags = []string{imagesFlag.Name, symbolsFlag.Name, rulesFlag.Name}

// batchMemory is what the collector takes for fair for each worker: it steers
// how often garbage is looked for, and forbids nothing.
const batchMemory = 128 << 20

// batchRun is what becomes of the records.
type batchRun struct {
	c        *cli.Context
	out      *batchFile
	db       *store.Store // nil: none is wanted
	total    int
	earlier  int         // records of an earlier run
	tally    fleet.Tally // of both
	progress *progress
}

func (b *batchRun) emit(r fleet.Record) error {
	f, err := fleet.FactsOf(r.Line)
	if err != nil {
		return err
	}
	if _, err := b.out.Write(r.Line); err != nil {
		return err
	}
	b.tally.Add(&f)
	b.progress.failed = b.tally.Status[report.StatusError]
	b.progress.update(b.tally.Records-b.earlier, b.total-min(b.earlier, b.total))
	return b.keep(&f)
}

// keep adds a record to the database. Lines are written first: what a run that was
// ended had not yet added, the next one adds from them.
func (b *batchRun) keep(f *fleet.Facts) error {
	if b.db == nil {
		return nil
	}
	return inDatabase(b.c.String(dbFlag.Name), b.db.Add(b.c.Context, f.Incident()))
}

// open opens the output, and takes what an earlier run has written for this run's.
func (b *batchRun) open() (done *fleet.Done, err error) {
	others := 0
	flags := recordFlags(b.c)
	b.out, done, err = batchOutput(b.c, func(line []byte) error {
		f, err := fleet.FactsOf(line)
		if err != nil {
			return err
		}
		if f.Key != "" && f.Batch.Redacted != b.c.Bool(redactFlag.Name) { // none would be known again
			return usagef("the records in %s are %s: go on with it as it was begun", b.c.String(outFlag.Name), map[bool]string{true: "redacted", false: "not redacted"}[f.Batch.Redacted])
		}
		if f.Batch.Options != flags || f.Tool != tool() {
			others++
		}
		b.tally.Add(&f)
		b.earlier++
		return b.keep(&f)
	})
	if err == nil && others > 0 {
		warn(b.c, "%d of them were made with other flags or by another version, and stay as they are", others)
	}
	return done, err
}

func (b *batchRun) close(err error) error {
	if b.out != nil {
		err = errors.Join(err, b.out.Close())
	}
	if b.db != nil {
		err = errors.Join(err, inDatabase(b.c.String(dbFlag.Name), b.db.Close(b.c.Context)))
	}
	return err
}

// table ends the run: the table goes where the lines do not.
func (b *batchRun) table() error {
	w := b.c.App.ErrWriter
	if b.out.file != nil {
		w = b.c.App.Writer
	}
	if w != b.c.App.ErrWriter || !b.c.Bool(quietFlag.Name) {
		if err := report.BatchTable(w, b.rows(), b.tally.Records, b.tally.Status, b.tally.Failed); err != nil {
			return err
		}
	}
	if b.db != nil {
		tellRegressions(b.c, b.db)
	}
	if b.tally.Records > b.tally.Status[report.StatusOK] {
		return statusError(exitPartial)
	}
	return nil
}

// rows are the buckets, with what the database says of them.
func (b *batchRun) rows() []report.BucketRow {
	rows := b.tally.Rows()
	if b.db == nil {
		return rows
	}
	back := map[string]bool{}
	for _, r := range b.db.Regressions() {
		back[r.Bucket] = true
	}
	for i := range rows {
		switch r := &rows[i]; {
		case back[r.ID]:
			r.Note = "back"
		case b.db.Made(r.ID):
			r.Note = "new"
		}
	}
	return rows
}

// analyzers returns what makes in-process workers of the command line's options.
func analyzers(c *cli.Context) (func() *fleet.Analyzer, error) {
	var topt triage.Options
	if err := setSymbols(c, &topt); err != nil {
		return nil, err
	}
	frames, err := frameLimit(c)
	if err != nil {
		return nil, err
	}
	topt.Frames = walkLimit(frames)
	rules, err := ruleFiles(c)
	if err != nil {
		return nil, err
	}
	if c.Bool(hashFlag.Name) {
		topt.HashLimit = hashAll
	}
	return func() *fleet.Analyzer {
		a := &fleet.Analyzer{Tool: tool(), Flags: recordFlags(c), Triage: topt, Rules: rules, Frames: frames, Alone: c.Bool(aloneFlag.Name)}
		if c.Bool(redactFlag.Name) {
			a.Redact = func() *redact.Redactor { return newRedactor(c) }
		}
		return a
	}, nil
}

func batchJobs(c *cli.Context) ([]fleet.Job, error) {
	if c.NArg() == 0 {
		return nil, usagef("batch wants folders, patterns, dumps or lists of them")
	}
	shard, err := shardOf(c.String(shardFlag.Name))
	if err != nil {
		return nil, err
	}
	jobs, err := fleet.Inputs(c.Args().Slice(), c.Bool(aloneFlag.Name), os.Stdin, func(err error) { warn(c, "%v", err) })
	if err != nil {
		return nil, usagef("%v", err)
	}
	var mine []fleet.Job
	for _, j := range jobs {
		if shard.Take(j.Index) {
			mine = append(mine, j)
		}
	}
	if len(jobs) == 0 {
		warn(c, "no dumps in %s", strings.Join(c.Args().Slice(), " "))
	}
	return mine, nil
}

func shardOf(s string) (fleet.Shard, error) {
	if s == "" {
		return fleet.Shard{}, nil
	}
	i, n, ok := strings.Cut(s, "/")
	number, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || number < 1 || number > of {
		return fleet.Shard{}, usagef("--shard wants I/N such as 2/8, with I from 1 to N, not %q", s)
	}
	return fleet.Shard{Number: number, Of: of}, nil
}

func batchLimits(c *cli.Context) (l fleet.Limits, err error) {
	if l.Time = c.Duration(timeoutFlag.Name); l.Time < 0 || l.Time == 0 && c.IsSet(timeoutFlag.Name) {
		return l, usagef("--timeout wants a duration such as 30s")
	}
	if s := c.String(maxMemoryFlag.Name); s != "" {
		if l.Memory, err = parseSize(s); err != nil {
			return l, usagef("--max-memory: %v", err)
		}
	}
	return l, nil
}

var sizePattern = regexp.MustCompile(`^([1-9][0-9]{0,9})([kKmMgG]?)(?:i?[bB])?$`)

// parseSize reads a size such as 512M, in units of 1024.
func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size such as 512M", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[string]int{"": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(m[2])]
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is more memory than there is", s)
	}
	return n << shift, nil
}

// workerCommand runs this program again with the same flags as a worker. It keeps
// the name that it was called by.
func workerCommand() *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	cmd := exec.Command(exe, append([]string{"--" + workerFlag.Name}, os.Args[1:]...)...)
	cmd.Args[0] = os.Args[0]
	return cmd
}

// batchFile is where the lines go: a file, or standard output.
type batchFile struct {
	w    *bufio.Writer
	file *os.File // nil: standard output
}

// checkOut refuses what --out and --resume cannot mean.
func checkOut(c *cli.Context) error {
	path, resume := c.String(outFlag.Name), c.Bool(resumeFlag.Name)
	if path == "" && resume {
		return usagef("--resume goes on with a file: name it with --out")
	}
	if _, err := os.Lstat(path); path != "" && !resume && err == nil {
		return thereAlready(path)
	}
	return nil
}

func thereAlready(path string) error {
	return usagef("%s is there already: go on with it by --resume, or name another file", path)
}

// batchOutput opens it. Without --resume a file must not be there; with it visit is
// told the lines that are.
func batchOutput(c *cli.Context, visit func(line []byte) error) (*batchFile, *fleet.Done, error) {
	path, resume := c.String(outFlag.Name), c.Bool(resumeFlag.Name)
	switch {
	case path == "":
		return &batchFile{w: bufio.NewWriterSize(c.App.Writer, 1<<16)}, nil, nil
	case resume:
		f, done, err := fleet.Resume(path, visit)
		if err != nil {
			return nil, nil, err
		}
		if c.Bool(redactFlag.Name) {
			done.Shown = redact.BaseName
		}
		if done.Len() > 0 {
			warn(c, "%d records are in %s already", done.Len(), path)
		}
		return &batchFile{w: bufio.NewWriterSize(f, 1<<16), file: f}, done, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if os.IsExist(err) {
		return nil, nil, thereAlready(path)
	}
	if err == nil {
		err = fleet.Lock(f)
	}
	if err != nil {
		return nil, nil, err
	}
	return &batchFile{w: bufio.NewWriterSize(f, 1<<16), file: f}, nil, nil
}

// Write writes a line and lets it out: who reads along must not wait for others.
func (f *batchFile) Write(line []byte) (int, error) {
	n, err := f.w.Write(line)
	if err == nil {
		err = f.w.Flush()
	}
	return n, err
}

// Close closes the file. Nothing waits to be written: Write has told what went wrong.
func (f *batchFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

var _ io.WriteCloser = (*batchFile)(nil)
