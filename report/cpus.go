package report

import (
	"fmt"
	"io"

	"dumptriage/triage"
)

// CPUsText writes what the processors of a kernel dump were running, for people.
func CPUsText(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	shown := 0
	for i := range inc.CPUs {
		c := &inc.CPUs[i]
		if shown++; shown > 1 {
			t.line("", "")
		}
		t.line(sgrBold, "%s", cpuText(inc, c))
		switch {
		case c.Kernel == nil && c.User == nil:
			t.line(sgrYellow, "   its registers are not in the dump (a live dump has none: the processors went on)")
		case c.User != nil:
			t.cpuHalves(&inc.Threads[c.Thread])
		default:
			t.half(c.Kernel, halfOptions{})
		}
	}
	if len(inc.CPUs) == 0 {
		t.line("", "The dump holds no processor's state.")
	}
	t.missing(inc.Missing)
	t.errors(inc.Errors)
	return t.flush()
}

// cpuHalves writes the stack of a thread that ran user code's system call. What it did in
// the kernel may not be in the dump, and the user half known all the same, by the trap
// frame.
func (t *text) cpuHalves(th *triage.Thread) {
	first := 0
	if th.Kernel != nil {
		t.kernelHalf(th)
		first = len(th.Kernel.Frames)
	} else {
		t.line(sgrYellow, "   no kernel half: the processor's registers are not in the dump")
	}
	first = t.wow64Half(th, first)
	t.half(th.User, halfOptions{first: first, noHeader: first > 0})
}

// CPUsJSON writes the same as one JSON object on one line.
func CPUsJSON(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	h := hexFor(inc.System.Arch)
	d := header(opt.Tool, inc.Inputs, inc.Errors)
	d.Status, _ = Status(inc)
	d.SystemInfo = systemJSON(&inc.System)
	return newStream(w, opt).document(&d, map[string]func(*stream){"cpus": func(s *stream) { s.cpus(inc, h, opt) }})
}

func cpuJSON(inc *triage.Incident, c *triage.CPU, h hexer, limit int) CPUJSON {
	j := CPUJSON{CPU: c.Number, ThreadID: knownCount(c.ThreadID), Idle: c.Idle, PRCB: h.known(c.PRCB), ETHREAD: h.known(c.ETHREAD)}
	if c.Switched != nil {
		j.Stack = c.Switched.Kind
	}
	if p, name := runningProcess(inc, c); p != 0 {
		j.ProcessID, j.ProcessName = &p, name
	}
	if c.Kernel != nil {
		j.KernelFrames, j.KernelStop = framesJSON(c.Kernel, h, limit), stopJSON(c.Kernel)
	}
	if c.User != nil {
		j.Frames = framesJSON(c.User, h, limit)
	}
	return j
}

// runningProcess is the process of the thread that a processor was running, 0
// when that is not known.
func runningProcess(inc *triage.Incident, c *triage.CPU) (id uint32, name string) {
	if c.Idle {
		return 0, ""
	}
	if c.Thread < 0 {
		return c.PID, c.ProcessName
	}
	th := &inc.Threads[c.Thread]
	if p := inc.ProcessOf(th); p != nil {
		return p.PID, p.Name
	}
	if th.KernelInfo != nil {
		return th.KernelInfo.PID, ""
	}
	return 0, ""
}

// cpuText is a processor's header: what it was running.
func cpuText(inc *triage.Incident, c *triage.CPU) string {
	s := fmt.Sprintf("Processor %d", c.Number)
	switch p, name := runningProcess(inc, c); {
	case c.Idle:
		s += "  idle"
	case p != 0 && c.ThreadID != 0:
		s += fmt.Sprintf("  thread %x.%x", p, c.ThreadID)
		if name != "" {
			s += " " + clean(name)
		}
	case c.ThreadID != 0:
		s += fmt.Sprintf("  thread %x", c.ThreadID)
	}
	if c.Switched != nil {
		s += map[string]string{"dpc": ", on its DPC stack", "interrupt": ", on its interrupt stack", "unknown": ", on a stack of its own"}[c.Switched.Kind]
	}
	return s
}
