package signature

import (
	"cmp"
	"slices"

	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

// Fate is what became of a frame. Its text is part of the JSON contract.
type Fate string

// The fates.
const (
	FateKept       Fate = "kept"       // in the text, and the walk ends with it
	FatePrefix     Fate = "prefix"     // in the text, and the walk goes on
	FateSentinel   Fate = "sentinel"   // the walk begins below it
	FateAbove      Fate = "above"      // above a sentinel, or above a recursion that used the stack up
	FateIrrelevant Fate = "irrelevant" // says nothing
	FateBelow      Fate = "below"      // behind the frame that the walk ended with
	FateRecursion  Fate = "recursion"  // a further round of a recursion
	FateScan       Fate = "scan"       // found by scanning the stack: a guess
	FateUnproven   Fate = "unproven"   // behind such a one, and nothing shows that it is on the stack
	FateCapture    Fate = "capture"    // of the dump's writer
	FateNoModule   Fate = "no_module"  // code of which nothing is known
)

// Step is one frame and its fate.
type Step struct {
	Thread int // index in Incident.Threads
	Kernel bool
	Frame  int    // index in its half
	Name   string // canonical, "" when it has none
	Fate   Fate
	Rule   string // "signature.rules:12", "" when none decided
}

// maxParts is how many frames a text has at most.
const maxParts = 12

// stack is a stack on its way to a signature.
type stack struct {
	steps     []Step
	frames    []canonical // of steps
	live      []int       // indices in steps that take part, innermost first
	text      []int       // indices in steps, in the order of the text
	addresses []uint64
	ring      []string // of a stack overflow, instead of text
}

// newStack lists a thread's frames: the kernel half's of a bugcheck, else the
// user half's, or the kernel half's where no frame of the user half takes part.
func newStack(inc *triage.Incident, thread int, kernel bool, r *Rules) *stack {
	t := &inc.Threads[thread]
	if kernel && hasFrames(t.Kernel) {
		return newHalf(inc, thread, t.Kernel, true, r)
	}
	s := newHalf(inc, thread, t.User, false, r)
	if len(s.live) == 0 && hasFrames(t.Kernel) {
		return newHalf(inc, thread, t.Kernel, true, r)
	}
	return s
}

func newHalf(inc *triage.Incident, thread int, half *triage.Half, kernel bool, r *Rules) *stack {
	view := inc.UserSpace
	if kernel || view == nil {
		view = inc.KernelSpace
	}
	s, names := &stack{}, namer{rules: r, view: view}
	if half == nil {
		return s
	}
	for i := range half.Frames {
		f := &half.Frames[i]
		s.addresses = append(s.addresses, f.IP)
		c := names.frame(half.Frames, i)
		st := Step{Thread: thread, Kernel: kernel, Frame: i, Name: c.name}
		switch {
		case f.Capture:
			st.Fate = FateCapture
		case f.Trust != unwind.TrustContext && f.Trust != unwind.TrustCFI && f.Trust != unwind.TrustFramePointer:
			st.Fate = FateScan
		case !f.Certain():
			st.Fate = FateUnproven
		case c.name == "":
			st.Fate = FateNoModule
		default:
			c.exact = names.exact(f, &c)
			s.live = append(s.live, i)
		}
		s.steps, s.frames = append(s.steps, st), append(s.frames, c)
	}
	return s
}

// classify decides the fate of every frame. overflow names a stack by its
// recursion; waiting is of a thread that no fault stopped.
func (s *stack) classify(r *Rules, overflow, waiting bool) {
	s.collapse(overflow)
	if s.ring != nil {
		s.classifyRing()
		return
	}
	rest := s.belowSentinel(r)
	for n, i := range rest {
		rule := s.rule(r, i, waiting)
		fate := FateKept
		if rule != nil {
			s.steps[i].Rule = rule.String()
			switch rule.Section {
			case sectionIrrelevant, sectionInternal:
				fate = FateIrrelevant
			case sectionPrefix:
				fate = FatePrefix
			}
		} else if s.frames[i].name == jitName {
			fate = FatePrefix // the code's own name is not known: who called it tells more
		}
		s.steps[i].Fate = fate
		if fate != FateIrrelevant {
			s.text = append(s.text, i)
		}
		if fate == FateKept || len(s.text) == maxParts {
			for _, below := range rest[n+1:] {
				s.steps[below].Fate = FateBelow
			}
			return
		}
	}
}

// rule is the rule that a frame falls under, nil none. In a thread that waits, what
// only a PDB could name says nothing: else the same wait would have one name with
// symbols of the system and another without.
func (s *stack) rule(r *Rules, i int, waiting bool) *rules.Rule {
	f := &s.frames[i]
	if waiting {
		function := f.function
		if function == "" {
			function = "fn@"
		}
		if rule := r.internal.Find(f.module, function); rule != nil {
			f.internal = true
			return rule
		}
	}
	return r.rest.Find(f.module, f.function)
}

// collapse takes further rounds of recursions out, and of a stack overflow what
// stands above the recursion that caused it: how far the last round came is
// chance.
func (s *stack) collapse(overflow bool) {
	names := make([]string, len(s.live))
	for k, i := range s.live {
		names[len(names)-1-k] = s.frames[i].name // outermost first
	}
	kept, longest := collapse(names)
	stays := make([]bool, len(names))
	for _, k := range kept {
		stays[k] = true
	}
	if overflow && longest.dropped > 0 && longest.at+longest.period <= len(kept) {
		for _, k := range kept[longest.at : longest.at+longest.period] {
			s.ring = append(s.ring, names[k])
		}
		slices.Reverse(s.ring) // innermost first, as texts are
		for _, k := range kept[longest.at+longest.period:] {
			stays[k] = false
			s.steps[s.live[len(names)-1-k]].Fate = FateAbove
		}
	}
	live := s.live[:0:0]
	for k, i := range s.live {
		switch {
		case stays[len(names)-1-k]:
			live = append(live, i)
		case s.steps[i].Fate == "":
			s.steps[i].Fate = FateRecursion
		}
	}
	s.live = live
}

// classifyRing names a stack overflow by its recursion alone.
func (s *stack) classifyRing() {
	for k, i := range s.live {
		if k >= len(s.ring) {
			s.steps[i].Fate = FateBelow
			continue
		}
		s.steps[i].Fate = FateKept
		s.text = append(s.text, i)
	}
	s.ring = leastFirst(s.ring, func(name string) []string { return []string{name} })
}

// belowSentinel returns the frames below the outermost sentinel. A sentinel with
// nothing below it does not count.
func (s *stack) belowSentinel(r *Rules) []int {
	at := -1
	for k, i := range s.live[:max(len(s.live)-1, 0)] {
		if rule := r.sentinel.Find(s.frames[i].module, s.frames[i].function); rule != nil {
			s.steps[i].Fate, s.steps[i].Rule = FateSentinel, rule.String()
			at = k
		}
	}
	for _, i := range s.live[:at+1] {
		if s.steps[i].Fate == "" {
			s.steps[i].Fate = FateAbove
		}
	}
	return s.live[at+1:]
}

// parts returns the frames of the text. When every frame was irrelevant, the
// first of them that have public names stand for the stack.
func (s *stack) parts() []string {
	if s.ring != nil {
		return s.ring
	}
	var out []string
	for _, i := range s.text {
		out = append(out, s.frames[i].name)
	}
	const most = 3
	for _, i := range s.live {
		if len(s.text) > 0 || len(out) == most {
			break
		}
		if !s.frames[i].internal {
			out = append(out, s.frames[i].name)
		}
	}
	return out
}

// exact returns every frame that takes part, beginning at the ring's first for a
// stack overflow.
func (s *stack) exact() []string {
	out := slices.Clone(s.ring)
	for _, i := range s.live[len(out):] {
		out = append(out, s.frames[i].name)
	}
	return out
}

// invariant returns what exact ids are made of: exact, whatever debug information
// of the system was at hand.
func (s *stack) invariant() []string {
	out := slices.Clone(s.ring)
	for _, i := range s.live[len(out):] {
		out = append(out, cmp.Or(s.frames[i].exact, s.frames[i].name))
	}
	return out
}

// application returns the frames that no rule speaks of, from the walk's begin.
func (s *stack) application(r *Rules) []string {
	var out []string
	if s.ring != nil {
		out = slices.Clone(s.ring)
	}
	for _, i := range s.live[len(out):] {
		switch s.steps[i].Fate {
		case FateSentinel, FateAbove, FateIrrelevant, FatePrefix:
			continue
		}
		rule := r.rest.Find(s.frames[i].module, s.frames[i].function)
		if s.frames[i].name != jitName && (rule == nil || rule.Section == sectionKeep) {
			out = append(out, s.frames[i].name)
		}
	}
	return out
}
