package report

import (
	"fmt"
	"io"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
)

// ScrubJSON is what became of a dump that was scrubbed.
type ScrubJSON struct {
	Output       string         `json:"output"`
	Size         int64          `json:"size"`
	KernelOutput string         `json:"kernel_output,omitempty" jsonschema_description:"of a pair, the kernel dump that was written"`
	KernelSize   int64          `json:"kernel_size,omitempty"`
	Threads      int            `json:"threads"`
	Frames       int            `json:"frames"`
	MemoryBytes  int64          `json:"memory_bytes" jsonschema_description:"of memory, and of a kernel dump of structures, in what was written"`
	Loosened     []LoosenedJSON `json:"loosened,omitempty" jsonschema_description:"threads that needed more of their stacks than return addresses and pointers into the stack"`
	NotScrubbed  string         `json:"not_scrubbed,omitempty" jsonschema_description:"the other half of the pair, which was not asked for"`
	Differences  []string       `json:"differences,omitempty" jsonschema_description:"what does not come out as it was"`
}

// LoosenedJSON is a thread of whose stack more was kept.
type LoosenedJSON struct {
	ThreadID  uint32  `json:"thread_id"`
	PID       uint32  `json:"pid,omitempty" jsonschema_description:"of the thread's process, in kernel dumps"`
	Processor *uint32 `json:"processor,omitempty" jsonschema_description:"number of the processor whose own stack it was"`
	Kept      string  `json:"kept"`
}

// Scrub is a scrubbed dump, to be told of.
type Scrub struct {
	Inputs []triage.Input // the user dump first
	System *dump.System
	PID    *uint32
	ScrubJSON
}

// ScrubOutputJSON writes it as one JSON object on one line.
func ScrubOutputJSON(w io.Writer, s *Scrub, opt Options) error {
	opt.hide(s)
	d := header(opt.Tool, s.Inputs, nil)
	d.Status, d.PID, d.SystemInfo, d.Scrub = StatusOK, s.PID, systemJSON(s.System), &s.ScrubJSON
	return newStream(w, opt).document(&d, nil)
}

// ScrubText writes it for people.
func ScrubText(w io.Writer, s *Scrub, opt Options) error {
	opt.hide(s)
	t := newText(w, opt, s.System.Arch)
	t.pid = s.PID
	for i := range s.Inputs {
		out, size := s.Output, s.Size
		if i > 0 {
			out, size = s.KernelOutput, s.KernelSize
		}
		t.line("", "Scrubbed: %s, %s -> %s, %s", clean(scrubbedName(&s.Inputs[i])), byteCount(s.Inputs[i].Size), clean(dump.BaseName(out)), byteCount(size))
	}
	t.line("", "Kept:     %s with %s, %s of memory", plural(s.Threads, "thread"), plural(s.Frames, "frame"), byteCount(s.MemoryBytes))
	if s.NotScrubbed != "" {
		t.line(sgrYellow, "Left:     %s, the other half of the pair, is not scrubbed", clean(s.NotScrubbed))
	}
	for _, l := range s.Loosened {
		t.line(sgrYellow, "Loosened: of the stack of %s %s", t.loosened(&l), clean(l.Kept))
	}
	for _, d := range s.Differences {
		t.line(sgrRed, "Differs:  %s", clean(d))
	}
	if len(s.Differences) == 0 {
		t.line("", "Checked:  every frame comes out of the new dump as of the old one")
	}
	return t.flush()
}

// scrubbedName is a dump's file name, of one in an archive with its own.
func scrubbedName(in *triage.Input) string {
	name := dump.BaseName(in.Path)
	if in.Member != "" {
		name += " (" + dump.BaseName(in.Member) + ")"
	}
	return name
}

// loosened names whose stack it was.
func (t *text) loosened(l *LoosenedJSON) string {
	switch {
	case l.Processor != nil:
		return fmt.Sprintf("processor %d", *l.Processor)
	case l.PID != 0:
		return fmt.Sprintf("thread %x.%x", l.PID, l.ThreadID)
	}
	return "thread " + t.threadID(l.ThreadID)
}

// byteCount is a number of bytes in groups of three digits.
func byteCount(n int64) string {
	s := fmt.Sprint(n)
	var groups []string
	for len(s) > 3 {
		groups = append([]string{s[len(s)-3:]}, groups...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, groups...), ",") + " bytes"
}
