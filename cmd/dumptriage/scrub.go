package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"dumptriage/report"
	"dumptriage/scrub"
	"dumptriage/triage"
)

var (
	keepNamesFlag = &cli.BoolFlag{Name: "keep-names", DisableDefaultText: true, Usage: "keep the names of threads"}
	forceFlag     = &cli.BoolFlag{Name: "force", DisableDefaultText: true, Usage: "overwrite OUT"}
	acceptFlag    = &cli.BoolFlag{Name: "accept-differences", DisableDefaultText: true, Usage: "write OUT though some frame does not come out of it as it was"}
)

// scrubComment tells who opens a scrubbed dump with another tool why so little is in it.
const scrubComment = "scrubbed by dumptriage: memory holds what stacks are unwound by, the rest is missing, 0 or 1"

func scrubCommand() *cli.Command {
	return &cli.Command{
		Name:      "scrub",
		Usage:     "write a small dump that unwinds the same and holds nothing else",
		ArgsUsage: "DUMP OUT",
		Description: "Walks every thread of a user dump, writes what that needed to OUT, walks that too and compares\n" +
			"every frame. Texts, command lines, handles, folders and whatever was not looked at are left\n" +
			"out; of stacks the return addresses and the pointers into the stack are kept.\n" +
			"A difference is an error, and nothing is written.",
		Flags:  []cli.Flag{keepNamesFlag, forceFlag, acceptFlag, jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, colorFlag, quietFlag},
		Action: runScrub,
	}
}

func runScrub(c *cli.Context) error {
	if c.NArg() != 2 || c.Args().Get(1) == "-" {
		return usagef("scrub wants a dump and the name of the file to write")
	}
	in, out := c.Args().Get(0), c.Args().Get(1)
	opt, err := reportOptions(c)
	if err != nil {
		return err
	}
	if err := mayWrite(in, out, c.Bool(forceFlag.Name)); err != nil {
		return err
	}
	var topt triage.Options
	if err := setSymbols(c, &topt); err != nil {
		return fail(c, err)
	}
	d, err := openDump(in)
	if err != nil {
		return fail(c, err)
	}
	defer d.Close()
	p := newProgress(c, "walking threads")
	topt.Progress = p.update
	res, err := scrub.Dump(d, scrub.Options{Triage: topt, KeepNames: c.Bool(keepNamesFlag.Name), Comment: scrubComment})
	p.done()
	if err != nil {
		return fail(c, err)
	}
	if n := len(res.Differences); n > 0 && !c.Bool(acceptFlag.Name) {
		return fail(c, fmt.Errorf("nothing written: %v; in all %d of %d threads differ (--accept-differences writes it all the same)", res.Differences[0], n, res.Threads))
	}
	if err := writeWhole(out, res.Bytes); err != nil {
		return fail(c, err)
	}
	return tellScrub(c, d, out, res, opt)
}

func tellScrub(c *cli.Context, d *triage.Dump, out string, res *scrub.Result, opt report.Options) error {
	s := &report.Scrub{Input: d.Describe(triage.DefaultHashLimit), System: d.System()}
	if p := d.Process(); p.HasPID {
		s.PID = &p.PID
	}
	s.ScrubJSON = report.ScrubJSON{Output: out, Size: int64(len(res.Bytes)), Threads: res.Threads, Frames: res.Frames, MemoryBytes: res.Memory}
	for _, l := range res.Loosened {
		s.Loosened = append(s.Loosened, report.LoosenedJSON{ThreadID: l.Thread, Kept: l.Level.String()})
	}
	for _, x := range res.Differences {
		s.Differences = append(s.Differences, x.String())
	}
	if c.Bool(jsonFlag.Name) {
		return report.ScrubOutputJSON(c.App.Writer, s, opt)
	}
	return report.ScrubText(c.App.Writer, s, opt)
}

// mayWrite refuses what would destroy something: the dump itself, a file that is
// there, what is no file.
func mayWrite(in, out string, force bool) error {
	st, err := os.Stat(out)
	switch {
	case out == "":
		return usagef("an empty file name was given")
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if dump, err := os.Stat(in); err == nil && os.SameFile(dump, st) {
		return usagef("%s and %s are the same file", in, out)
	}
	switch {
	case !st.Mode().IsRegular():
		return usagef("%s is no regular file", out)
	case !force:
		return usagef("%s is there already; --force overwrites it", out)
	}
	return nil
}

// writeWhole writes a file that is there whole or not at all, and reads it back.
func writeWhole(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".scrub-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	back, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	if !bytes.Equal(back, b) {
		return fmt.Errorf("%s does not read back as it was written", path)
	}
	return os.Rename(f.Name(), path)
}
