package hang

import (
	"slices"
	"strings"

	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

const (
	maxMatched = 48  // frames from the innermost that can name a wait
	maxScanned = 512 // frames of a half that are looked at for roles and holds
)

// match is a frame that a [wait] rule matches.
type match struct {
	frame int
	rule  *rules.Rule
	waitRule
}

// classify names what one thread waits for by its two halves. Of the kernel half
// it needs no more than what the user half leaves open.
func (a *analysis) classify(t *triage.Thread) Wait {
	w := Wait{Frame: -1, Caller: -1}
	if t.User != nil {
		a.classifyHalf(&w, t.User, false)
	}
	if t.Kernel != nil && (w.Class == ClassUnknown || w.Class == ClassRunning || w.Class == ClassSystemCall) {
		k := Wait{Frame: -1}
		a.classifyHalf(&k, t.Kernel, true)
		if k.Class != ClassUnknown && k.Class != ClassRunning {
			w.Class, w.Frame, w.Rule, w.Kernel, w.matches, w.Confidence = k.Class, k.Frame, k.Rule, true, nil, k.Confidence
			if w.Caller < 0 {
				w.Caller = k.Caller
			}
		}
	}
	// A thread with a kernel half that no interrupt made is in a system call,
	// whatever its user half looks like without names.
	if w.Class == ClassRunning && t.Kernel != nil && len(t.Kernel.Frames) > 0 && t.KernelInfo != nil && !t.KernelInfo.Interrupted {
		w.Class = ClassSystemCall
	}
	a.marks(&w, t)
	return w
}

func (a *analysis) classifyHalf(w *Wait, h *triage.Half, kernel bool) {
	w.matches, w.Caller = a.waitFrames(h)
	if len(w.matches) == 0 {
		w.Class, w.Frame = plain(h, kernel)
		w.Confidence = Medium
		return
	}
	best := w.matches[0]
	for _, m := range w.matches[1:] {
		if m.tops(best.class) {
			best = m
		}
	}
	w.Class, w.Frame, w.Rule, w.Kernel, w.Confidence = best.class, best.frame, best.rule.String(), kernel, High
	if guessed(h.Frames[:best.frame+1]) {
		w.Confidence = Low
	}
}

// tops reports whether a function says more than one inside it that it called.
func (m *match) tops(inner Class) bool {
	if m.over != nil {
		return slices.Contains(m.over, inner)
	}
	return !inner.lock() && inner != ClassTask || m.class.lock()
}

// waitFrames lists the frames that wait rules match, innermost first, as far as
// the stack is plumbing, and the first frame behind that, -1 when there is none.
func (a *analysis) waitFrames(h *triage.Half) (out []match, caller int) {
	for i := range h.Frames[:min(len(h.Frames), maxMatched)] {
		f := &h.Frames[i]
		if f.Capture || f.Proof == triage.Refuted {
			continue
		}
		hits := a.hits(f)
		if r := hits.wait; r != nil && (len(out) > 0 || a.rules.params[r].over == nil) {
			out = append(out, match{i, r, a.rules.params[r]})
		} else if hits.plumbing == nil && !a.ofRuntime(f) {
			return out, i
		}
	}
	return out, -1
}

// ofRuntime reports whether a frame is in the module that holds the .NET runtime: of a
// program in a single file that is the program's own image, whose code is the runtime's.
func (a *analysis) ofRuntime(f *triage.Frame) bool {
	rt := a.inc.Runtime
	return rt != nil && rt.Host != "" && f.Managed == nil && f.Module != nil && rules.Module(f.ModuleName()) == rules.Module(rt.Host)
}

// plain classes a stack that no wait rule matches by its first frame: at a system
// call, or running.
func plain(h *triage.Half, kernel bool) (Class, int) {
	first := slices.IndexFunc(h.Frames, func(f triage.Frame) bool { return !f.Capture })
	if first < 0 || kernel {
		return ClassUnknown, -1
	}
	module, function := nameOf(&h.Frames[first])
	switch {
	case module == "ntdll" && strings.HasPrefix(function, "KiFastSystemCall"), module == "wow64cpu":
		return ClassSystemCall, first
	case (module == "ntdll" || module == "win32u" || module == "user32" || module == "gdi32") && systemCall(function):
		return ClassSystemCall, first
	case h.Frames[first].Name.Function == "" && h.Frames[first].Module != nil && (module == "ntdll" || module == "win32u"):
		return ClassUnknown, -1 // a stub without a name, or not
	}
	return ClassRunning, first
}

// systemCall reports whether a function's name is that of a system call's stub.
func systemCall(function string) bool {
	return len(function) > 2 && strings.HasPrefix(function, "Nt") && function[2] >= 'A' && function[2] <= 'Z'
}

// ruleHits are the rules that match a frame, each nil when none does.
type ruleHits struct{ wait, plumbing, role, hold *rules.Rule }

// hits finds them, once for each name: a process has more frames than functions,
// and users may have many rules.
func (a *analysis) hits(f *triage.Frame) *ruleHits {
	module, function := nameOf(f)
	k := [2]string{module, function}
	h := a.found[k]
	if h == nil {
		r := a.rules
		h = &ruleHits{r.wait.Find(module, function), r.plumbing.Find(module, function), r.role.Find(module, function), r.hold.Find(module, function)}
		a.found[k] = h
	}
	return h
}

// nameOf is a frame's module and function as rules compare them: system calls
// have two names, of which rules use the one with Nt.
func nameOf(f *triage.Frame) (module, function string) {
	module = rules.Module(f.ModuleName())
	function = f.Name.Function
	if rest, ok := strings.CutPrefix(function, "Zw"); ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
		function = "Nt" + rest
	}
	return module, function
}

// guessed reports whether any frame was found by a scan.
func guessed(frames []triage.Frame) bool {
	return slices.ContainsFunc(frames, func(f triage.Frame) bool {
		return f.Trust == unwind.TrustScan || f.Trust == unwind.TrustCFIScan
	})
}

// marks notes a thread's roles and what its frames show it to hold.
func (a *analysis) marks(w *Wait, t *triage.Thread) {
	if t.User == nil {
		return
	}
	for i := range t.User.Frames[:min(len(t.User.Frames), maxScanned)] {
		f := &t.User.Frames[i]
		if f.Trust == unwind.TrustScan || f.Proof == triage.Unproven || f.Proof == triage.Refuted {
			continue
		}
		hits := a.hits(f)
		if r := hits.role; r != nil {
			w.Roles = addNew(w.Roles, r.Attrs["role"])
		}
		// A thread that waits for what the frame would give it has it not yet.
		if r := hits.hold; r != nil && (r.Attrs["calls"] == "" || calledOut(t.User.Frames, i)) && (i > w.Frame || w.Kernel || Class(r.Attrs["lock"]) != w.Class) {
			w.Holds = addNew(w.Holds, Kind(r.Attrs["lock"]))
		}
	}
}

// calledOut reports whether a frame's function has called code outside its module, as
// the loader calls a DLL's entry point.
func calledOut(frames []triage.Frame, i int) bool {
	module := frames[i].ModuleName()
	return slices.ContainsFunc(frames[:i], func(f triage.Frame) bool {
		return f.Certain() && f.Module != nil && f.ModuleName() != module
	})
}

func addNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
