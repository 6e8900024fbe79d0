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
	"dumptriage/unwind"
)

// TriageText writes the verdict for people: what happened and who is to blame,
// then the stack of the thread that it happened on. Brief leaves out the rest of
// what is known.
func TriageText(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
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
	t.bugCheck(inc, bugVerdict(opt.Verdict))
	if v := opt.Verdict; v != nil && v.Crash != nil {
		t.registers(inc, v.Crash)
	}
	if inc.Crashing >= 0 && inc.Crashing < len(inc.Threads) {
		t.line("", "")
		t.thread(inc, inc.Crashing)
	}
	t.hungStack(inc, bugVerdict(opt.Verdict))
	if kernelSays(inc) {
		t.secondaryData(bugVerdict(opt.Verdict))
	}
	if opt.Verdict != nil {
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
		t.line(sgr, "%-8s %s", label+":", cut(s, briefWidth))
		return
	}
	t.wrapped(sgr, label, s)
}

// factWidth is where prose is wrapped, and factIndent how far its further lines are
// indented: as far as the label and the space behind it.
const (
	factWidth  = 118
	factIndent = 9
)

// prose writes a fact that is a sentence, wrapped at words also where it is brief.
func (t *text) prose(opt Options, sgr, label, s string) {
	s = clean(s)
	if opt.Brief {
		s = cut(s, briefWidth)
	}
	t.wrapped(sgr, label, s)
}

// wrapped writes a label and a text that may be longer than a line.
func (t *text) wrapped(sgr, label, s string) {
	if t.redact != nil {
		s = t.redact.Text(s) // before a line's end parts what must not be told
	}
	label += ":"
	for i, line := range wrap(s, factWidth-factIndent) {
		if i > 0 {
			label = ""
		}
		t.line(sgr, "%-*s %s", factIndent-1, label, line)
	}
}

// wrap breaks a text at spaces into lines of at most so many columns. A word that
// is longer has a line of its own. There is one line at least.
func wrap(s string, width int) []string {
	var lines []string
	line, n := "", 0
	for word := range strings.SplitSeq(s, " ") {
		w := columns(word)
		if n > 0 && n+1+w > width {
			lines, line, n = append(lines, line), "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+w
	}
	return append(lines, line)
}

// cut shortens a text to so many columns, between words or parts of a name where it
// can: half a name may be another's.
func cut(s string, width int) string {
	n, at, between := 0, 0, 0
	for i, r := range s {
		if n <= width && n > width/2 && parts(s[:i], r) {
			between = i
		}
		if n += columnsOf(r); n > width {
			at = i
			break
		}
	}
	switch {
	case at == 0:
		return s
	case between > 0:
		at = between
	}
	return strings.TrimRight(s[:at], " ") + "..."
}

// parts reports whether a text can be cut between what is before and a character.
func parts(before string, next rune) bool {
	return strings.ContainsRune(" <(,[", next) || strings.HasSuffix(before, "::") || strings.HasSuffix(before, "!")
}

// verdict writes the block that a reader in a hurry reads alone.
func (t *text) verdict(inc *triage.Incident, opt Options) {
	a := analysisJSON(inc, opt.Verdict)
	if a == nil {
		t.fact(opt, sgrBold+sgrRed, "Verdict", "none: no thread, module or exception could be read")
		return
	}
	t.prose(opt, sgrBold+sgrRed, "Verdict", joinWith(": ", strings.ReplaceAll(a.Class, "_", " "), a.Reason))
	if v := opt.Verdict; v != nil && v.Crash != nil && !kernelSays(inc) {
		t.crashVerdict(inc, v.Crash, opt)
		if v.Crash.NoFault() {
			t.hangVerdict(inc, a, opt)
		} else {
			t.nextSteps(a, opt)
		}
		return
	}
	if v := bugVerdict(opt.Verdict); v != nil && kernelSays(inc) {
		t.bugCheckVerdict(inc, v, opt)
		return
	}
	t.hangVerdict(inc, a, opt)
}

// hangVerdict writes who is to blame for a hang, and what would tell more.
func (t *text) hangVerdict(inc *triage.Incident, a *AnalysisJSON, opt Options) {
	if opt.Verdict == nil {
		return
	}
	if f := hangBlame(inc, opt.Verdict.Hang); f != nil && a.Blame != "" {
		t.fact(opt, sgrBold, "Blame", joinWith(", ", callSite(f, t.arch)+sourceLine(f.Name.File, f.Name.Line), confidence(a.Confidence)))
	}
	t.raising(inc, opt.Verdict.Raising, opt)
	t.nextSteps(a, opt)
}

func (t *text) nextSteps(a *AnalysisJSON, opt Options) {
	for _, step := range a.NextSteps {
		t.prose(opt, sgrCyan, "Next", step)
	}
}

func (t *text) crashVerdict(inc *triage.Incident, c *crash.Verdict, opt Options) {
	t.fact(opt, "", "Code", codeWords(&inc.Crash.Exception))
	t.fact(opt, "", "Class", joinWith(", ", string(c.Class), byRule(inc, c)))
	if b := c.Blame; b != nil {
		t.fact(opt, sgrBold, "Blame", callSite(b.Frame, t.arch)+sourceLine(b.Frame.Name.File, b.Frame.Name.Line))
		t.fact(opt, "", "Because", joinWith(", ", string(b.Rule), b.Source, fmt.Sprintf("frame %d", b.Index)+found(b.Frame, archOf(inc, dump.AMD64)), behindGuesses(inc, b), confidence(b.Confidence)))
	}
	if v := opt.Verdict; inc.Crashing < 0 && v != nil && !v.OneThread {
		t.fact(opt, sgrYellow, "Missing", fmt.Sprintf("the exception's thread, %x, is not in the dump", inc.Crash.ThreadID))
	}
	if in := inc.Crash.Instruction; in != nil && byProcessor(inc.Crash.Code) {
		constant := ""
		if c.Constant {
			constant = "(the address is a constant: such crashes are deliberate)"
		}
		t.fact(opt, "", "At", strings.TrimSpace(in.Text+" "+constant))
	}
	if c.HasAddress && c.Target != nil && c.Class != crash.NullPointer && !unknownAddress(c) {
		t.fact(opt, "", "Target", joinWith(": ", t.addr(c.Address), t.targetWords(c.Target)))
	}
	if f := c.Heap; f != nil {
		block := ""
		if f.Address != 0 {
			block = "block " + t.addr(f.Address)
		}
		t.fact(opt, "", "Heap", joinWith(", ", t.addr(f.Heap), block, f.Name))
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
	for i := range c.Earlier {
		t.fact(opt, "", "Earlier", t.earlierWords(inc, &c.Earlier[i]))
		if opt.Brief {
			break
		}
	}
	for _, i := range c.Inconsistencies {
		t.fact(opt, sgrYellow, "Strange", inconsistencyWords[i])
	}
	if len(c.BitFlips) > 0 {
		t.fact(opt, sgrYellow, "Bit flip", t.flipWords(inc, &c.BitFlips[0]))
	}
	t.fact(opt, "", "Context", t.circumstances(inc, c))
}

// codeWords is an exception's name, where it has one, and its code.
func codeWords(e *dump.Exception) string {
	name, code := CrashType(e), hex32(e.Code)[2:]
	if strings.HasPrefix(name, "unknown ") {
		return code + ", which has no name"
	}
	return fmt.Sprintf("%s (%s)", name, code)
}

// unknownAddress reports whether all that is known of an address is that the
// processor had none to give: Windows writes ^0 then.
func unknownAddress(c *crash.Verdict) bool {
	return c.Class == crash.NonCanonical && c.Address == ^uint64(0)
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

func found(f *triage.Frame, arch dump.Arch) string {
	if s := howFound(f, arch); s != "" {
		return " found by" + strings.NewReplacer("[", "", "]", "").Replace(s)
	}
	return ""
}

// behindGuesses says that the way to a blamed frame was found by scanning.
func behindGuesses(inc *triage.Incident, b *crash.Blame) string {
	frames := crashedFrames(inc)
	for i := range frames[:min(b.Index, len(frames))] {
		if f := &frames[i]; f.Trust == unwind.TrustScan && b.Frame.Trust != unwind.TrustScan {
			return "behind frames found by scan"
		}
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
		parts = append(parts, lastErrorWords(inc.Threads[i].LastError))
	}
	return strings.Join(parts, ", ")
}

// lastErrorWords is a last error by number and name.
func lastErrorWords(code uint32) string {
	s := fmt.Sprintf("last error %d (%#x)", code, code)
	return joinWith(" ", s, codes.Win32Error(code))
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
		t.line("", "%-8s %s", label, cut(callSite(&f, archOf(inc, dump.AMD64))+trustMark(&f, archOf(inc, dump.AMD64)), briefFrame))
	}
}

func archOf(inc *triage.Incident, unknown dump.Arch) dump.Arch {
	if inc.System.Arch == dump.ArchUnknown {
		return unknown
	}
	return inc.System.Arch
}
