package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// ListText writes a list as a table for people.
func ListText(w io.Writer, l *List, opt Options) error {
	inc := l.incident()
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	switch l.Kind {
	case ListInfo:
		t.info(l, inc)
	case ListModules:
		t.modules(l.Modules, l.Unloaded)
	case ListDrivers:
		t.modules(drivers(l.Modules), l.Unloaded)
	case ListThreads:
		t.threadTable(l.Threads)
	case ListHandles:
		t.handles(l.Handles)
	case ListMemory:
		t.memory(l.Regions, l.Ranges)
	case ListStreams:
		t.streams(l.Streams)
	}
	t.errors(l.Errors)
	return t.flush()
}

// table lines up columns. Cells are separated by tabs, which clean has escaped
// wherever a dump's strings hold them.
func (t *text) table(header string, rows func(add func(format string, args ...any))) {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, header)
	rows(func(format string, args ...any) { fmt.Fprintf(tw, format+"\n", args...) })
	tw.Flush()
	for line := range bytes.Lines(b.Bytes()) {
		t.line("", "%s", bytes.TrimRight(line, " \n")) // empty last cells leave blanks
	}
}

func (t *text) info(l *List, inc *triage.Incident) {
	t.heading(&triage.Incident{Inputs: l.Inputs, System: inc.System, Process: inc.Process})
	if !l.Captured.IsZero() {
		t.line("", "Written: %s", l.Captured.UTC().Format(time.RFC3339))
	}
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
	t.crash(inc)
	t.bugCheck(inc)
}

// imageStates says in a word what became of a module's image.
var imageStates = map[symbols.ImageState]string{
	symbols.ImageFromMemory: "dump", symbols.ImageFromFile: "file", symbols.ImageMissing: "missing",
}

func (t *text) modules(modules []*triage.Module, unloaded []dump.Module) {
	t.table("start\tend\tmodule\tversion\ttime stamp\timage\tpath", func(add func(string, ...any)) {
		for _, m := range modules {
			if m == nil || m.Module == nil {
				continue
			}
			stamp := ""
			if m.TimeDateStamp != 0 {
				stamp = fmt.Sprintf("%08X", m.TimeDateStamp)
			}
			add("%s\t%s\t%s\t%s\t%s\t%s\t%s", t.addr(m.Base), t.addr(m.End()), clean(moduleAlias(m.Module)), version(m.Version), stamp, imageStates[m.Image], clean(m.Path))
		}
	})
	if len(unloaded) == 0 {
		return
	}
	t.line("", "")
	t.line("", "Unloaded modules:")
	t.table("start\tend\tmodule", func(add func(string, ...any)) {
		for i := range unloaded {
			add("%s\t%s\t%s", t.addr(unloaded[i].Base), t.addr(unloaded[i].End()), clean(unloaded[i].Name()))
		}
	})
}

func (t *text) threadTable(threads []triage.Thread) {
	t.table("#\tid\tteb\tethread\tstate\tstart\tkernel time\tuser time\tname", func(add func(string, ...any)) {
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
			add("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", i, t.threadID(th.ID), t.known(th.TEB), ethread, state, t.known(th.StartAddress), kernel, user, clean(th.Name))
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
	t.table("handle\taccess\ttype\tname", func(add func(string, ...any)) {
		for i := range handles {
			h := &handles[i]
			add("%x\t%08x\t%s\t%s", h.Value, h.Access, clean(h.Type), clean(h.Name))
		}
	})
	t.line("", "%d handles", len(handles))
}

func (t *text) memory(regions []dump.Region, ranges []dump.Range) {
	if len(regions) > 0 {
		t.table("base\tsize\tstate\ttype\tprotection", func(add func(string, ...any)) {
			for i := range regions {
				r := &regions[i]
				protect := ""
				if r.Protect != 0 {
					protect = protection(r.Protect)
				}
				add("%s\t%x\t%s\t%s\t%s", t.addr(r.Base), r.Size, memoryState(r.State), memoryType(r.Type), protect)
			}
		})
		t.line("", "")
	}
	var total uint64
	t.table("in the dump\tsize\tfile offset", func(add func(string, ...any)) {
		for _, r := range ranges {
			total += r.Size
			add("%s\t%x\t%x", t.addr(r.VA), r.Size, r.Off)
		}
	})
	t.line("", "%d ranges, %d bytes of memory", len(ranges), total)
}

func (t *text) streams(streams []Stream) {
	t.table("type\tname\toffset\tsize\tnote", func(add func(string, ...any)) {
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
			add("%s\t%s\t%s\t%s\t%s", kind, clean(s.Name), offset, size, clean(s.Note))
		}
	})
}
