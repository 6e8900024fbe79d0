// Package crash says what a crash was: its class, the part of the program to
// blame for it, and what speaks for and against that.
//
// It reads a triage.Incident and the memory that its dump holds, and no file.
// Everything in there comes from a process that had gone wrong, so every walk
// over it is capped and every address in it is a claim. What the evidence does
// not show is left out.
//
// Sources: the EXCEPTION_RECORD and MEMORY_BASIC_INFORMATION pages of the
// Windows API documentation, winnt.h; for C++ exceptions the layouts that
// compilers write and that ehdata.h and the Itanium C++ ABI document.
package crash

import (
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// Verdict is what a crash was.
type Verdict struct {
	Class Class
	// Rule is the rule about frames that gave the class, "" when the exception
	// alone did, and RuleFrame the index of the frame that it matched.
	Rule      string
	RuleFrame int
	// Access is what was tried of a class that isAccess: read, write or execute;
	// "" when not known.
	Access Access
	// Address is where. HasAddress is false when the exception does not tell and
	// the instruction does not either.
	Address    uint64
	HasAddress bool
	Constant   bool     // Address stands in the instruction: such crashes are deliberate
	Pattern    *Pattern // that Address was computed from, nil none
	Target     *Target  // what lies at Address, nil without an address

	SubCode    uint64 // of a fast fail
	HasSubCode bool
	Status     uint32 // of an in-page error
	HasStatus  bool
	Detail     string // what the exception itself names: a module, a procedure

	Thrown    *Thrown      // the object of a language's exception, nil unknown
	Heap      *HeapFailure // what the heap found, nil unknown
	Earlier   []Earlier    // what the thread was raising or handling, innermost first
	Recursion *Recursion   // of a stack overflow, nil when no frames repeat
	Largest   *Largest     // of a stack overflow without recursion

	Registers       []Register // what the registers of the fault point to
	BitFlips        []BitFlip  // most likely first
	Inconsistencies []Inconsistency

	Blame *Blame // nil when there is no frame to blame
	Next  []Next // what would tell more

	Uptime time.Duration // of the process, 0 unknown
}

// Access is what an instruction tried to do.
type Access string

// The accesses.
const (
	Read    Access = "read"
	Write   Access = "write"
	Execute Access = "execute"
)

// NoFault reports whether nothing had gone wrong: a debugger broke in, or the
// program asked for a dump of itself.
func (v *Verdict) NoFault() bool { return v.Class == DebuggerBreak || v.Class == DumpRequested }

// judge is the state of one verdict.
type judge struct {
	inc    *triage.Incident
	crash  *triage.Crash
	thread *triage.Thread // nil when it is not in the dump
	frames []triage.Frame // of its user half
	mem    *triage.View
	arch   dump.Arch // of the code that faulted
	rules  *Rules
	v      *Verdict
}

// Of judges the exception of an incident; nil when there is none. A nil r means
// the built-in rules.
func Of(inc *triage.Incident, r *Rules) *Verdict {
	if inc.Crash == nil {
		return nil
	}
	if r == nil {
		r = NewRules(nil)
	}
	j := newJudge(inc, r)
	j.classify()
	j.recursion()
	j.thrown()
	j.earlier()
	j.registers()
	j.inconsistencies()
	j.bitFlips()
	j.blame()
	j.next()
	if !inc.Captured.IsZero() && !inc.Process.Created.IsZero() {
		j.v.Uptime = max(0, inc.Captured.Sub(inc.Process.Created))
	}
	return j.v
}

func newJudge(inc *triage.Incident, r *Rules) *judge {
	j := &judge{inc: inc, crash: inc.Crash, mem: inc.UserSpace, rules: r, v: &Verdict{}}
	if j.mem == nil {
		j.mem = &triage.View{}
	}
	j.arch = inc.Crash.Context.Arch
	if j.arch == dump.ArchUnknown {
		j.arch = inc.System.Arch
	}
	if i := inc.Crashing; i >= 0 && i < len(inc.Threads) && inc.Threads[i].ID == inc.Crash.ThreadID {
		j.thread = &inc.Threads[i]
		if j.thread.User != nil {
			j.frames = j.thread.User.Frames
		}
	}
	return j
}

// classify finds the class: by the exception, then by the frames on top.
func (j *judge) classify() {
	c, v := j.crash, j.v
	v.Class = classOf(c.Code)
	switch c.Code {
	case codeAccessViolation, codeInPageError, codeGuardPage:
		j.access()
	case codeMisaligned:
		if j.misaligned() {
			v.Target = j.target(v.Address)
		}
	case codeFailFast:
		if len(c.Parameters) > 0 {
			v.SubCode, v.HasSubCode = c.Parameters[0], true
			if class, ok := classOfFailFast[v.SubCode]; ok {
				v.Class = class
			}
		}
	case codeBreakpad:
		if c.Assertion != "" {
			v.Class = InvalidParameter
		}
	case codeHeapCorruption:
		j.heapFailure()
	case codeDelayModule, codeDelayProcedure:
		v.Detail = j.delayLoaded()
	}
	if c.Assertion != "" && v.Class == StatusRaised {
		v.Class = Assertion
	}
	j.classifyByFrames()
}

// certain reports whether a frame was found by more than a guess.
func certain(f *triage.Frame) bool { return f.Certain() }
