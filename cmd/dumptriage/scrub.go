package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/internal/temporary"
	"dumptriage/report"
	"dumptriage/scrub"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

var (
	keepNamesFlag = &cli.BoolFlag{Name: "keep-names", DisableDefaultText: true, Usage: "keep the names of threads, and of processes of a kernel dump"}
	forceFlag     = &cli.BoolFlag{Name: "force", DisableDefaultText: true, Usage: "overwrite OUT"}
	acceptFlag    = &cli.BoolFlag{Name: "accept-differences", DisableDefaultText: true, Usage: "write OUT though some frame does not come out of it as it was"}
)

// scrubComment tells who opens a scrubbed dump with another tool why so little is in it.
const scrubComment = "scrubbed by dumptriage: memory holds what stacks are unwound by, the rest is missing, 0 or 1"

func scrubCommand() *cli.Command {
	return &cli.Command{
		Name:      "scrub",
		Usage:     "write a small dump that unwinds the same and holds nothing else",
		ArgsUsage: "DUMP OUT | DUMP KERNELDUMP OUTDIR | DUMP OUTDIR/",
		Description: "Walks every thread of a user dump, a kernel dump or both, writes what that needed to OUT, or\n" +
			"under the dumps' names into OUTDIR, walks that too and compares every frame. Texts, command\n" +
			"lines, handles, folders and whatever was not looked at are left out; of stacks the return\n" +
			"addresses and the pointers into the stack are kept. Of a kernel dump the fields of structures\n" +
			"that were used are kept, and what the verdict on its bugcheck reads; with --process or --all\n" +
			"those threads are walked. A difference is an error, and nothing is written. Where OUT is a folder,\n" +
			"or ends as one, what belongs to DUMP by its name, beside it or in its archive, is scrubbed, too.",
		Flags:  []cli.Flag{keepNamesFlag, forceFlag, acceptFlag, processFlag, allFlag, jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, colorFlag, quietFlag},
		Action: runScrub,
	}
}

func runScrub(c *cli.Context) error {
	if n := c.NArg(); n != 2 && n != 3 || c.Args().Get(n-1) == "-" {
		return usagef("scrub wants a dump and the name of the file to write, or a user dump, its kernel dump and a folder")
	}
	var topt triage.Options
	opt, err := reportOptions(c)
	if err != nil {
		return err
	}
	folder := c.NArg() == 3 || namesFolder(c.Args().Get(1))
	if !folder {
		if a, b := c.Args().Get(0), c.Args().Get(1); otherHalf(a, b) {
			return usagef("%s and %s are a pair, which scrub writes into a folder: scrub DUMP KERNELDUMP OUTDIR", a, b)
		}
		if err := mayWrite(c.Args().Get(0), c.Args().Get(1), c.Bool(forceFlag.Name)); err != nil {
			return err
		}
	}
	if err := setSymbols(c, &topt); err != nil {
		return fail(c, err)
	}
	topt.Process, topt.AllProcesses = c.String(processFlag.Name), c.Bool(allFlag.Name)
	in, err := openScrubbed(c, folder)
	if err != nil {
		return fail(c, err)
	}
	defer in.Close()
	if topt.Process != "" && (in.user == nil || in.kernel == nil) {
		if _, err := chosenProcesses(c, cmp.Or(in.kernel, in.user)); err != nil {
			return fail(c, err)
		}
	}
	out, err := scrubOutputs(c, in, folder)
	if err != nil {
		return fail(c, err)
	}
	p := newProgress(c, "walking threads")
	topt.Progress = p.update
	res, err := scrub.Dumps(in.user, in.kernel, in.how, scrub.Options{Triage: topt, KeepNames: c.Bool(keepNamesFlag.Name), Comment: scrubComment, Judge: judgeBugCheck})
	p.done()
	if err != nil {
		return fail(c, err)
	}
	if n := len(res.Differences); n > 0 && !c.Bool(acceptFlag.Name) {
		return fail(c, fmt.Errorf("nothing written: %v; differences in all: %d (--accept-differences writes it all the same)", res.Differences[0], n))
	}
	if err := writeScrubbed(out, res); err != nil {
		return fail(c, err)
	}
	if in.kernel != nil {
		note(c, "%s", keptOfKernel)
	}
	err = tellScrub(c, in, out, res, opt)
	if err != nil { // what was asked for is done all the same, as with a cp -v that cannot print
		tell(c.App.ErrWriter, "dumptriage: %s and compared; only the result could not be printed", out.written())
	}
	return err
}

// keptOfKernel is what of a kernel dump cannot be left out.
const keptOfKernel = "of the kernel dump there remain: registers; addresses, ids and times of threads, processes and the system; names of drivers and modules; parameters of the bugcheck; " +
	"and what was read of the kernel's code and data, of which docs/privacy.md tells"

// judgeBugCheck is what a verdict on a bugcheck is known by; "" when there is none.
func judgeBugCheck(inc *triage.Incident) string {
	v := verdict.Of(inc, verdict.Options{OneProcess: true})
	if v.Kind != verdict.KindBugCheck || v.Signature == nil || v.BugCheck == nil {
		return ""
	}
	judged := []string{v.Signature.Text, v.Signature.ExactID}
	for i := range v.BugCheck.Drivers {
		judged = append(judged, v.BugCheck.Drivers[i].Module.Name())
	}
	return strings.Join(judged, " ")
}

// namesFolder reports whether a path is that of a folder, or is written as one.
func namesFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir() || path != "" && os.IsPathSeparator(path[len(path)-1])
}

// openScrubbed opens the dump, or the pair, that is to be scrubbed.
func openScrubbed(c *cli.Context, folder bool) (*opened, error) {
	o := &opened{}
	for _, path := range c.Args().Slice()[:c.NArg()-1] {
		d, err := openDump(path)
		if err != nil {
			o.Close()
			return nil, err
		}
		if !o.add(d) {
			d.Close()
			o.Close()
			return nil, usagef("%s and %s are both %s dumps; scrub takes one dump, or a user dump and its kernel dump", c.Args().Get(0), c.Args().Get(1), half(d.Kernel()))
		}
	}
	switch {
	case c.NArg() == 3:
		o.how = "given"
	case folder:
		o.addCompanion(c)
		if in, out := c.Args().Get(0), c.Args().Get(1); o.user == nil || o.kernel == nil {
			o.Close()
			return nil, usagef("%s is a folder, and nothing that belongs to %s was found; give the name of the file to write, such as %s", out, in, filepath.Join(out, filepath.Base(in)))
		}
	default:
		o.noteOtherHalf(c)
	}
	return o, nil
}

// noteOtherHalf tells of the other half of a pair, of which one is scrubbed.
func (o *opened) noteOtherHalf(c *cli.Context) {
	d := cmp.Or(o.user, o.kernel)
	switch other, archived := o.otherHalf(); {
	case archived:
		note(c, "of %s only %s is scrubbed, and not %s: for both, name a folder to write to, with %c at its end", d.Path, d.File.Member(), other, filepath.Separator)
	case other != "":
		note(c, "%s lies beside it and is not scrubbed: name it too, and a folder for both", other)
	}
}

// otherHalf names what belongs to the one dump that was opened, in its archive or beside
// it; "" when there is nothing.
func (o *opened) otherHalf() (name string, archived bool) {
	d := cmp.Or(o.user, o.kernel)
	if other := d.OtherMember(); other != "" {
		return other, true
	}
	if o.user != nil {
		name, _ = triage.Companion(d.Path)
	}
	return name, false
}

// outputs are the files to write; one is "" when its dump was not given.
type outputs struct{ user, kernel, folder string }

// written says which files are there now.
func (o outputs) written() string {
	switch {
	case o.kernel == "":
		return o.user + " is written"
	case o.user == "":
		return o.kernel + " is written"
	}
	return o.user + " and " + o.kernel + " are written"
}

// scrubOutputs says where what is made is written, and refuses what would be destroyed.
func scrubOutputs(c *cli.Context, in *opened, folder bool) (out outputs, err error) {
	last := c.Args().Get(c.NArg() - 1)
	if !folder {
		if in.user != nil {
			return outputs{user: last}, nil
		}
		return outputs{kernel: last}, nil
	}
	if last == "" {
		return out, usagef("an empty folder name was given")
	}
	if st, err := os.Stat(last); err == nil && !st.IsDir() {
		return out, usagef("%s is no folder: a pair of dumps is written into one", last)
	}
	out = outputs{filepath.Join(last, plainName(in.user)), filepath.Join(last, plainName(in.kernel)), last}
	if strings.EqualFold(out.user, out.kernel) {
		return out, usagef("both dumps would be written to %s", out.user)
	}
	for _, path := range []string{out.user, out.kernel} {
		for _, d := range []*triage.Dump{in.user, in.kernel} {
			if err := mayWrite(d.Path, path, c.Bool(forceFlag.Name)); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// plainName is the name of a dump's file, unpacked.
func plainName(d *triage.Dump) string {
	name := filepath.Base(d.Path)
	if m := d.File.Member(); m != "" {
		name = dump.BaseName(m)
	}
	for _, packed := range []string{".zst", ".gz", ".zip", ".cab"} {
		if n := len(name) - len(packed); n > 0 && strings.EqualFold(name[n:], packed) {
			name = name[:n]
		}
	}
	return name
}

// writeScrubbed writes one file or both; a second one that fails takes the first away.
func writeScrubbed(out outputs, res *scrub.Result) error {
	if out.folder != "" {
		if err := os.MkdirAll(out.folder, 0o777); err != nil {
			return err
		}
	}
	if out.user != "" {
		if err := writeWhole(out.user, res.Bytes); err != nil {
			return err
		}
	}
	if out.kernel == "" {
		return nil
	}
	err := writeWhole(out.kernel, res.Kernel)
	if err != nil && out.user != "" {
		err = errors.Join(err, os.Remove(out.user))
	}
	return err
}

func tellScrub(c *cli.Context, in *opened, out outputs, res *scrub.Result, opt report.Options) error {
	s := &report.Scrub{}
	for _, d := range []*triage.Dump{in.kernel, in.user} {
		if d == nil {
			continue
		}
		s.Inputs = append([]triage.Input{d.Describe(triage.DefaultHashLimit)}, s.Inputs...)
		s.System = d.System()
		if p := d.Process(); p.HasPID {
			s.PID = &p.PID
		}
	}
	s.ScrubJSON = report.ScrubJSON{Output: out.user, Size: int64(len(res.Bytes)), Threads: res.Threads, Frames: res.Frames, MemoryBytes: res.Memory}
	switch {
	case out.user == "":
		s.Output, s.Size = out.kernel, int64(len(res.Kernel))
	case out.kernel != "":
		s.KernelOutput, s.KernelSize = out.kernel, int64(len(res.Kernel))
	}
	if in.user == nil || in.kernel == nil {
		s.NotScrubbed, _ = in.otherHalf()
	}
	for _, l := range res.Loosened {
		s.Loosened = append(s.Loosened, report.LoosenedJSON{ThreadID: l.Thread, PID: l.PID, Processor: l.Processor, Kept: l.Level.String()})
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
	if sameFile(in, out) {
		return usagef("%s and %s are the same file", in, out)
	}
	switch {
	case st.IsDir():
		return usagef("%s is a folder; give the name of the file to write, such as %s", out, filepath.Join(out, filepath.Base(in)))
	case !st.Mode().IsRegular():
		return usagef("%s is no regular file", out)
	case !force:
		return usagef("%s is there already; --force overwrites it", out)
	}
	return nil
}

// otherHalf reports whether two files that are there are the halves of a pair by their
// names: a folder was forgotten then.
func otherHalf(a, b string) bool {
	beside, ok := triage.Companion(a)
	if !ok || !sameFile(beside, b) {
		beside, ok = triage.Companion(b)
		return ok && sameFile(beside, a)
	}
	return true
}

// sameFile reports whether two paths lead to one file that is there.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// writeWhole writes a file that is there whole or not at all, and reads it back.
func writeWhole(path string, b []byte) (err error) {
	f, err := temporary.File(filepath.Dir(path), ".scrub-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temporary.Remove(f.Name())) }()
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
