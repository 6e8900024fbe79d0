package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/report/redact"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// SGR sequences of coloured text.
const (
	sgrReset  = "\x1b[0m"
	sgrBold   = "\x1b[1m"
	sgrDim    = "\x1b[2m"
	sgrRed    = "\x1b[31m"
	sgrYellow = "\x1b[33m"
	sgrCyan   = "\x1b[36m"
)

// text writes lines. The first error sticks.
type text struct {
	w     *bufio.Writer
	color bool
	limit int // frames per half, 0 all
	arch  dump.Arch
	pid   *uint32
	err   error

	redact *redact.Redactor
}

func newText(w io.Writer, opt Options, arch dump.Arch) *text {
	return &text{w: bufio.NewWriterSize(w, writeSize), color: opt.Color, limit: opt.Frames, arch: arch, redact: opt.Redact}
}

// line writes one line in a colour ("" for none).
func (t *text) line(sgr, format string, args ...any) {
	if t.err != nil {
		return
	}
	if !t.color {
		sgr = ""
	}
	t.w.WriteString(sgr)
	t.content(format, args...)
	if sgr != "" {
		t.w.WriteString(sgrReset)
	}
	_, t.err = t.w.WriteString("\n")
}

// content writes a line's text, the last place to take out what must not be told.
func (t *text) content(format string, args ...any) {
	if t.redact == nil {
		fmt.Fprintf(t.w, format, args...)
		return
	}
	t.w.WriteString(t.redact.Text(fmt.Sprintf(format, args...)))
}

func (t *text) flush() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// addr formats an address as the debugger does: 00007ffe`61405593, or eight
// digits on a 32-bit machine.
func (t *text) addr(v uint64) string { return address(v, t.arch) }

func address(v uint64, arch dump.Arch) string {
	const digits = "0123456789abcdef"
	var b [17]byte
	for i, at := range [...]int{16, 15, 14, 13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1, 0} {
		b[at] = digits[v>>(4*i)&0xf]
	}
	if arch.PointerSize() == 4 && v>>32 == 0 {
		return string(b[9:])
	}
	b[8] = '`'
	return string(b[:])
}

// Text writes an incident for people: what happened, every thread, and what was
// missing. The error is that of w.
func Text(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	t.heading(inc)
	t.crash(inc)
	t.bugCheck(inc, bugVerdict(opt.Verdict))
	if v := bugVerdict(opt.Verdict); v != nil && kernelSays(inc) && bugBlameText(&v.Blame) != "" {
		t.bugBlame(inc, v, opt)
	}
	if opt.Unique {
		t.groups(inc)
	} else {
		var in *dump.Process
		for i := range inc.Threads {
			t.line("", "")
			if p := inc.ProcessOf(&inc.Threads[i]); p != nil && p != in && len(inc.Processes) > 1 {
				in = p
				t.line(sgrBold, "Process %s, pid %d, EPROCESS %s", clean(p.Name), p.PID, t.addr(p.EPROCESS))
			}
			t.thread(inc, i)
		}
	}
	t.cpus(inc)
	t.missing(inc.Missing)
	t.errors(inc.Errors)
	return t.flush()
}

func (t *text) heading(inc *triage.Incident) {
	t.inputs(inc.Inputs)
	t.system(&inc.System)
	t.process(&inc.Process, t.pid)
	t.emulation(inc.Emulation)
	t.runtime(inc.Runtime)
	if !inc.Captured.IsZero() {
		t.line("", "Written: %s", inc.Captured.UTC().Format(time.RFC3339))
	}
	if p := inc.Pairing; p != nil {
		id := ""
		if p.PID != 0 {
			id = fmt.Sprintf("pid %d", p.PID)
		}
		names := clean(dump.BaseName(p.User)) + " with " + clean(dump.BaseName(p.Kernel))
		if p.User == p.Kernel {
			names = "both dumps in " + clean(dump.BaseName(p.User))
		}
		t.line("", "Pair:    %s (%s)", names, joinWith(", ", clean(p.How), id))
		for _, w := range p.Warnings {
			t.line(sgrYellow, "         warning: %s", clean(w))
		}
	}
}

// Of a comment so much is shown; JSON has it whole.
const (
	commentLines = 8
	commentWidth = 200 // characters
)

// comment writes what the writer of a dump put in, line by line.
func (t *text) comment(s string) {
	label := "Comment:"
	for i, line := range strings.SplitN(s, "\n", commentLines+1) {
		if i == commentLines {
			t.line("", "         ...")
			return
		}
		line = strings.TrimRight(line, "\r")
		n := 0
		for at := range line {
			if n++; n > commentWidth {
				line = line[:at] + "..."
				break
			}
		}
		t.line("", "%s", strings.TrimRight(label+" "+clean(line), " "))
		label = "        "
	}
}

func (t *text) inputs(in []triage.Input) {
	for _, i := range in {
		what := joinWith(", ", string(i.Format), clean(i.Kind))
		if what != "" {
			what = ": " + what
		}
		name := clean(i.Path)
		if i.Member != "" {
			name += " (" + clean(i.Member) + ")"
		}
		t.line("", "Dump:    %s%s", name, what)
		for _, c := range i.Comments {
			t.comment(c)
		}
	}
}

func (t *text) system(s *dump.System) {
	if s.Arch == dump.ArchUnknown {
		return
	}
	v := s.NTVersion
	if v == "" {
		v = osVersion(s)
	}
	cpus := ""
	if s.CPUCount != 0 {
		cpus = plural(int(s.CPUCount), "processor")
	}
	t.line("", "System:  %s", joinWith(", ", strings.TrimSpace("Windows NT "+clean(v)), s.Arch.String(), cpus))
}

func (t *text) process(p *dump.Process, pid *uint32) {
	id := ""
	if pid != nil {
		id = fmt.Sprintf("pid %d (0x%x)", *pid, *pid)
	}
	if s := joinWith(", ", clean(p.Name), id); s != "" {
		t.line("", "Process: %s", s)
	}
	if p.CommandLine != "" {
		t.line("", "Command: %s", clean(p.CommandLine))
	}
}

func joinWith(sep string, parts ...string) string {
	var keep []string
	for _, p := range parts {
		if p != "" {
			keep = append(keep, p)
		}
	}
	return strings.Join(keep, sep)
}

func (t *text) crash(inc *triage.Incident) {
	c := inc.Crash
	if c == nil {
		return
	}
	at := t.arch.Narrow(c.Address)
	t.line(sgrBold+sgrRed, "Crash:   %s (%s) at %s%s", CrashType(&c.Exception), hex32(c.Code)[2:], t.addr(at), inModule(c.Module, at))
	if a := CrashAddress(&c.Exception, t.arch); a != at {
		t.line("", "         accessed address %s", t.addr(a))
	}
	if a := c.Adjusted; a != nil {
		if a.Kind == "null-pointer" {
			t.line("", "         null pointer%s", nonZero(", offset %#x", a.Offset))
		} else {
			t.line("", "         really %s (%s)", t.addr(a.Address), clean(a.Kind))
		}
	}
	if c.Instruction != nil {
		to := ""
		if c.Instruction.HasTarget {
			to = ", to " + t.addr(c.Instruction.Target)
		}
		t.line("", "         instruction %s%s", clean(c.Instruction.Text), to)
	}
	if c.Assertion != "" {
		t.line("", "         assertion: %s", clean(c.Assertion))
	}
	t.parameters(c)
	t.line("", "         thread %s", t.threadID(c.ThreadID))
}

// nonZero is a number in words, nothing of 0.
func nonZero(form string, n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(form, n)
}

func inModule(m *triage.Module, addr uint64) string {
	if m == nil || m.Module == nil {
		return ""
	}
	return fmt.Sprintf(" (%s+%#x)", clean(moduleAlias(m.Module)), addr-m.Base)
}

func confidence(c string) string {
	if c == "" {
		return ""
	}
	return "confidence " + c
}

func (t *text) groups(inc *triage.Incident) {
	groups := inc.Groups()
	for _, g := range groups {
		t.line("", "")
		t.line(sgrBold, "%s: %s", plural(len(g.Threads), "thread"), t.memberList(inc, g.Threads))
		t.thread(inc, g.Threads[0])
	}
	t.line("", "")
	t.line("", "Total threads: %d, unique stacks: %d", len(inc.Threads), len(groups))
}

func (t *text) memberList(inc *triage.Incident, members []int) string {
	var b strings.Builder
	for i, m := range members {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(t.idOf(&inc.Threads[m]))
	}
	return b.String()
}

func (t *text) cpus(inc *triage.Incident) {
	for i := range inc.CPUs {
		c := &inc.CPUs[i]
		if c.Kernel == nil || len(c.Kernel.Frames) == 0 || inc.OneProcess && c.Thread < 0 {
			continue
		}
		t.line("", "")
		if shownAbove(inc, c) {
			t.line(sgrBold, "%s, as above", cpuText(inc, c))
			continue
		}
		t.line(sgrBold, "%s", cpuText(inc, c))
		t.half(c.Kernel, halfOptions{})
	}
}

// shownAbove reports whether a processor's stack is that of a thread which is
// printed with its own header.
func shownAbove(inc *triage.Incident, c *triage.CPU) bool {
	same := func(a, b triage.Frame) bool { return a.IP == b.IP && a.SP == b.SP }
	return slices.ContainsFunc(inc.Threads, func(th triage.Thread) bool {
		return th.ID == c.ThreadID && th.Kernel != nil && slices.EqualFunc(th.Kernel.Frames, c.Kernel.Frames, same)
	})
}

// missing names the images that were needed and not found, and the places where
// they were looked for: once when they are the same for all.
func (t *text) missing(missing []symbols.Missing) {
	missing = slices.DeleteFunc(slices.Clone(missing), func(m symbols.Missing) bool { return m.Module == nil })
	if len(missing) == 0 {
		return
	}
	t.line("", "")
	t.line(sgrYellow, "Images not found (their frames have no names, and unwinding through them is less certain).")
	t.line(sgrYellow, "Name the folders that hold them with --images:")
	tried := missing[0].Tried
	same := !slices.ContainsFunc(missing, func(m symbols.Missing) bool { return !slices.Equal(m.Tried, tried) })
	for i := range missing {
		m := &missing[i]
		key := m.Key
		if key == "" {
			key = codeID(m.Module)
		}
		t.line("", "  %s", joinWith("  ", clean(m.Module.Name()), clean(key)))
		if !same && len(m.Tried) > 0 {
			t.line("", "    tried: %s", clean(strings.Join(m.Tried, "; ")))
		}
		if m.Reason != "" {
			t.line("", "    refused: %s", clean(m.Reason))
		}
	}
	if same && len(tried) > 0 {
		t.line("", "Tried: %s", clean(strings.Join(tried, "; ")))
	}
}

func (t *text) errors(errs []*dump.Error) {
	first := true
	for _, e := range errs {
		if e == nil {
			continue
		}
		if first {
			t.line("", "")
			first = false
		}
		if e.Warning {
			t.line(sgrYellow, "warning: %s", clean(e.Error()))
		} else {
			t.line(sgrRed, "error: %s", clean(e.Error()))
		}
	}
}
