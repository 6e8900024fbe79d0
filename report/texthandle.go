package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage/hang"
)

// handleID names the thread or the process that a handle is of, "" of another.
func handleID(s *dump.ObjectState) string {
	switch {
	case s == nil:
		return ""
	case s.Thread != nil:
		return fmt.Sprintf("%x.%x", s.Thread.Process, s.Thread.Thread)
	case s.ProcessID != nil:
		return fmt.Sprintf("%d (%#x)", *s.ProcessID, *s.ProcessID)
	}
	return ""
}

// namesThread reports whether an object's words name the thread that it is.
func namesThread(o *hang.Object) bool {
	return len(o.Handles) == 1 && o.Handles[0].Listed != nil && o.Handles[0].Listed.State != nil && o.Handles[0].Listed.State.Thread != nil
}

// handleState says how the object of a handle stands, as far as the dump tells.
func handleState(s *dump.ObjectState) string {
	if s == nil {
		return ""
	}
	var parts []string
	if s.Exited {
		parts = append(parts, "ended")
	}
	switch m := s.Mutex; {
	case m != nil && m.Abandoned:
		parts = append(parts, "abandoned")
	case m != nil && m.Count == 1:
		parts = append(parts, "free")
	}
	if e := s.Event; e != nil {
		parts = append(parts, map[bool]string{true: "manual reset", false: "auto reset"}[e.Manual]+map[bool]string{true: ", set", false: ", not set"}[e.Set])
	}
	if x := s.Semaphore; x != nil {
		parts = append(parts, fmt.Sprintf("%d of %d left", x.Count, x.Max))
	}
	return strings.Join(parts, ", ")
}
