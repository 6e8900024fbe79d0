package main

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/report"
	"dumptriage/triage"
)

// An empty answer about a process of a whole system needs its reason: what is not in
// the dump, what the process does not have, and what it had until it ended.

// sayAbsent adds a warning to a list: the answer is as good as the dump lets it be.
func sayAbsent(l *report.List, what, format string, args ...any) {
	e := dump.Errorf(dump.OutOfRange, what, format, args...)
	e.Warning = true
	l.Errors = append(l.Errors, e)
}

// named is how messages call a process.
func named(p *dump.Process) string {
	switch {
	case p.Name != "" && p.HasPID:
		return fmt.Sprintf("%s (%#x)", p.Name, p.PID)
	case p.HasPID:
		return fmt.Sprintf("process %#x", p.PID)
	}
	return fmt.Sprintf("the process at %#x", p.EPROCESS)
}

// noUserHalf says why a process has no user mode, "" when it may have.
func noUserHalf(p *dump.Process) string {
	switch {
	case p.Ended():
		return "has ended"
	case p.PEB == 0:
		return "has no user mode of its own: it is the kernel's, or was being made or ended"
	}
	return ""
}

// absentModules says why the modules of a process are not those of its loader's
// lists.
func absentModules(d *triage.Dump, l *report.List, p *dump.Process) {
	v, ok := d.ProcessView(p).(*kdump.View)
	if !ok {
		return
	}
	if why := noUserHalf(p); why != "" {
		if len(l.Modules) == 0 {
			sayAbsent(l, "modules", "%s %s; the modules of the kernel: dumptriage drivers", named(p), why)
		}
		return
	}
	why := v.ListMissing()
	switch {
	case why == "":
	case len(l.Modules) > 0:
		sayAbsent(l, "modules", "%s: what its loader listed cannot be read (%s): these are the images that it mapped, by its VADs", named(p), why)
	default:
		sayAbsent(l, "modules", "%s: what its loader listed cannot be read (%s), and its VADs name no image", named(p), why)
	}
}

// absentHandles says why a process's handles are not there.
func absentHandles(d *triage.Dump, l *report.List, p *dump.Process) {
	_, ok := d.ProcessView(p).(*kdump.View)
	if !ok || l.Handles != nil || p.EPROCESS == 0 {
		return
	}
	if p.Ended() {
		sayAbsent(l, "handles", "%s has ended: it has no handles any more", named(p))
		return
	}
	sayAbsent(l, "handles", "%s: its handle table is not in the dump, or where EPROCESS points to it is in no table for this kernel", named(p))
}

// absentRegions says why a process has mapped nothing.
func absentRegions(l *report.List, p *dump.Process) {
	if why := noUserHalf(p); why != "" && len(l.Regions) == 0 {
		sayAbsent(l, "VADs", "%s %s, and maps nothing", named(p), why)
	}
}

// noProcess is the error that no process is meant by a name.
func noProcess(d *triage.Dump, name string) error {
	if len(d.Processes()) == 0 {
		return dump.Errorf(dump.OutOfRange, "processes", "no process %q: the dump tells of no process at all (see: dumptriage info)", name)
	}
	if p := d.FindProcesses("0x" + name); len(p) > 0 && strings.Trim(name, "0123456789") == "" { // ids of threads are printed as hexadecimal
		return dump.Errorf(dump.OutOfRange, "processes", "no process is called %q or has that id, as a decimal number; 0x%s is %s", name, name, named(p[0]))
	}
	return dump.Errorf(dump.OutOfRange, "processes", "no process is called %q or has that id or address (see: dumptriage processes)", name)
}
