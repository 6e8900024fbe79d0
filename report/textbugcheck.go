package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

// bugCheckVerdict writes the verdict on a bugcheck.
func (t *text) bugCheckVerdict(inc *triage.Incident, v *bugcheck.Verdict, opt Options) {
	b := inc.BugCheck
	t.fact(opt, "", "Code", joinWith(", ", fmt.Sprintf("%s (%x)", bugCheckName(b.Code), b.Code), "class "+string(v.Class)))
	t.bugBlame(inc, v, opt)
	t.fact(opt, "", "Fault", t.faultWords(&b.Fault))
	if e := b.Exception; e != nil {
		raised := strings.TrimSpace(fmt.Sprintf("%s (%x) at %s", codes.Exception(e.Code), e.Code, t.codeAddress(inc, e.Address)))
		t.fact(opt, "", "Raised", joinWith(", ", raised, t.accessWords(e)))
	}
	t.fact(opt, sgrBold, "Stack use", stackUseWords(v.Stack))
	t.fact(opt, "", "Drivers", driversWords(v))
	for i := range v.Unloaded {
		u := &v.Unloaded[i]
		if slices.ContainsFunc(v.Unloaded[:i], func(o bugcheck.UnloadedHit) bool { return o.Address == u.Address }) {
			continue // by another parameter
		}
		t.fact(opt, sgrYellow, "Unloaded", fmt.Sprintf("%s lies where %s had been", t.addr(u.Address), u.Module.Name()))
	}
	t.power(v, opt)
	t.watchdog(inc, v, opt)
	t.hardware(v.Hardware, opt)
	t.fact(opt, "", "Process", joinWith(", ", inc.Process.Name, pidWords(inc)))
	for _, s := range bugSteps(inc, v) {
		t.prose(opt, sgrCyan, "Next", s)
	}
}

func bugCheckName(code uint32) string {
	name, _, _ := codes.BugCheck(code)
	if name == "" {
		return "unknown bugcheck"
	}
	return name
}

func pidWords(inc *triage.Incident) string {
	if !inc.Process.HasPID || inc.Process.Name == "" {
		return ""
	}
	return fmt.Sprintf("pid %d (%#x)", inc.Process.PID, inc.Process.PID)
}

func (t *text) bugBlame(inc *triage.Incident, v *bugcheck.Verdict, opt Options) {
	b := &v.Blame
	what := bugBlameText(b)
	switch {
	case b.Frame != nil:
		what = callSite(b.Frame, t.arch) + sourceLine(b.Frame.Name.File, b.Frame.Name.Line)
	case b.Culprit == bugcheck.CulpritNobody:
		if t.askedFor(inc, opt) {
			return
		}
		what = "nobody"
	case b.Culprit == bugcheck.CulpritNone && !v.Live:
		what = "nobody could be named"
	}
	t.fact(opt, sgrBold, "Blame", what)
	if b.Culprit == bugcheck.CulpritNone {
		return
	}
	where := ""
	switch {
	case b.Index >= 0 && b.Frame != nil && inc.Crashing >= 0:
		where = fmt.Sprintf("frame %d", b.Index)
	case b.Parameter >= 0:
		where = fmt.Sprintf("parameter %d", b.Parameter+1)
	}
	t.fact(opt, "", "Because", joinWith(", ", stepWords[b.Step], where, confidence(b.Confidence)))
}

// askedFor writes whom the threads of a dump lead to that somebody asked for.
func (t *text) askedFor(inc *triage.Incident, opt Options) bool {
	v := opt.Verdict
	if v == nil || v.OneThread || !v.Hang.Hangs() {
		return false
	}
	f := askedFor(inc, v)
	if f == nil {
		t.fact(opt, sgrBold, "Blame", "nobody by the code; "+hangReason(inc, v.Hang))
		t.fact(opt, "", "Because", joinWith(", ", stepWords["requested"], "what its threads wait for says more"))
		return true
	}
	t.fact(opt, sgrBold, "Blame", callSite(f, t.arch)+sourceLine(f.Name.File, f.Name.Line))
	t.fact(opt, "", "Because", joinWith(", ", "threads that hang lead there; somebody asked for the dump, and its code tells of no failure", confidence(string(opt.Verdict.Hang.Confidence))))
	return true
}

// faultWords says where the fault was and which registers the stack starts from.
func (t *text) faultWords(f *triage.Fault) string {
	at := ""
	if f.At != nil {
		at = callSite(f.At, t.arch)
	}
	from := ""
	switch {
	case f.TrapFrame != 0:
		from = "registers from the trap frame that was found on the stack at " + t.addr(f.TrapFrame)
	case f.Source == dump.ContextParameter:
		from = fmt.Sprintf("registers from the context record of parameter %d", f.Parameter+1)
	case f.Source == dump.ContextTrapFrame:
		from = fmt.Sprintf("registers from the trap frame of parameter %d", f.Parameter+1)
	case f.Source == dump.ContextTask:
		from = "registers from the task state segment that the double fault's task gate left"
	case f.Missing:
		from = fmt.Sprintf("parameter %d points to no registers that the dump holds: the stack starts at the bugcheck itself", f.Parameter+1)
	case f.Index > 0:
		from = fmt.Sprintf("frame %d, behind a trap", f.Index)
	case at != "":
		from = "the stack starts at the bugcheck itself"
	}
	return joinWith(", ", at, from)
}

// codeAddress writes an address with its name where it has one.
func (t *text) codeAddress(inc *triage.Incident, va uint64) string {
	va = t.arch.Narrow(va)
	if m := inc.KernelSpace.Module(va); m != nil {
		f := inc.KernelSpace.Name(va)
		return t.addr(va) + " (" + callSite(&f, t.arch) + ")"
	}
	return t.addr(va)
}

const textDrivers = 8 // named in the verdict; the JSON has all

func driversWords(v *bugcheck.Verdict) string {
	var parts []string
	for i := range v.Drivers {
		if i == textDrivers {
			parts = append(parts, fmt.Sprintf("and %d more", len(v.Drivers)-i))
			break
		}
		d := &v.Drivers[i]
		how := plural(d.Frames, "frame")
		switch driverFound(d) {
		case "scan":
			how += " by a search"
		case "stack":
			how = "on the stack"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", moduleAlias(d.Module.Module), how))
	}
	return strings.Join(parts, ", ")
}

func (t *text) hardware(r *bugcheck.ErrorRecord, opt Options) {
	if r == nil {
		return
	}
	short := ""
	if r.Truncated {
		short = "the dump holds only a part of the record"
	}
	t.fact(opt, sgrBold, "Hardware", joinWith(", ", severity(r.Severity), r.Notify, short))
	for i := range r.Sections {
		s := &r.Sections[i]
		name := s.Type
		if name == "" {
			name = "section " + guidText(s.GUID)
		}
		t.fact(opt, "", "Error", joinWith(": ", name, joinWith(", ", sectionWords(s), s.FRU)))
	}
}

// bugCheck writes the bugcheck with its parameters. v may be nil.
func (t *text) bugCheck(inc *triage.Incident, v *bugcheck.Verdict) {
	b := inc.BugCheck
	if b == nil {
		return
	}
	live := ""
	if b.Live || v != nil && v.Live {
		live = ", a live dump: the system went on"
	}
	raw := ""
	if b.Raw != b.Code {
		raw = fmt.Sprintf(", raw %x", b.Raw)
	}
	t.line(sgrBold+sgrRed, "Bugcheck: %s (%x%s)%s", bugCheckName(b.Code), b.Code, raw, live)
	if b.Live && b.Parameters == [4]uint64{} {
		return // whoever asked for a live dump passed none
	}
	values := b.Parameters
	for i := range values {
		values[i] = t.arch.Narrow(values[i])
	}
	switch d := codes.BugCheckDocumented(b.Code); {
	case d == codes.NoParameters && values != [4]uint64{}:
		t.line("", "Parameters: none by the public reference")
	case d == codes.Undocumented:
		t.line("", "Parameters: undocumented, no public description of them is known")
	}
	params, unverified := codes.BugCheckParams(b.Code, values)
	for i, p := range params {
		meaning := p.Meaning
		if meaning != "" && unverified {
			meaning += " (unverified)"
		}
		t.line("", "Arg%d: %s", i+1, clean(joinWith(", ", cmp.Or(b.Hidden[i], hexFor(t.arch).addr(values[i])[2:]), meaning, t.parameterWords(v, i))))
	}
	if b.BrokenDriver != "" {
		t.line("", "Driver:  %s (named by the kernel itself)", clean(b.BrokenDriver))
	}
}

// parameterWords says what a parameter's value stands for.
func (t *text) parameterWords(v *bugcheck.Verdict, i int) string {
	if v == nil {
		return ""
	}
	p := &v.Parameters[i]
	switch {
	case p.Missing:
		return "which is not in the dump"
	case p.Frame != nil:
		return callSite(p.Frame, t.arch)
	case p.Text != "":
		return fmt.Sprintf("%q", p.Text)
	case p.Name != "":
		return p.Name
	case p.Unnamed:
		return "a value that the public reference does not name"
	case p.Kind == codes.KindDecimal && p.Value > 9:
		return fmt.Sprintf("%d", p.Value)
	case p.Kind == codes.KindAddress:
		return regionWords(p.Value, p.Region, strings.HasPrefix(p.Meaning, "address referenced"))
	}
	return ""
}

// regionWords says what is odd about an address of data. That nothing is there, where
// an address need not be, is not. What makes such an address is likely and not known.
func regionWords(va uint64, r bugcheck.Region, referenced bool) string {
	switch {
	case va == 0 && referenced:
		return "a null pointer"
	case va == 0:
		return ""
	case va == ^uint64(0) && referenced:
		return "no address: a general protection fault reports it so"
	case r == bugcheck.RegionNull:
		return "in the first 64 KB, as a null pointer and an offset give"
	case r == bugcheck.RegionNotCanonical:
		return "not canonical, as a damaged pointer is"
	case r == bugcheck.RegionUser:
		return "in user space"
	case r == bugcheck.RegionKernel && referenced:
		return "in kernel space"
	}
	return ""
}

// accessWords says what an access violation, or a page that could not be read,
// accessed and how.
func (t *text) accessWords(e *dump.Exception) string {
	const accessViolation, inPageError = 0xc0000005, 0xc0000006
	if e.Code != accessViolation && e.Code != inPageError || len(e.Parameters) < 2 {
		return ""
	}
	how := map[uint64]string{0: "reading", 1: "writing", 8: "executing"}[e.Parameters[0]]
	if how == "" {
		return ""
	}
	va := t.arch.Narrow(e.Parameters[1])
	return joinWith(", ", how+" "+t.addr(va), regionWords(va, bugcheck.RegionOf(t.arch, va), true))
}

// stackUseWords says how full the stack of a double fault was, and of what.
func stackUseWords(u *bugcheck.StackUse) string {
	if u == nil {
		return ""
	}
	const kb, named = 1024, 4
	what := fmt.Sprintf("%d bytes left of %d KB", u.Left, u.Size/kb)
	if u.Left < 0 {
		what = fmt.Sprintf("the stack pointer is %d bytes beyond the %d KB", -u.Left, u.Size/kb)
	}
	if u.Overflow {
		what = "overflowed, " + what
	}
	for i := range u.Modules[:min(named, len(u.Modules))] {
		m := &u.Modules[i]
		what += fmt.Sprintf(", %s %d bytes in %s", moduleAlias(m.Module.Module), m.Bytes, plural(m.Frames, "frame"))
	}
	return what
}

// secondaryData names what bugcheck callbacks added to the dump, behind an empty line.
func (t *text) secondaryData(v *bugcheck.Verdict) {
	if v != nil && len(v.Blobs) > 0 {
		t.line("", "")
		t.secondaryNames(v)
	}
}

func (t *text) secondaryNames(v *bugcheck.Verdict) {
	if v == nil || len(v.Blobs) == 0 {
		return
	}
	var names []string
	unknown := 0
	for _, b := range v.Blobs {
		switch {
		case b.Name == "":
			unknown++
		case !slices.Contains(names, b.Name):
			names = append(names, b.Name)
		}
	}
	if unknown > 0 {
		names = append(names, plural(unknown, "record")+" of drivers' own")
	}
	const label = "Secondary data: "
	for i, line := range wrap(strings.Join(names, ", "), factWidth-len(label)) {
		if i == 0 {
			line = label + line
		} else {
			line = strings.Repeat(" ", len(label)) + line
		}
		t.line("", "%s", line)
	}
}
