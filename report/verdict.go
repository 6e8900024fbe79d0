package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
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
		a.Reason, _, _ = codes.BugCheck(inc.BugCheck.Code)
		if b := inc.BugCheck.Blame; b != nil && b.Module != nil {
			a.Blame, a.Confidence = b.Module.Name(), b.Confidence
		}
	case inc.Crash != nil:
		a = &AnalysisJSON{Class: string(verdict.KindCrash), Reason: CrashType(&inc.Crash.Exception)}
	case v != nil && hasContent(inc):
		a = &AnalysisJSON{Class: string(v.Kind), Reason: "no exception: somebody asked for the dump"}
		a.hangReason(inc, v.Hang)
	default:
		return nil
	}
	if v != nil {
		a.Class = string(v.Kind)
		a.crash(inc, v.Crash)
		if v.Kind == verdict.KindHang {
			a.hangReason(inc, v.Hang)
		}
		a.Hang = hangJSON(inc, v.Hang)
	}
	return a
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

// blameText names a blamed frame without its offset in the function.
func blameText(f *triage.Frame) string {
	module := ""
	if f.Module != nil && f.Module.Module != nil {
		module = moduleAlias(f.Module.Module)
	}
	switch {
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
	a.NextSteps = nil
	if h := a.Hang; h != nil {
		a.Hang = &HangAnalysisJSON{Class: h.Class, Confidence: h.Confidence}
	}
	if c := a.Crash; c != nil {
		c.Registers, c.Recursion = nil, nil
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
	if t := c.Thrown; t != nil {
		j.Exception = &ThrownJSON{Message: t.Message, Address: h.known(t.Address)}
		if len(t.Types) > 0 {
			j.Exception.Type, j.Exception.Types = t.Types[0], t.Types
		}
		if t.HasHR {
			j.Exception.HResult = hex32(t.HResult)
		}
	}
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
	for i := range j.MemoryAccesses {
		a := &inc.Crash.Instruction.Accesses[i]
		if r := inc.UserSpace.Region(a.Address); a.Known && r != nil && r.Protect != 0 {
			j.MemoryAccesses[i].Protect = protection(r.Protect)
			j.MemoryAccesses[i].IsLikelyGuardPage = r.Protect&pageGuard != 0
		}
	}
}

const pageGuard = 0x100

// TriageText writes the verdict for people: what happened and who is to blame,
// then the stack of the thread that it happened on. Brief leaves out the rest of
// what is known.
func TriageText(w io.Writer, inc *triage.Incident, opt Options) error {
	t := newText(w, opt, inc.System.Arch)
	t.pid = pid(inc)
	t.verdict(inc, opt)
	if opt.Verdict != nil {
		t.signature(opt.Verdict)
		t.hang(inc, opt.Verdict.Hang, opt.Brief)
	}
	if opt.Brief {
		t.briefStack(inc)
		if n := len(inc.Errors); n > 0 {
			t.line(sgrYellow, "Damage:  %s (see without --brief)", plural(n, "fault"))
		}
		return t.flush()
	}
	t.line("", "")
	t.heading(inc)
	t.crash(inc)
	t.bugCheck(inc)
	if v := opt.Verdict; v != nil && v.Crash != nil {
		t.registers(inc, v.Crash)
	}
	if inc.Crashing >= 0 && inc.Crashing < len(inc.Threads) {
		t.line("", "")
		t.thread(inc, inc.Crashing)
	}
	if opt.Verdict != nil && !opt.Brief {
		t.hangStacks(inc, opt.Verdict.Hang)
	}
	t.explainSignature(opt)
	t.missing(inc.Missing)
	t.errors(inc.Errors)
	return t.flush()
}

// briefWidth is the width that a line of brief output is cut to, so that all of
// it stays below 2 KB.
const (
	briefWidth  = 170
	briefFrame  = 80 // of a call site
	briefFrames = 8
)

// fact writes a line of the verdict's block.
func (t *text) fact(opt Options, sgr, label, s string) {
	if s == "" {
		return
	}
	s = clean(s)
	if opt.Brief {
		s = cut(s, briefWidth)
	}
	t.line(sgr, "%-8s %s", label+":", s)
}

// cut shortens a text to so many characters.
func cut(s string, width int) string {
	n := 0
	for i := range s {
		if n++; n > width {
			return s[:i] + "..."
		}
	}
	return s
}

// verdict writes the block that a reader in a hurry reads alone.
func (t *text) verdict(inc *triage.Incident, opt Options) {
	a := analysisJSON(inc, opt.Verdict)
	if a == nil {
		return
	}
	t.fact(opt, sgrBold+sgrRed, "Verdict", joinWith(": ", strings.ReplaceAll(a.Class, "_", " "), a.Reason))
	if v := opt.Verdict; v != nil && v.Crash != nil && !kernelSays(inc) {
		t.crashVerdict(inc, v.Crash, opt)
		return
	}
	if a.Blame != "" {
		t.fact(opt, "", "Blame", joinWith(", ", a.Blame, confidence(a.Confidence)))
	}
}

func (t *text) crashVerdict(inc *triage.Incident, c *crash.Verdict, opt Options) {
	t.fact(opt, "", "Code", fmt.Sprintf("%s (%s)", CrashType(&inc.Crash.Exception), hex32(inc.Crash.Code)[2:]))
	t.fact(opt, "", "Class", joinWith(", ", string(c.Class), byRule(inc, c)))
	if b := c.Blame; b != nil {
		t.fact(opt, sgrBold, "Blame", callSite(b.Frame, t.arch)+sourceLine(b.Frame.Name.File, b.Frame.Name.Line))
		t.fact(opt, "", "Because", joinWith(", ", string(b.Rule), b.Source, fmt.Sprintf("frame %d", b.Index)+found(b.Frame), confidence(b.Confidence)))
	}
	if in := inc.Crash.Instruction; in != nil && byProcessor(inc.Crash.Code) {
		constant := ""
		if c.Constant {
			constant = "(the address is a constant: such crashes are deliberate)"
		}
		t.fact(opt, "", "At", strings.TrimSpace(in.Text+" "+constant))
	}
	if c.HasAddress && c.Target != nil && c.Class != crash.NullPointer {
		t.fact(opt, "", "Target", joinWith(": ", t.addr(c.Address), t.targetWords(c.Target)))
	}
	if r := c.Recursion; r != nil {
		frames := crashedFrames(inc)
		var names []string
		for i := r.From; i < r.From+r.Frames && i < len(frames); i++ {
			names = append(names, blameText(&frames[i]))
		}
		t.fact(opt, "", "Cycle", strings.Join(names, " <- "))
	}
	if l := c.Largest; l != nil && l.Index < len(crashedFrames(inc)) {
		t.fact(opt, "", "Largest", fmt.Sprintf("%s takes %d bytes of stack", blameText(&crashedFrames(inc)[l.Index]), l.Bytes))
	}
	for _, i := range c.Inconsistencies {
		t.fact(opt, sgrYellow, "Strange", inconsistencyWords[i])
	}
	if len(c.BitFlips) > 0 {
		t.fact(opt, sgrYellow, "Bit flip", t.flipWords(inc, &c.BitFlips[0]))
	}
	t.fact(opt, "", "Context", t.circumstances(inc, c))
	for i := range c.Next {
		t.fact(opt, sgrCyan, "Next", nextStep(inc, &c.Next[i]))
	}
}

// byRule says which function of the stack gave the class.
func byRule(inc *triage.Incident, c *crash.Verdict) string {
	if frames := crashedFrames(inc); c.Rule != "" && c.RuleFrame < len(frames) {
		return fmt.Sprintf("because of %s in frame %d (%s)", blameText(&frames[c.RuleFrame]), c.RuleFrame, c.Rule)
	}
	return ""
}

// byProcessor reports whether it was an instruction that raised an exception,
// and not the system on a program's demand.
func byProcessor(code uint32) bool {
	switch code {
	case 0x80000002, 0x80000003, 0x80000004, 0x4000001e, 0x4000001f, codeAccessViolation, codeInPageError, codeStackBufferOverrun, 0xc000001d, 0xc00000fd, 0x80000001:
		return true
	}
	return code >= 0xc000008c && code <= 0xc0000096
}

func found(f *triage.Frame) string {
	if s := howFound(f); s != "" {
		return " found by" + strings.NewReplacer("[", "", "]", "").Replace(s)
	}
	return ""
}

func (t *text) flipWords(inc *triage.Incident, f *crash.BitFlip) string {
	s := fmt.Sprintf("one bit away from %s, where the access is allowed", t.addr(f.Address))
	if f.HasSource {
		s += ", in " + inc.Crash.Context.Arch.RegName(f.Source)
	}
	return fmt.Sprintf("%s (confidence %.0f%%)", s, 100*f.Confidence)
}

// circumstances are facts about the process at the crash.
func (t *text) circumstances(inc *triage.Incident, c *crash.Verdict) string {
	var parts []string
	if inc.Process.Name != "" {
		parts = append(parts, inc.Process.Name)
	}
	if c.Uptime > 0 {
		parts = append(parts, "ran "+c.Uptime.Round(time.Second).String())
	}
	if inc.Handles != nil {
		parts = append(parts, plural(len(inc.Handles), "handle"))
	}
	if i := inc.Crashing; i >= 0 && i < len(inc.Threads) && inc.Threads[i].HasLastError && inc.Threads[i].LastError != 0 {
		parts = append(parts, fmt.Sprintf("last error %d (%#x)", inc.Threads[i].LastError, inc.Threads[i].LastError))
	}
	return strings.Join(parts, ", ")
}

// targetWords says what an address points to.
func (t *text) targetWords(g *crash.Target) string {
	var what string
	switch g.Kind {
	case crash.TargetModule:
		what = moduleAlias(g.Module.Module) + plus(g.Offset)
		if n := &g.Frame.Name; g.Code && n.Function != "" {
			what = moduleAlias(g.Module.Module) + "!" + n.Function + plus(n.Offset)
		}
	case crash.TargetStack:
		what = "stack of thread " + t.threadID(g.ThreadID)
	default:
		what = targetKinds[g.Kind]
	}
	if g.Unloaded != nil && g.Module == nil {
		what = joinWith(", ", what, fmt.Sprintf("where %s had been", g.Unloaded.Module.Name()))
	}
	protect := ""
	if g.Region != nil && g.Region.Protect != 0 && g.Kind != crash.TargetStack {
		protect = protection(g.Region.Protect)
	}
	text := ""
	if g.Text != "" {
		text = fmt.Sprintf("%q", g.Text)
	}
	return joinWith(", ", what, protect, text)
}

var targetKinds = map[crash.TargetKind]string{
	crash.TargetNone:     "not mapped, as far as the dump knows",
	crash.TargetGuard:    "guard page",
	crash.TargetPrivate:  "private memory",
	crash.TargetMapped:   "mapped file",
	crash.TargetImage:    "image",
	crash.TargetReserved: "reserved, nothing is there",
	crash.TargetFree:     "free",
	crash.TargetUnloaded: "",
	crash.TargetMemory:   "memory in the dump",
}

// registers lists what the registers of the fault point to.
func (t *text) registers(inc *triage.Incident, c *crash.Verdict) {
	if len(c.Registers) == 0 {
		return
	}
	t.line("", "")
	t.line("", "Registers that point somewhere:")
	for i := range c.Registers {
		r := &c.Registers[i]
		what := ""
		if r.Target != nil {
			what = t.targetWords(r.Target)
		}
		if r.Pattern != nil {
			what = joinWith(", ", what, "marks "+r.Pattern.Meaning)
		}
		t.line("", "  %-3s %s  %s", inc.Crash.Context.Arch.RegName(r.Reg), t.addr(r.Value), clean(what))
	}
}

// briefStack writes the innermost call sites.
func (t *text) briefStack(inc *triage.Incident) {
	for i, f := range innermost(inc) {
		if i == briefFrames {
			break
		}
		label := ""
		if i == 0 {
			label = "Stack:"
		}
		t.line("", "%-8s %s", label, cut(callSite(&f, archOf(inc, dump.AMD64))+trustMark(&f), briefFrame))
	}
}

func archOf(inc *triage.Incident, unknown dump.Arch) dump.Arch {
	if inc.System.Arch == dump.ArchUnknown {
		return unknown
	}
	return inc.System.Arch
}
