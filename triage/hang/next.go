package hang

import (
	"cmp"
	"slices"

	"dumptriage/symbols"
	"dumptriage/triage"
)

// Next is a thing that would tell more. Package report says it in a sentence.
type Next struct {
	Kind    NextKind
	Modules []*triage.Module // that it is about
}

// NextKind names a next step.
type NextKind string

// The next steps.
const (
	NextImages  NextKind = "images"        // of modules in which threads are whose stacks do not tell what they do
	NextSymbols NextKind = "symbols"       // the function from which the program waits has no symbols
	NextCompare NextKind = "second_dump"   // one dump cannot tell a hang from slow work
	NextMemory  NextKind = "full_memory"   // the dump lacks the memory of the locks
	NextOther   NextKind = "other_process" // the other end of a call is in another process
	NextKernel  NextKind = "kernel_half"   // what the call waits for is in the kernel
	NextAgain   NextKind = "while_hanging" // nothing hangs in this dump
)

// next lists what would tell more, the most useful first.
func (a *analysis) next(v *Verdict) {
	add := func(kind NextKind, mods ...*triage.Module) { v.Next = append(v.Next, Next{kind, mods}) }
	if mods := a.missingImages(); len(mods) > 0 {
		add(NextImages, mods...)
	}
	if m := a.withoutSymbols(v); m != nil {
		add(NextSymbols, m)
	}
	switch v.State {
	case Deadlock, SelfDeadlock, Orphaned, NoThreads:
		return // it is known, or nothing is
	case Idle:
		add(NextAgain)
		return
	case Possible:
		add(NextMemory)
	case Contention:
		if c := v.Contended[0].Class; c == ClassCritical {
			add(NextMemory)
		}
	}
	if v.Subject >= 0 {
		w, t := &v.Waits[v.Subject], &a.inc.Threads[v.Subject]
		switch w.Class {
		case ClassProcess, ClassALPC, ClassRPC, ClassCOM, ClassSendMessage:
			add(NextOther)
		case ClassIO, ClassSystemCall:
			if t.Kernel == nil {
				add(NextKernel)
			}
		}
	}
	// A debugger that broke in stopped what was going on: of the exception's own
	// next steps one is to look at every stack.
	if !a.manyProcesses() && (a.inc.Crash == nil || v.Hangs()) {
		add(NextCompare)
	}
}

// withoutSymbols is the module from which the subject of a hang waits, nil when
// its function has symbols.
func (a *analysis) withoutSymbols(v *Verdict) *triage.Module {
	if v.Subject < 0 || !v.Hangs() {
		return nil
	}
	w, h := &v.Waits[v.Subject], a.inc.Threads[v.Subject].User
	if w.Kernel || h == nil || w.Caller < 0 || w.Caller >= len(h.Frames) {
		return nil
	}
	f := &h.Frames[w.Caller]
	switch f.Name.Source {
	case symbols.SourceNone, symbols.SourcePdata, symbols.SourceExport:
		if f.Module != nil && f.Module.Module != nil {
			return f.Module
		}
	}
	return nil
}

// innerFrames is how far from the innermost frame an image is missed: what a wait
// is called in stands there.
const innerFrames = 4

// missingImages are the modules without images at the inner end of the stacks that
// do not tell, those of most threads first.
func (a *analysis) missingImages() []*triage.Module {
	counts := map[*triage.Module]int{}
	var out []*triage.Module
	for i := range a.waits {
		h := a.inc.Threads[i].User
		if a.waits[i].Class != ClassUnknown || h == nil {
			continue
		}
		for k := range h.Frames[:min(innerFrames, len(h.Frames))] {
			m := h.Frames[k].Module
			if m == nil || m.Module == nil || m.Image != symbols.ImageMissing {
				continue
			}
			if counts[m]++; counts[m] == 1 {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y *triage.Module) int { return cmp.Compare(counts[y], counts[x]) })
	return out
}
