package main

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/triage"
)

var (
	jsonFlag   = &cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print one JSON object (see: dumptriage schema)"}
	colorFlag  = &cli.StringFlag{Name: "color", Value: "auto", Usage: "colour the text `WHEN`: auto, always or never"}
	quietFlag  = &cli.BoolFlag{Name: "quiet", DisableDefaultText: true, Aliases: []string{"q"}, Usage: "no progress and no warnings on standard error"}
	imagesFlag = &cli.StringSliceFlag{Name: "images", Aliases: []string{"i"},
		Usage: "look for .exe, .dll and .sys files in `DIR` and below it; may be repeated"}
	symbolsFlag = &cli.StringSliceFlag{Name: "symbols", Aliases: []string{"s"},
		Usage: "look for .pdb and .sym files, and for images, in `PATH`: a folder, or a symbol path such as srv*cache*https://server; may be repeated"}
	threadFlag = &cli.StringFlag{Name: "thread", Aliases: []string{"t"}, Usage: "only the thread with this `ID`: 22816, 0x5920 or 3adc.5920"}
	framesFlag = &cli.IntFlag{Name: "frames", Aliases: []string{"n"}, DefaultText: "all",
		Usage: "show at most `N` frames of each half of a stack"}
	uniqueFlag = &cli.BoolFlag{Name: "unique", DisableDefaultText: true, Aliases: []string{"u"}, Usage: "show equal stacks once, with the threads that have them"}
	aloneFlag  = &cli.BoolFlag{Name: "alone", DisableDefaultText: true, Usage: "do not look for the other half of a pair, beside a dump or in its archive"}
	hashFlag   = &cli.BoolFlag{Name: "hash", DisableDefaultText: true, Usage: "hash the inputs whatever their size (by default up to 64 MiB)"}
)

// hashAll is a size limit that no file reaches.
const hashAll = 1 << 62

// threadID reads --thread: an id, or pid.tid as the text output writes it.
func threadID(c *cli.Context) (*uint32, error) {
	if !c.IsSet(threadFlag.Name) {
		return nil, nil
	}
	s := c.String(threadFlag.Name)
	base := 0
	digits := s
	if pid, tid, ok := strings.Cut(s, "."); ok {
		if _, err := strconv.ParseUint(pid, 16, 32); err == nil {
			digits, base = tid, 16
		}
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return nil, usagef("--thread wants a thread id such as 22816, 0x5920 or 3adc.5920, not %q", s)
	}
	id := uint32(v)
	return &id, nil
}

// hintThread helps whoever copied a hexadecimal id without its 0x.
func hintThread(c *cli.Context, dumps ...*triage.Dump) {
	s := c.String(threadFlag.Name)
	asHex, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		return
	}
	for _, d := range dumps {
		if d != nil && slices.ContainsFunc(d.Threads(), func(t dump.Thread) bool { return uint64(t.ID) == asHex }) {
			warn(c, "a thread has the hexadecimal id %s: --thread 0x%s", s, s)
			return
		}
	}
}

func frameLimit(c *cli.Context) (int, error) {
	n := c.Int(framesFlag.Name)
	if n < 0 || c.IsSet(framesFlag.Name) && n == 0 {
		return 0, usagef("--frames wants a number from 1 on")
	}
	return n, nil
}

// walkLimit is how many frames are walked where so many are to be shown: stacks are
// judged as wholes, and what a dump is called does not hang on what is shown of it.
func walkLimit(shown int) int {
	if shown <= triage.DefaultFrames {
		return 0
	}
	return shown
}

// reportOptions decides on colour: never in JSON, and by default only on a
// terminal whose user did not ask for none.
func reportOptions(c *cli.Context) (report.Options, error) {
	opt := basicOptions(c)
	switch when := c.String(colorFlag.Name); when {
	case "always":
		opt.Color = true
	case "never":
	case "auto", "":
		opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(c.App.Writer)
	default:
		return opt, usagef("--color wants auto, always or never, not %q", when)
	}
	return opt, nil
}

// isTerminal reports whether a writer is a character device.
func isTerminal(w any) bool {
	switch o := w.(type) {
	case *output:
		w = o.Writer
	case redactedWriter:
		w = o.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// note prints what is good to know unless --quiet.
func note(c *cli.Context, format string, args ...any) {
	if !c.Bool(quietFlag.Name) {
		tell(c.App.ErrWriter, "dumptriage: "+format, args...)
	}
}

// warn prints a warning unless --quiet.
func warn(c *cli.Context, format string, args ...any) {
	if !c.Bool(quietFlag.Name) {
		tell(c.App.ErrWriter, "dumptriage: warning: "+format, args...)
	}
}
