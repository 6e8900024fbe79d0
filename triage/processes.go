package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/glob"
	"dumptriage/kdump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// wholeSystem returns the reader of a dump that holds a whole system with its
// processes, nil for any other.
func (d *Dump) wholeSystem() *kdump.File {
	if d == nil {
		return nil
	}
	if k, ok := d.Source.(*kdump.File); ok && k.Full() {
		return k
	}
	return nil
}

// Processes returns the processes of a kernel dump: all of a full one, else the
// one that it holds. It is nil for user dumps.
func (d *Dump) Processes() []dump.Process {
	if k, ok := d.Source.(*kdump.File); ok {
		return k.Processes()
	}
	return nil
}

// ScanProcesses searches the memory of a full kernel dump for processes that
// Processes lacks.
func (d *Dump) ScanProcesses() []dump.Process {
	if k := d.wholeSystem(); k != nil {
		return k.ScanProcesses()
	}
	return nil
}

// CommandLine returns the command line of a process of a full kernel dump, ""
// when its memory is not in the dump.
func (d *Dump) CommandLine(p *dump.Process) string {
	if k := d.wholeSystem(); k != nil {
		return k.CommandLine(p)
	}
	return p.CommandLine
}

// HandleCount returns how many handles a process of a full kernel dump has open,
// -1 when its handle table, or a part of it, is not in the dump.
func (d *Dump) HandleCount(p *dump.Process) int {
	if k := d.wholeSystem(); k != nil {
		if n, ok := k.HandleCount(p); ok {
			return n
		}
	}
	return -1
}

// Environment returns the environment variables of a process of a full kernel
// dump, nil when its memory is not in the dump. They may hold secrets.
func (d *Dump) Environment(p *dump.Process) []string {
	if k := d.wholeSystem(); k != nil {
		return k.Environment(p)
	}
	return nil
}

// ProcessView returns the dump as one of its processes sees it: that process's
// memory, modules and threads. Of dumps that hold one process it is the dump.
func (d *Dump) ProcessView(p *dump.Process) dump.Source {
	if k := d.wholeSystem(); k != nil {
		return k.View(p)
	}
	return d.Source
}

// FindProcesses returns the processes that a user means by text: a name such as
// notepad or notepad.exe in any case, a pattern of names with * and ?, a process id
// (decimal, or hexadecimal, with 0x where it could be decimal too), or the address of
// an EPROCESS.
func (d *Dump) FindProcesses(text string) []*dump.Process {
	all := d.Processes()
	match := func(fits func(p *dump.Process) bool) (out []*dump.Process) {
		for i := range all {
			if fits(&all[i]) {
				out = append(out, &all[i])
			}
		}
		return out
	}
	hasID := func(id uint64) func(*dump.Process) bool {
		return func(p *dump.Process) bool { return p.HasPID && uint64(p.PID) == id }
	}
	digits := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(text), "0x"), "`", "")
	hex, notHex := strconv.ParseUint(digits, 16, 64)
	if notHex == nil {
		if got := match(func(p *dump.Process) bool { return hex != 0 && p.EPROCESS == hex }); len(got) > 0 {
			return got
		}
	}
	if v, err := strconv.ParseUint(text, 0, 32); err == nil {
		if got := match(hasID(v)); len(got) > 0 {
			return got
		}
	}
	names := match(func(p *dump.Process) bool { return nameFits(p.Name, text) })
	if decimal := strings.Trim(text, "0123456789") == ""; len(names) == 0 && notHex == nil && !decimal { // as stacks prints ids
		return match(hasID(hex))
	}
	return names
}

// StoredName is how many characters of a process's name every kernel keeps.
const StoredName = 14

// nameFits reports whether a process's name is meant by text.
func nameFits(name, text string) bool {
	got, text := strings.ToLower(name), strings.ToLower(text)
	for _, want := range []string{text, text + ".exe"} {
		switch {
		case got == "":
		case strings.ContainsAny(text, "*?"):
			if glob.Match(want, got) {
				return true
			}
		case got == want || len(got) >= StoredName && strings.HasPrefix(want, got):
			return true
		}
	}
	return false
}

// processByID returns the process with an id of a kernel dump.
func (d *Dump) processByID(pid uint32) *dump.Process {
	all := d.Processes()
	for i := range all {
		if all[i].HasPID && all[i].PID == pid {
			return &all[i]
		}
	}
	return nil
}

// Holds reports whether a dump of a whole system has a process with that id; it
// is false for all others.
func (d *Dump) Holds(pid uint32) bool {
	return d.wholeSystem() != nil && d.processByID(pid) != nil
}

// chooseProcess decides which processes of a full kernel dump the incident is
// about: those that the options name, in a pair that of the user dump, else the
// one whose thread stopped the system.
func (a *analysis) chooseProcess() {
	k := a.kernel.wholeSystem()
	if k == nil {
		return
	}
	a.views = map[uint64]*walker{}
	switch {
	case a.user != nil:
		a.chosen = []*dump.Process{}
		if p := a.kernel.processByID(a.inc.Process.PID); a.inc.Process.HasPID && p != nil {
			a.chosen = append(a.chosen, p)
		}
	case a.opt.Process != "" || a.opt.EPROCESS != nil:
		a.chosen = a.namedProcesses()
		if len(a.chosen) == 0 {
			a.inc.Errors = append(a.inc.Errors, dump.Errorf(dump.OutOfRange, "processes", "no process is called %q or has that id or address", a.opt.Process))
		}
		if len(a.chosen) == 1 {
			a.inc.Process = *a.chosen[0]
			a.inc.Process.CommandLine = k.CommandLine(a.chosen[0])
		}
	case a.opt.AllProcesses || a.opt.Running || a.opt.Thread != nil: // an id is a thread's of the whole system
	default:
		if p := k.Process(); p.EPROCESS != 0 {
			a.chosen = []*dump.Process{p}
		}
	}
}

// namedProcesses returns the processes that the options name.
func (a *analysis) namedProcesses() []*dump.Process {
	if a.opt.EPROCESS == nil {
		return append([]*dump.Process{}, a.kernel.FindProcesses(a.opt.Process)...)
	}
	out := []*dump.Process{}
	all := a.kernel.Processes()
	for i := range all {
		if slices.Contains(a.opt.EPROCESS, all[i].EPROCESS) {
			out = append(out, &all[i])
		}
	}
	return out
}

// chosenThreads leaves the threads of the chosen processes, and unless processes
// were named those that ran on a processor: they are what the system did when it
// stopped.
func (a *analysis) chosenThreads(all []dump.Thread) []dump.Thread {
	if a.kernel.wholeSystem() == nil || a.chosen == nil {
		return all
	}
	running := a.user == nil && a.opt.Process == "" && a.opt.EPROCESS == nil
	var out []dump.Thread
	for _, t := range all {
		mine := slices.ContainsFunc(a.chosen, func(p *dump.Process) bool { return p.EPROCESS == t.Kernel.EPROCESS })
		if mine || running && t.Kernel.CPU >= 0 {
			out = append(out, t)
		}
	}
	return out
}

// NoThreads says of a process of a full kernel dump that it has no threads, and why.
func NoThreads(p *dump.Process) string {
	name := fmt.Sprintf("%s (%#x)", p.Name, p.PID)
	switch {
	case p.Ended():
		return name + " has ended: it has no threads any more"
	case p.ThreadCount == 0:
		return name + " has no threads: it is about to end, or was being made"
	}
	return "no thread of " + name + " was found: neither its list of threads nor the table of ids leads to one"
}

// sayNoThreads notes that processes which were asked for have no threads.
func (a *analysis) sayNoThreads() {
	if a.user != nil || a.opt.Process == "" && a.opt.EPROCESS == nil || a.opt.Thread != nil {
		return
	}
	for _, p := range a.chosen {
		if !slices.ContainsFunc(a.inc.Threads, func(t Thread) bool { return t.KernelInfo != nil && t.KernelInfo.EPROCESS == p.EPROCESS }) {
			e := dump.Errorf(dump.OutOfRange, "threads", "%s", NoThreads(p))
			e.Warning = true
			a.inc.Errors = append(a.inc.Errors, e)
		}
	}
}

// userWalker returns the walker of a kernel thread's user half: in a full dump
// that of its process's memory.
func (a *analysis) userWalker(t *Thread) *walker {
	k := a.kernel.wholeSystem()
	if k == nil || t.KernelInfo == nil {
		return a.kw
	}
	owner := t.KernelInfo.EPROCESS
	if w := a.views[owner]; w != nil {
		return w
	}
	all := k.Processes()
	i := slices.IndexFunc(all, func(p dump.Process) bool { return p.EPROCESS == owner })
	if i < 0 {
		return a.kw
	}
	w := newWalker(newSpace(k.View(&all[i]), a.store), nil, a.opt.Frames, a.budget)
	a.views[owner] = w
	a.viewOrder = append(a.viewOrder, w)
	return w
}

// tebStack reads the bounds of a thread's user stack from its TEB.
func (w *walker) tebStack(teb uint64) (limit, base uint64) {
	ptr := uint64(w.space.arch.PointerSize())
	if teb == 0 {
		return 0, 0
	}
	base, err1 := dump.ReadPointer(w.space.mem, w.space.arch, teb+ptr)
	limit, err2 := dump.ReadPointer(w.space.mem, w.space.arch, teb+2*ptr)
	if err1 != nil || err2 != nil || limit >= base {
		return 0, 0
	}
	return limit, base
}

// inUserMode reports whether a thread of a kernel dump was running user code, so
// that its registers are those of its user half. The kernel may have called an
// address of user mode, mostly 0; the code selector tells.
func (a *analysis) inUserMode(kt *dump.Thread) bool {
	const ring3 = 3
	pc, ok := kt.Context.PC()
	if !ok || a.kernel.wholeSystem() == nil {
		return false
	}
	if cs, known := kt.Context.Get(dump.RegCS); known && cs != 0 && cs&ring3 != ring3 {
		return false
	}
	if a.kernel.System().Arch.PointerSize() == 4 {
		return pc < 0x80000000
	}
	return pc>>47 == 0
}

// walkInUserMode walks a thread that has no kernel half: it was interrupted in
// user mode.
func (a *analysis) walkInUserMode(t *Thread) {
	w := a.userWalker(t)
	limit, base := w.tebStack(t.TEB)
	t.User, t.Wow64 = w.halves(t, t.kernelThread.Context, unwind.Options{First: methodOf(t.kernelThread.ContextSource), StackLimit: limit, StackBase: base})
	t.KernelNote = "it was running in user mode"
}

// viewModules returns the modules of the processes whose threads were walked,
// each image once where several processes have it at one address.
func (a *analysis) viewModules() []*Module {
	var out []*Module
	index := map[string]*Module{}
	for _, w := range a.viewOrder {
		for _, m := range w.space.mods {
			key := fmt.Sprintf("%x/%x/%x/%s", m.Base, m.Size, m.TimeDateStamp, m.Path)
			if seen := index[key]; seen != nil {
				seen.UsedInStack = seen.UsedInStack || m.UsedInStack
				seen.Named = seen.Named || m.Named
				continue
			}
			index[key] = m
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(x, y *Module) int { return cmp.Compare(x.Base, y.Base) })
	return out
}

// addMissing adds images that were looked for in vain, each once though several
// processes miss it.
func (a *analysis) addMissing(missing []symbols.Missing, seen map[string]bool) {
	for _, m := range missing {
		key := fmt.Sprintf("%s/%x/%s", m.Key, m.Module.Base, m.Module.Path)
		if !seen[key] || len(a.viewOrder) == 0 {
			seen[key] = true
			a.inc.Missing = append(a.inc.Missing, m)
		}
	}
}

// processOf returns the process of a kernel dump that a user dump may be of: in a
// full dump the one with its id, else the only one.
func processOf(kernel, user *Dump) *dump.Process {
	if up := user.Process(); up.HasPID && kernel.wholeSystem() != nil {
		if p := kernel.processByID(up.PID); p != nil {
			return p
		}
	}
	return kernel.Process()
}

// nameProcesses lists the processes that own the threads.
func (a *analysis) nameProcesses() {
	k := a.kernel.wholeSystem()
	if k == nil {
		return
	}
	owners := map[uint64]bool{}
	for i := range a.inc.Threads {
		if t := &a.inc.Threads[i]; t.KernelInfo != nil {
			owners[t.KernelInfo.EPROCESS] = true
		}
	}
	for _, p := range k.Processes() {
		if owners[p.EPROCESS] {
			a.inc.Processes = append(a.inc.Processes, p)
		}
	}
	if a.opt.Thread != nil && len(a.inc.Processes) == 1 && a.user == nil { // the thread of an id is of one process
		a.inc.Process = a.inc.Processes[0]
		a.inc.Process.CommandLine = k.CommandLine(&a.inc.Process)
	}
}
