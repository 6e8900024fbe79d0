package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/report"
	"dumptriage/triage"
)

var (
	processFlag = &cli.StringFlag{Name: "process", Aliases: []string{"p"},
		Usage: "of a full kernel dump, the process `NAME`: a name, a pattern of names (w3wp*), a process id (1234, 0x4d2), or the address of an EPROCESS"}
	environmentFlag = &cli.BoolFlag{Name: "environment", DisableDefaultText: true, Usage: "show the environment variables too; they may hold secrets"}

	treeFlag = &cli.BoolFlag{Name: "tree", DisableDefaultText: true, Usage: "show processes below the ones that created them"}
	scanFlag = &cli.BoolFlag{Name: "scan", DisableDefaultText: true, Usage: "search all memory, too, for processes that are hidden from the kernel's lists or have ended"}

	callbacksFlag = &cli.BoolFlag{Name: "callbacks", DisableDefaultText: true,
		Usage: "of a kernel dump, the kernel stacks too that threads left to be called back into user mode"}
	allFlag = &cli.BoolFlag{Name: "all", DisableDefaultText: true, Usage: "of a full kernel dump, the threads of all processes"}
)

func processesCommand() *cli.Command {
	return &cli.Command{
		Name:  "processes",
		Usage: "list the processes of a kernel dump",
		Description: "Of a full, kernel or active memory dump all of them, of a triage dump the one that it holds. They are\n" +
			"found by the kernel's list and by its table of ids; found by tells which. A # marks the process whose\n" +
			"thread stopped the system, a ! one that the kernel's list or its table of ids lacks, though that is whole:\n" +
			"it has been hidden, or was being made or ended. Command lines are read where the dump holds the process's\n" +
			"memory.",
		ArgsUsage: "KERNELDUMP",
		Flags:     systemFlags(processFlag, treeFlag, scanFlag, environmentFlag),
		Action: listVerb(report.ListProcesses, func(c *cli.Context, d *triage.Dump, l *report.List) error {
			if !d.Kernel() {
				return usagef("%s is a user dump of one process; see: dumptriage info", d.Path)
			}
			chosen, err := chosenProcesses(c, d)
			if err != nil {
				return err
			}
			if c.Bool(scanFlag.Name) {
				scanned := d.ScanProcesses()
				for i := range scanned {
					chosen = append(chosen, &scanned[i])
				}
			}
			threads := threadsByProcess(d)
			for _, p := range chosen {
				one := *p
				one.CommandLine = d.CommandLine(p)
				e := report.ProcessEntry{Process: &one, Threads: one.ThreadCount, Handles: d.HandleCount(p)}
				if n, ok := threads[p.EPROCESS]; ok && e.Threads <= 0 {
					e.Threads = n
				}
				if v, ok := d.ProcessView(p).(*kdump.View); ok && one.CommandLine == "" && noUserHalf(p) == "" {
					e.UserMemory = v.Unreadable()
				}
				if c.Bool(environmentFlag.Name) {
					e.Environment = d.Environment(p)
				}
				l.Processes = append(l.Processes, e)
			}
			if c.Bool(treeFlag.Name) {
				l.Processes, l.Tree = report.ProcessTree(l.Processes), true
			}
			return nil
		}),
	}
}

// threadsByProcess counts the threads of a dump by EPROCESS.
func threadsByProcess(d *triage.Dump) map[uint64]int {
	out := map[uint64]int{}
	for _, t := range d.Threads() {
		if t.Kernel != nil {
			out[t.Kernel.EPROCESS]++
		}
	}
	return out
}

// chosenProcesses returns the processes that --process names, all without it.
func chosenProcesses(c *cli.Context, d *triage.Dump) ([]*dump.Process, error) {
	if name := c.String(processFlag.Name); name != "" {
		if !d.Kernel() {
			return nil, usagef("%s is a user dump of one process: --process chooses one of a kernel dump", d.Path)
		}
		found := d.FindProcesses(name)
		if len(found) == 0 {
			return nil, noProcess(d, name)
		}
		return found, nil
	}
	all := d.Processes()
	out := make([]*dump.Process, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out, nil
}

// oneProcess returns the process that --process names, nil without it.
func oneProcess(c *cli.Context, d *triage.Dump) (*dump.Process, error) {
	if c.String(processFlag.Name) == "" {
		return nil, nil
	}
	found, err := chosenProcesses(c, d)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, usagef("%d processes are called %q: %s; name one by its id or address (see: dumptriage processes)", len(found), c.String(processFlag.Name), someOf(found))
	}
	return found[0], nil
}

// someOf names the first of several processes.
func someOf(all []*dump.Process) string {
	const most = 8
	var names []string
	for _, p := range all[:min(most, len(all))] {
		names = append(names, named(p))
	}
	if len(all) > most {
		names = append(names, fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(names, ", ")
}
