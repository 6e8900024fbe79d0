package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/triage"
)

// opened is the one dump or the pair that a command line names.
type opened struct {
	user, kernel *triage.Dump
	how          string
}

func (o *opened) Close() {
	for _, d := range []*triage.Dump{o.user, o.kernel} {
		if d != nil {
			d.Close()
		}
	}
}

// size is that of the files together.
func (o *opened) size() int64 {
	size := int64(0)
	for _, d := range []*triage.Dump{o.user, o.kernel} {
		if d != nil {
			size += d.File.Size()
		}
	}
	return size
}

// limitMemory sets the limit that the sizes of the dumps allow.
func (o *opened) limitMemory() { limitMemory(o.size()) }

// add puts a dump in its place; false means that the place is taken.
func (o *opened) add(d *triage.Dump) bool {
	place := &o.user
	if d.Kernel() {
		place = &o.kernel
	}
	if *place != nil {
		return false
	}
	*place = d
	return true
}

// openInputs opens one dump, or a user dump and its kernel dump in either order.
// One of a pair brings the other along that lies beside it or in its archive.
func openInputs(c *cli.Context) (*opened, error) {
	paths := c.Args().Slice()
	switch {
	case len(paths) == 0:
		return nil, usagef("%s wants a dump file, or a user dump and its kernel dump", c.Command.Name)
	case len(paths) > 2:
		return nil, usagef("%s takes one dump, or one user dump and its kernel dump; for many dumps use batch", c.Command.Name)
	}
	if len(paths) == 2 && paths[0] == "-" && paths[1] == "-" {
		return nil, usagef("standard input holds one dump; name the other")
	}
	o := &opened{}
	for _, path := range paths {
		d, err := openDump(path)
		if err != nil {
			o.Close()
			return nil, err
		}
		if !o.add(d) {
			d.Close()
			o.Close()
			return nil, usagef("%s and %s are both %s dumps; for many dumps use batch", paths[0], paths[1], half(d.Kernel()))
		}
	}
	defer o.limitMemory()
	if len(paths) == 2 {
		o.how = "given"
	} else if !c.Bool(aloneFlag.Name) {
		o.addCompanion(c)
	}
	return o, nil
}

// openDump opens a dump; an empty name, as from an unset variable, is wrong usage.
func openDump(path string) (*triage.Dump, error) {
	if path == "" {
		return nil, usagef("an empty file name was given")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, &dump.Error{Code: dump.IO, File: path, Offset: -1, Size: -1, Msg: "is a directory; dumptriage batch triages the dumps in it"}
	}
	return triage.Open(path)
}

func half(kernel bool) string {
	if kernel {
		return "kernel"
	}
	return "user"
}

// addCompanion opens the other half of a pair of which one was named: the one in
// the same archive, or the kernel dump beside a user dump. What is wrong with a
// file that nobody named is a warning, not a failure.
func (o *opened) addCompanion(c *cli.Context) {
	first := o.user
	if first == nil {
		first = o.kernel
	}
	d, err := first.OpenOtherHalf()
	how := "archive"
	if d == nil && err == nil && o.user != nil {
		if path, ok := triage.Companion(first.Path); ok {
			d, err = triage.Open(path)
			how = "beside"
		}
	}
	switch {
	case err != nil:
		warn(c, "%v", err)
		return
	case d == nil:
		return
	case d.Kernel() == first.Kernel():
		warn(c, "%s is not a %s dump; not used", d.Path, half(!d.Kernel()))
	case !triage.SameProcess(first, d):
		warn(c, "%s is of process %d, not %d; not used", d.Path, d.Process().PID, first.Process().PID)
	default:
		o.add(d)
		o.how = how
		return
	}
	d.Close()
}

// failedInputs names the files of a command line that led to no answer.
func failedInputs(c *cli.Context) []triage.Input {
	var in []triage.Input
	for _, path := range c.Args().Slice() {
		in = append(in, triage.Input{Path: path, Size: -1})
	}
	return in
}
