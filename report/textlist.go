package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// ListText writes a list as a table for people.
func ListText(w io.Writer, l *List, opt Options) error {
	opt.hide(l)
	inc := l.incident()
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	switch l.Kind {
	case ListInfo:
		t.info(l, inc)
	case ListModules:
		t.modules(l.Modules, l.Unloaded)
	case ListDrivers:
		t.drivers(l)
	case ListThreads:
		t.threadTable(l.Threads)
	case ListHandles:
		t.handles(l.Handles)
	case ListProcesses:
		t.processTable(l)
	case ListMemory:
		if l.Bytes != nil {
			t.hexDump(l.Bytes)
			break
		}
		t.regions(l.Regions)
		if l.OfProcess {
			t.processRegions(l)
			break
		}
		t.ranges(l.Ranges)
	case ListStreams:
		t.streams(l.Streams)
	case ListSymbols:
		t.symbolTable(l.Symbols)
		for _, step := range howToFetch(l) {
			t.wrapped(sgrCyan, "Next", step)
		}
	case ListTypes:
		t.structure(l.Struct)
	}
	t.errors(l.Errors)
	return t.flush()
}

// widestCell is the width in columns up to which a cell widens its column. A
// longer one pushes the rest of its own row out instead: a dump may hold one
// name of 32,000 characters among 10,000.
const widestCell = 80

// table lines up columns. A column that no row has anything in is left out.
func (t *text) table(header []string, rows func(add func(cells ...string))) {
	var all [][]string
	used := make([]bool, len(header))
	rows(func(cells ...string) {
		all = append(all, cells)
		for i, c := range cells {
			used[i] = used[i] || c != ""
		}
	})
	width := make([]int, len(header))
	for _, cells := range append(all, header) {
		for i, c := range cells {
			width[i] = max(width[i], min(columns(c), widestCell))
		}
	}
	row := func(cells []string) {
		var b strings.Builder
		for i, c := range cells {
			if used[i] || len(all) == 0 {
				b.WriteString(c)
				b.WriteString(strings.Repeat(" ", max(0, width[i]-columns(c))+2))
			}
		}
		t.line("", "%s", strings.TrimRight(b.String(), " "))
	}
	row(header)
	for _, cells := range all {
		row(cells)
	}
}

func (t *text) info(l *List, inc *triage.Incident) {
	t.heading(&triage.Incident{Inputs: l.Inputs, Captured: l.Captured, System: inc.System, Process: inc.Process})
	if inc.System.Uptime > 0 {
		t.line("", "Uptime:  %s", inc.System.Uptime.Round(time.Second))
	}
	if s := cpuInfo(&inc.System); s != "" {
		t.line("", "CPU:     %s", clean(s))
	}
	for _, i := range l.Inputs {
		if len(i.Flags) > 0 {
			t.line("", "Flags:   %s", clean(strings.Join(i.Flags, " ")))
		}
		if i.SHA256 != "" {
			t.line("", "SHA-256: %s", clean(i.SHA256))
		}
	}
	if l.ThreadCount >= 0 {
		t.line("", "Threads: %d", l.ThreadCount)
	}
	if l.ModuleCount >= 0 {
		t.line("", "Modules: %d", l.ModuleCount)
	}
	t.wholeSystem(l.Whole)
	t.crash(inc)
	v := l.headerVerdict(inc)
	t.bugCheck(inc, v)
	t.secondaryNames(v)
}

// imageStates says in a word what became of a module's image.
var imageStates = map[symbols.ImageState]string{
	symbols.ImageFromMemory: "dump", symbols.ImageFromFile: "file", symbols.ImageMissing: "missing",
}

func (t *text) modules(modules []*triage.Module, unloaded []dump.Module) {
	t.table([]string{"start", "end", "module", "version", "time stamp", "debug id", "image", "found by", "path"}, func(add func(...string)) {
		for _, m := range modules {
			if m == nil || m.Module == nil {
				continue
			}
			stamp := ""
			if m.TimeDateStamp != 0 {
				stamp = fmt.Sprintf("%08X", m.TimeDateStamp)
			}
			add(t.addr(m.Base), t.addr(m.End()), clean(moduleAlias(m.Module)), version(m.Version), stamp, m.CodeView.DebugID(), imageStates[m.Image], foundBy(m), clean(m.Path))
		}
	})
	t.unloaded(unloaded)
}

// foundBy says how a module was found that no list has.
func foundBy(m *triage.Module) string {
	if m.Mapped {
		return "VAD"
	}
	return ""
}

func (t *text) unloaded(unloaded []dump.Module) {
	if len(unloaded) == 0 {
		return
	}
	t.line("", "")
	t.line("", "Unloaded modules:")
	t.table([]string{"start", "end", "module", "unloaded"}, func(add func(...string)) {
		for i := range unloaded {
			add(t.addr(unloaded[i].Base), t.addr(unloaded[i].End()), clean(unloaded[i].Name()), timeText(unloaded[i].UnloadedAt))
		}
	})
}

func (t *text) drivers(l *List) {
	t.table([]string{"start", "end", "module", "version", "time stamp", "built", "debug id", "path"}, func(add func(...string)) {
		kernel := drivers(l.Modules)
		kinds := stampKinds(kernel, l.Captured)
		for i, m := range kernel {
			stamp := ""
			if m.TimeDateStamp != 0 {
				stamp = fmt.Sprintf("%08X", m.TimeDateStamp)
			}
			add(t.addr(m.Base), t.addr(m.End()), clean(moduleAlias(m.Module)), clean(kernelVersion(m, l.System)), stamp, builtText(m.TimeDateStamp, kinds[i]), m.CodeView.DebugID(), clean(m.Path))
		}
	})
	t.unloaded(l.Unloaded)
}

func (t *text) threadTable(threads []triage.Thread) {
	t.table([]string{"#", "id", "teb", "ethread", "state", "start", "kernel time", "user time", "name", ".NET exception"}, func(add func(...string)) {
		for i := range threads {
			th := &threads[i]
			ethread, state := "", ""
			if k := th.KernelInfo; k != nil {
				state = threadState(k)
				if k.ETHREAD != 0 {
					ethread = t.addr(k.ETHREAD)
				}
				if k.State == stateWaiting {
					state += waitReason(k)
				}
			}
			kernel, user := "", ""
			if j := timesJSON(th.Times); j != nil {
				kernel, user = seconds(j.KernelSeconds), seconds(j.UserSeconds)
			}
			exception := ""
			if th.Managed != nil && th.Managed.Exception != nil {
				exception = exceptionText(th.Managed.Exception)
			}
			add(strconv.Itoa(i), t.idOf(th), t.known(th.TEB), ethread, state, t.known(th.StartAddress), kernel, user, clean(th.Name), exception)
		}
	})
}

func seconds(s *float64) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *s)
}

func (t *text) known(v uint64) string {
	if v == 0 {
		return ""
	}
	return t.addr(v)
}

func (t *text) handles(handles []dump.Handle) {
	switch len(handles) {
	case 0:
		if handles == nil {
			t.line("", "The dump holds no handle data.")
			return
		}
	default:
		t.table([]string{"handle", "access", "type", "name"}, func(add func(...string)) {
			for i := range handles {
				h := &handles[i]
				add(fmt.Sprintf("%x", h.Value), fmt.Sprintf("%08x", h.Access), clean(h.Type), clean(joinWith(" ", h.Name, handleID(h.State), inBrackets(handleWords(h.State)))))
			}
		})
	}
	t.line("", "%s", plural(len(handles), "handle"))
}

// handleWords say how the object of a handle stands, and who holds it.
func handleWords(s *dump.ObjectState) string {
	words := handleState(s)
	if s != nil && s.Owner != nil {
		words = joinWith(", ", words, fmt.Sprintf("held by thread %x.%x", s.Owner.Process, s.Owner.Thread))
	}
	return words
}

func (t *text) regions(regions []dump.Region) {
	if len(regions) == 0 {
		return
	}
	t.table([]string{"base", "size", "state", "type", "protection", "commit", "kind", "file"}, func(add func(...string)) {
		for i := range regions {
			r := &regions[i]
			protect, commit, kind := "", "", ""
			if r.Protect != 0 {
				protect = protection(r.Protect)
			}
			if v := r.VAD; v != nil {
				kind = v.Kind
				if v.HasCommit {
					commit = fmt.Sprintf("%x", v.Commit)
				}
			}
			add(t.addr(r.Base), fmt.Sprintf("%x", r.Size), memoryState(r.State), memoryType(r.Type), protect, commit, kind, clean(cmp.Or(r.Image, r.File)))
		}
	})
	t.line("", "")
}

// processRegions sums up what a process has mapped. Pages that a view of a section
// shares are charged to the section.
func (t *text) processRegions(l *List) {
	var pages, size uint64
	for i := range l.Regions {
		size += l.Regions[i].Size
		if v := l.Regions[i].VAD; v != nil && v.HasCommit {
			pages += v.Commit
		}
	}
	t.line("", "%s of %s (%#x), %d bytes, of which %s committed", plural(len(l.Regions), "range"), clean(l.Process.Name), l.Process.PID, size, plural(int(pages), "page"))
}

func (t *text) ranges(ranges []dump.Range) {
	var total uint64
	t.table([]string{"in the dump", "size", "file offset"}, func(add func(...string)) {
		for _, r := range ranges {
			total += r.Size
			add(t.addr(r.VA), fmt.Sprintf("%x", r.Size), fmt.Sprintf("%x", r.Off))
		}
	})
	t.line("", "%s, %d bytes of memory", plural(len(ranges), "range"), total)
}

func (t *text) streams(streams []Stream) {
	t.table([]string{"type", "name", "offset", "size", "note"}, func(add func(...string)) {
		for i := range streams {
			s := &streams[i]
			kind, offset, size := "", "", ""
			if s.HasType {
				kind = fmt.Sprintf("%d", s.Type)
			}
			if s.Offset >= 0 {
				offset = fmt.Sprintf("%x", s.Offset)
			}
			if s.Size >= 0 {
				size = fmt.Sprintf("%d", s.Size)
			}
			add(kind, clean(s.Name), offset, size, clean(s.Note))
		}
	})
}

// plural counts things whose name takes an s.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
