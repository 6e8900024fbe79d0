package crash

import (
	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

// Blame is the frame held responsible and the rule that chose it.
type Blame struct {
	Frame      *triage.Frame
	Index      int       // of the frame in the crashing thread's user half
	Rule       BlameRule // why it and not another
	Source     string    // file:line of a rule that named it, "" none
	Confidence string    // high, medium, low
}

// BlameRule is the reason for a blame. Its text is part of the JSON contract.
type BlameRule string

// The reasons.
const (
	BlameNamed     BlameRule = "named by a rule"
	BlameFirst     BlameRule = "first frame of the application"
	BlameRecursion BlameRule = "first frame of the application in the recursion"
	BlameLargest   BlameRule = "the frame that takes most of the stack"
	BlameDynamic   BlameRule = "code outside any module"
	BlameNoApp     BlameRule = "no frame of the application; the innermost that is not exception handling"
)

// Confidences, from the worst.
const (
	low    = "low"
	medium = "medium"
	high   = "high"
)

// blame finds the innermost frame of the application.
func (j *judge) blame() {
	if len(j.frames) == 0 || j.v.NoFault() {
		return
	}
	from, to, rule := 0, len(j.frames), BlameFirst
	if j.v.Rule != "" {
		from = j.v.RuleFrame // who called abort, not the handler that abort called
	}
	if r := j.v.Recursion; r != nil {
		from, to, rule = r.From, min(r.From+r.Frames, len(j.frames)), BlameRecursion
	} else if l := j.v.Largest; l != nil {
		from, rule = l.Index, BlameLargest
	}
	b := j.firstOfApplication(from, to, rule)
	if b == nil && from > 0 || b == nil && to < len(j.frames) {
		b = j.firstOfApplication(0, len(j.frames), BlameFirst)
	}
	b = j.proven(b)
	if b == nil {
		b = j.fallback()
	}
	if b == nil {
		return
	}
	b.Confidence = j.confidence(b)
	j.v.Blame = b
}

func (j *judge) firstOfApplication(from, to int, rule BlameRule) *Blame {
	for i := from; i < to; i++ {
		f := &j.frames[i]
		if f.Capture || i == 0 && j.v.Access == Execute && j.v.Class.isAccess() {
			continue // where it jumped to is not who jumped
		}
		if f.ModuleName() == "" {
			if x, known := j.mem.Executable(f.Lookup); f.Name.Function != "" || known && x {
				return &Blame{Frame: f, Index: i, Rule: BlameDynamic}
			}
			continue
		}
		switch skip, app := j.rules.why(f); {
		case app != nil:
			return &Blame{Frame: f, Index: i, Rule: BlameNamed, Source: app.String()}
		case skip == nil:
			return &Blame{Frame: f, Index: i, Rule: rule}
		}
	}
	return nil
}

// fallback is the innermost frame in a module that is more than machinery.
func (j *judge) fallback() *Blame {
	for i := range j.frames {
		f := &j.frames[i]
		if f.ModuleName() == "" || f.Capture {
			continue
		}
		skip, _ := j.rules.why(f)
		if passive(skip) {
			continue
		}
		b := &Blame{Frame: f, Index: i, Rule: BlameNoApp}
		if skip != nil {
			b.Source = skip.String()
		}
		return b
	}
	return nil
}

func passive(r *rules.Rule) bool {
	return r != nil && (r.Attrs["why"] == "machinery" || r.Attrs["why"] == "start")
}

// justCalled reports whether frame 1 is what a call pushed that got no further,
// as it looks: a return to a bad address would look the same.
func (j *judge) justCalled() bool {
	return j.v.Access == Execute && j.v.Class.isAccess() && j.frames[1].SP == j.frames[0].SP+uint64(j.arch.PointerSize())
}

// confidence is that of the worst frame on the way to the blamed one, and no
// more than the class allows: who trips over damage need not have done it.
func (j *judge) confidence(b *Blame) string {
	switch j.v.Class {
	case HeapCorruption, CorruptList, StackCookie, OutOfBounds:
		return low
	}
	if b.Rule == BlameNoApp || len(j.v.BitFlips) > 0 && j.v.BitFlips[0].Confidence >= 0.5 || len(j.v.Inconsistencies) > 0 {
		return low
	}
	worst := high
	for i := range j.frames[:b.Index+1] {
		if i == 1 && !certain(&j.frames[1]) && j.justCalled() {
			worst = medium
			continue
		}
		switch j.frames[i].Trust {
		case unwind.TrustContext, unwind.TrustCFI, unwind.TrustInline:
		case unwind.TrustFramePointer:
			worst = medium
		default:
			return low
		}
	}
	switch {
	case b.Rule == BlameDynamic, j.v.Class == UseAfterFree, j.v.Class == OutOfMemory, j.v.Class == ControlFlowGuard:
		return medium
	}
	return worst
}
