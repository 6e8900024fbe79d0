package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/crash"
	"dumptriage/triage/verdict"
)

// analysisJSON says what an incident was. Without a verdict it is what the
// incident itself proves.
func analysisJSON(inc *triage.Incident, v *verdict.Verdict) *AnalysisJSON {
	var a *AnalysisJSON
	switch {
	case kernelSays(inc) || v == nil && inc.BugCheck != nil:
		a = &AnalysisJSON{Class: string(verdict.KindBugCheck)}
		if inc.BugCheck.Live {
			a.Class = string(verdict.KindLiveDump)
		}
		a.bugCheck(inc, bugVerdict(v))
		if f := askedFor(inc, v); f != nil {
			a.Blame, a.Confidence = blameText(f), string(v.Hang.Confidence)
		}
		if live := inc.BugCheck.Live || bugVerdict(v) != nil && bugVerdict(v).Live; live && v != nil && v.Hang.Hangs() && !v.OneThread {
			a.Reason += "; " + hangReason(inc, v.Hang) // which its signature names
		}
	case inc.Crash != nil:
		a = &AnalysisJSON{Class: string(verdict.KindCrash), Reason: CrashType(&inc.Crash.Exception)}
	case v != nil && hasContent(inc):
		a = &AnalysisJSON{Class: string(v.Kind), Reason: "no exception: somebody asked for the dump"}
		a.hangReason(inc, v)
	default:
		return nil
	}
	if v != nil {
		a.Class = string(v.Kind)
		a.crash(inc, v.Crash)
		a.Raising = raisingJSON(v.Raising, hexFor(inc.System.Arch))
		if inc.Crash != nil && !kernelSays(inc) && v.Crash.NoFault() {
			a.noFault(inc, v)
		}
		if !v.OneThread {
			a.Hang = hangJSON(inc, v.Hang)
		}
	}
	return a
}

// bugCheck adds what a bugcheck means. v may be nil.
func (a *AnalysisJSON) bugCheck(inc *triage.Incident, v *bugcheck.Verdict) {
	a.Reason = bugCheckReason(inc.BugCheck, v)
	if v == nil {
		return
	}
	if a.Blame = bugBlameText(&v.Blame); a.Blame != "" {
		a.Confidence = v.Blame.Confidence
	}
	a.NextSteps = bugSteps(inc, v)
}

// askedFor is the frame that threads which hang lead to, in a dump that somebody asked
// for: then the code blames nobody, and the threads do. Nil when they do not hang.
func askedFor(inc *triage.Incident, v *verdict.Verdict) *triage.Frame {
	if v == nil || v.OneThread || v.BugCheck == nil || v.BugCheck.Blame.Culprit != bugcheck.CulpritNobody {
		return nil
	}
	return hangBlame(inc, v.Hang)
}

// kernelSays reports whether a kernel dump says what happened, and not the user
// dump beside it.
func kernelSays(inc *triage.Incident) bool { return inc.BugCheck != nil && !inc.LiveCompanion() }

// crash adds what a crash was. A bugcheck in the other half of a pair stays what
// the incident is.
func (a *AnalysisJSON) crash(inc *triage.Incident, c *crash.Verdict) {
	if c == nil {
		return
	}
	h := hexFor(inc.System.Arch)
	a.Crash = crashAnalysisJSON(inc, c, h)
	if kernelSays(inc) {
		return
	}
	a.Reason = crashReason(inc, c, inc.System.Arch)
	if b := c.Blame; b != nil {
		a.Blame, a.Confidence = blameText(b.Frame), b.Confidence
	}
	for i := range c.Next {
		a.NextSteps = append(a.NextSteps, nextStep(inc, &c.Next[i]))
	}
}

// noFault adds what the threads do in a dump whose exception is no fault. What the
// exception was stays the reason unless they hang.
func (a *AnalysisJSON) noFault(inc *triage.Incident, v *verdict.Verdict) {
	reason, confidence := a.Reason, a.Confidence
	a.hangReason(inc, v)
	if v.Kind != verdict.KindHang {
		a.Reason, a.Confidence = reason, confidence
	}
}

// blameText names a blamed frame without its offset in the function.
func blameText(f *triage.Frame) string {
	module := ""
	if f.Module != nil && f.Module.Module != nil {
		module = moduleAlias(f.Module.Module)
	}
	switch {
	case f.Managed != nil && f.Name.Function != "":
		return strings.TrimPrefix(managedModule(f.Managed.Module)+"!"+f.Name.Function, "!")
	case f.Name.Function != "":
		return strings.TrimPrefix(module+"!"+f.Name.Function, "!")
	case module != "":
		return module + plus(f.IP-f.Module.Base)
	}
	return fmt.Sprintf("%#x", f.IP)
}

// briefAnalysis is an analysis without what takes space.
func briefAnalysis(inc *triage.Incident, v *verdict.Verdict) *AnalysisJSON {
	a := analysisJSON(inc, v)
	if a == nil {
		return nil
	}
	a.Reason, a.Blame = cut(a.Reason, briefWidth), cut(a.Blame, briefWidth)
	a.NextSteps, a.Raising = nil, briefEarlier(a.Raising)
	if h := a.Hang; h != nil {
		a.Hang = &HangAnalysisJSON{Class: h.Class, Confidence: h.Confidence}
	}
	if c := a.Crash; c != nil {
		c.Registers, c.Recursion, c.Earlier = nil, nil, briefEarlier(c.Earlier)
		if c.Exception != nil {
			c.Exception.Types, c.Exception.Message = nil, cut(c.Exception.Message, briefWidth)
		}
		if b := c.Blame; b != nil {
			b.Function, b.File = cut(b.Function, briefWidth), cut(b.File, briefWidth)
		}
	}
	for i, f := range innermost(inc) {
		if i == briefFrames {
			break
		}
		a.Stack = append(a.Stack, cut(callSite(&f, archOf(inc, dump.AMD64)), briefFrame))
	}
	return a
}

func crashAnalysisJSON(inc *triage.Incident, c *crash.Verdict, h hexer) *CrashAnalysisJSON {
	j := &CrashAnalysisJSON{Class: string(c.Class), Access: string(c.Access), Rule: c.Rule, Constant: c.Constant, Detail: clean(c.Detail)}
	if c.HasAddress {
		j.Address = h.addr(c.Address)
		j.Target = targetJSON(c.Target, h)
	}
	if c.Pattern != nil {
		j.Pattern, j.PatternMeaning = hex32(c.Pattern.Value), c.Pattern.Meaning
	}
	if c.HasSubCode {
		j.SubCode = CrashType(&inc.Crash.Exception)
	}
	if c.HasStatus {
		j.Status = statusName(c.Status)
	}
	if f := c.Heap; f != nil {
		j.Heap = &HeapFailureJSON{Type: f.Type, Name: f.Name, Meaning: heapWords[f.Name], Heap: h.addr(f.Heap), Block: h.known(f.Address)}
	}
	j.Exception, j.Earlier = thrownJSON(c.Thrown, h), earlierJSON(c.Earlier, h)
	j.Recursion = recursionJSON(inc, c)
	for i := range c.Registers {
		r := &c.Registers[i]
		rj := RegisterJSON{Name: inc.Crash.Context.Arch.RegName(r.Reg), Value: h.addr(r.Value), Target: targetJSON(r.Target, h)}
		if r.Pattern != nil {
			rj.PatternMeaning = r.Pattern.Meaning
		}
		j.Registers = append(j.Registers, rj)
	}
	if b := c.Blame; b != nil {
		j.Blame = &CrashBlameJSON{Frame: b.Index, Trust: b.Frame.Trust.String(), Rule: string(b.Rule), Source: b.Source, Confidence: b.Confidence, Function: b.Frame.Name.Function}
		if m := b.Frame.Module; m != nil && m.Module != nil {
			j.Blame.Module, j.Blame.ModuleOffset, j.Blame.Version = m.Name(), h.addr(b.Frame.IP-m.Base), version(m.Version)
		}
		if m := b.Frame.Managed; m != nil && m.Module != "" {
			j.Blame.Module = clean(m.Module)
		}
		if n := &b.Frame.Name; n.File != "" {
			j.Blame.File, j.Blame.Line = clean(n.File), lineNumber(n.Line)
		}
	}
	return j
}

func recursionJSON(inc *triage.Incident, c *crash.Verdict) *RecursionJSON {
	r := c.Recursion
	frames := crashedFrames(inc)
	if r == nil || r.From+r.Frames > len(frames) {
		return nil
	}
	j := &RecursionJSON{From: r.From, Rounds: r.Rounds, AtLeast: r.AtLeast, Bytes: r.Bytes, Estimate: r.Estimate}
	for i := r.From; i < r.From+r.Frames; i++ {
		j.Frames = append(j.Frames, blameText(&frames[i]))
	}
	return j
}

func crashedFrames(inc *triage.Incident) []triage.Frame {
	if i := inc.Crashing; i >= 0 && i < len(inc.Threads) && inc.Threads[i].User != nil {
		return inc.Threads[i].User.Frames
	}
	return nil
}

// innermost are the innermost frames of the thread that an incident is about.
func innermost(inc *triage.Incident) []triage.Frame {
	if i := inc.Crashing; i >= 0 && i < len(inc.Threads) && inc.Threads[i].Kernel != nil && kernelSays(inc) {
		return inc.Threads[i].Kernel.Frames
	}
	return crashedFrames(inc)
}

func targetJSON(t *crash.Target, h hexer) *TargetJSON {
	if t == nil {
		return nil
	}
	j := &TargetJSON{Kind: string(t.Kind), ThreadID: knownCount(t.ThreadID), Text: t.Text}
	if t.Module != nil && t.Module.Module != nil {
		j.Module, j.Offset = t.Module.Name(), h.addr(t.Offset)
		if t.Code {
			j.Function = t.Frame.Name.Function
		}
	}
	if u := t.Unloaded; u != nil && t.Module == nil {
		j.Unloaded = u.Module.Name()
	}
	if r := t.Region; r != nil {
		j.State, j.Type = memoryState(r.State), memoryType(r.Type)
		if r.Protect != 0 {
			j.Protect = protection(r.Protect)
		}
	}
	if *j == (TargetJSON{}) {
		return nil
	}
	return j
}

// crashInfo adds to crash_info what the verdict found, under rust-minidump's names.
func (j *CrashJSON) crashInfo(inc *triage.Incident, v *verdict.Verdict, h hexer) {
	if v == nil || v.Crash == nil {
		return
	}
	c := v.Crash
	for _, f := range c.BitFlips {
		b := BitFlipJSON{Address: h.addr(f.Address), Confidence: float64(int(f.Confidence*1000+0.5)) / 1000,
			Details: BitFlipDetailsJSON{WasNonCanonical: f.WasNonCanonical, WasLow: f.WasLow, PoisonRegisters: f.Poison, NearbyRegisters: f.Nearby}}
		if f.HasSource {
			b.SourceRegister = inc.Crash.Context.Arch.RegName(f.Source)
		}
		j.PossibleBitFlips = append(j.PossibleBitFlips, b)
	}
	for _, i := range c.Inconsistencies {
		j.CrashInconsistencies = append(j.CrashInconsistencies, string(i))
	}
	if u := j.PointerUpdate; u != nil {
		r := inc.UserSpace.Region(inc.Crash.Instruction.Target)
		u.IsLikelyGuardPage = r != nil && r.Protect&pageGuard != 0
	}
	for i := range j.MemoryAccesses {
		a := &inc.Crash.Instruction.Accesses[i]
		if r := inc.UserSpace.Region(a.Address); a.Known && r != nil && r.Protect != 0 {
			j.MemoryAccesses[i].Protect = protection(r.Protect)
			j.MemoryAccesses[i].IsLikelyGuardPage = r.Protect&pageGuard != 0
		}
	}
}

const pageGuard = 0x100
