package crash

import (
	"dumptriage/symbols"
	"dumptriage/triage"
)

// Next is a thing that would tell more. Its text is part of the JSON contract;
// package report says it in a sentence.
type Next struct {
	Kind    NextKind
	Modules []*triage.Module // that it is about
}

// NextKind names a next step.
type NextKind string

// The next steps.
const (
	NextImages   NextKind = "images"      // images of modules on the stack were not found
	NextSymbols  NextKind = "symbols"     // the blamed module has no symbols
	NextPageHeap NextKind = "page_heap"   // catch damage where it is done
	NextMemory   NextKind = "full_memory" // the dump lacks the memory that would tell
	NextRegions  NextKind = "memory_list" // the dump lacks the list of memory that would tell
	NextHardware NextKind = "hardware"    // test the machine's memory
	NextDump     NextKind = "other_dump"  // this dump was not written for a crash
)

// next lists what would tell more, the most useful first.
func (j *judge) next() {
	add := func(kind NextKind, mods ...*triage.Module) { j.v.Next = append(j.v.Next, Next{kind, mods}) }
	v := j.v
	if v.NoFault() {
		add(NextDump)
		return
	}
	if missing := j.missingImages(); len(missing) > 0 {
		add(NextImages, missing...)
	}
	if b := v.Blame; b != nil && b.Frame.Module != nil && lacksSymbols(b.Frame) {
		add(NextSymbols, b.Frame.Module)
	}
	switch v.Class {
	case HeapCorruption, UseAfterFree, OutOfBounds, CorruptList:
		add(NextPageHeap)
	case CxxException:
		if v.Thrown == nil || len(v.Thrown.Types) == 0 {
			add(NextMemory)
		}
	}
	if len(j.mem.Regions) == 0 && (v.Class == WildPointer || v.Class == AccessViolation || v.Class == NonCanonical) {
		add(NextRegions)
	}
	if len(v.BitFlips) > 0 && v.BitFlips[0].Confidence >= 0.5 {
		add(NextHardware)
	}
}

// missingImages are the modules on the crashing thread's stack, down to the
// blamed frame and one more, whose images were not found.
func (j *judge) missingImages() []*triage.Module {
	last := len(j.frames) - 1
	if b := j.v.Blame; b != nil {
		last = min(last, b.Index+1)
	}
	return triage.MissingImages(j.frames[:last+1])
}

// lacksName reports whether rules could not know a function by its name.
func lacksName(f *triage.Frame) bool {
	return f.Name.Function == "" || f.Name.Source == symbols.SourcePdata
}

func lacksSymbols(f *triage.Frame) bool {
	return lacksName(f) || f.Name.Source == symbols.SourceExport
}
