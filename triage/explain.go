package triage

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// ExplainFrame names the frame to explain: by its number in the thread's whole
// stack as it is printed, kernel half first, or within the kernel half or the
// handler's frames alone.
type ExplainFrame struct {
	Frame   int
	Kernel  bool
	Handler bool
}

// Explanation is how one frame was found, or why there is none behind the last.
type Explanation struct {
	Thread int    // index in Incident.Threads
	Half   string // "kernel", "wow64", "user" or "handler"
	Number int    // of the frame in the whole stack
	Index  int    // of the frame in Half
	Arch   dump.Arch
	From   *Frame // the frame it was found from; nil when it is the half's first
	Frame  *Frame // nil when the half ends before it
	Stop   unwind.Stop
	Notes  []unwind.Note
}

// walkedBy is how a half was walked, so that it can be walked again.
type walkedBy struct {
	walker  *walker
	options unwind.Options
}

// explain explains the frame that the options ask for.
func (a *analysis) explain() {
	want := a.opt.Explain
	if want == nil || len(a.inc.Threads) == 0 {
		return
	}
	t := &a.inc.Threads[0]
	half, name, first := halfOf(t, want)
	if half == nil {
		a.inc.Errors = append(a.inc.Errors, dump.Errorf(dump.OutOfRange, "threads", "thread %d (%#x) has no frame %d: %s", t.ID, t.ID, want.Frame, frameCounts(t, want)))
		return
	}
	i := want.Frame - first
	e := &Explanation{Half: name, Number: want.Frame, Index: i, Arch: half.Registers.Arch, Stop: half.Stop}
	if i < len(half.Frames) {
		e.Frame = &half.Frames[i]
	}
	if i > 0 {
		e.From = &half.Frames[i-1]
		by := half.walkedBy
		_, e.Notes = by.walker.unwinder.Explain(half.Registers, by.options, i)
	}
	a.inc.Explanation = e
}

// halfOf returns the half that holds a frame and the number of its first frame.
// The number behind the last frame of the stack asks how the stack ends.
func halfOf(t *Thread, want *ExplainFrame) (half *Half, name string, first int) {
	type named struct {
		half *Half
		name string
	}
	halves := []named{{t.Kernel, "kernel"}, {t.Wow64, "wow64"}, {t.User, "user"}}
	switch {
	case want.Kernel:
		halves = halves[:1]
	case want.Handler:
		halves = []named{{t.Handler, "handler"}}
	}
	for _, h := range halves {
		if h.half == nil {
			continue
		}
		if want.Frame < first+len(h.half.Frames) {
			return h.half, h.name, first
		}
		half, name = h.half, h.name
		first += len(h.half.Frames)
	}
	if half == nil || want.Frame != first {
		return nil, "", 0
	}
	return half, name, first - len(half.Frames)
}

func frameCounts(t *Thread, want *ExplainFrame) string {
	n := 0
	if want.Handler {
		if t.Handler == nil {
			return "it has no frames of an exception's handler"
		}
		return fmt.Sprintf("the handler's frames are 0 to %d", len(t.Handler.Frames)-1)
	}
	for _, h := range []*Half{t.Kernel, t.Wow64, t.User} {
		if h != nil {
			n += len(h.Frames)
		}
	}
	if n == 0 {
		return "it has no stack"
	}
	return fmt.Sprintf("its frames are 0 to %d", n-1)
}
