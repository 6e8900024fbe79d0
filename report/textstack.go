package report

import (
	"cmp"
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// unknown stands where a return address is not known, as the debugger prints
// memory that it cannot read.
const (
	unknown64 = "????????`????????"
	unknown32 = "????????"
)

// threadID formats a thread as the debugger does: pid.tid in hexadecimal.
func (t *text) threadID(id uint32) string {
	if t.pid == nil {
		return fmt.Sprintf("%x", id)
	}
	return fmt.Sprintf("%x.%x", *t.pid, id)
}

// idOf formats a thread with the process that it belongs to, which in a dump of
// a whole system need not be the incident's.
func (t *text) idOf(th *triage.Thread) string {
	if k := th.Thread.Kernel; k != nil && (k.PID != 0 || k.Idle) {
		return fmt.Sprintf("%x.%x", k.PID, th.ID)
	}
	if k := th.Thread.Kernel; k != nil && k.ETHREAD == 0 && th.ID == 0 {
		return "unknown" // only a context was found of it
	}
	return t.threadID(th.ID)
}

func (t *text) thread(inc *triage.Incident, index int) {
	th := &inc.Threads[index]
	mark, sgr := " ", sgrBold
	if index == inc.Crashing {
		mark, sgr = "#", sgrBold+sgrRed
	}
	t.line(sgr, "%s %2d  Id: %s%s", mark, index, t.idOf(th), t.threadFacts(th))
	if th.KernelInfo != nil && th.KernelInfo.Wait != nil {
		t.kernelWait(th.KernelInfo.Wait)
	}
	t.managedException(th)
	if k := th.KernelInfo; k != nil && k.Note != "" && (th.Kernel == nil || len(th.Kernel.Frames) <= 1) {
		t.line(sgrYellow, "   kernel half: %s", clean(k.Note))
	}
	if th.Kernel != nil && len(th.Kernel.Frames) > 0 {
		t.kernelHalf(th)
	} else if th.KernelNote != "" {
		t.line(sgrYellow, "   no kernel half: %s", clean(th.KernelNote))
	}
	if th.User != nil {
		first := 0
		if th.Kernel != nil {
			first = len(th.Kernel.Frames)
		}
		first = t.wow64Half(th, first)
		t.half(th.User, halfOptions{first: first, noHeader: first > 0 && wide(th.Kernel, t.arch) == wide(th.User, t.arch)})
	}
	t.callbacks(th)
	if th.Handler != nil && len(th.Handler.Frames) > 0 {
		t.line(sgrCyan, "-- where the thread stood when the dump was written ------------")
		t.half(th.Handler, halfOptions{})
	}
}

// threadFacts is the rest of a thread's header.
func (t *text) threadFacts(th *triage.Thread) string {
	var b strings.Builder
	if th.Thread.Kernel == nil { // a kernel dump does not say
		fmt.Fprintf(&b, " Suspend: %d", th.SuspendCount)
	}
	if th.TEB != 0 {
		fmt.Fprintf(&b, " Teb: %s", t.addr(th.TEB))
	}
	if th.Name != "" {
		b.WriteString(` "` + clean(th.Name) + `"`)
	}
	if k := th.KernelInfo; k != nil {
		if k.ETHREAD != 0 {
			fmt.Fprintf(&b, " Ethread: %s", kernelAddress(k.ETHREAD))
		}
		if s := threadState(k); s != "" {
			b.WriteString(" " + s + waitReason(k))
		}
		if k.CPU >= 0 {
			fmt.Fprintf(&b, " on processor %d", k.CPU)
		}
	}
	return b.String()
}

// kernelAddress formats an address of the kernel, which may be a 64-bit one
// under a 32-bit process.
func kernelAddress(v uint64) string {
	if v>>32 == 0 {
		return address(v, dump.X86)
	}
	return address(v, dump.AMD64)
}

// waitReason is what a waiting thread's state is followed by.
func waitReason(k *dump.KernelThread) string {
	if k.State != stateWaiting {
		return ""
	}
	if w := codes.WaitReason(k.WaitReason); w != "" {
		return " (" + w + ")"
	}
	return ""
}

func (t *text) kernelHalf(th *triage.Thread) {
	o := halfOptions{seam: true}
	if th.KernelInfo != nil && th.Kernel.Stop.Reason == unwind.StopTrapFrame {
		o.trapFrame = th.KernelInfo.TrapFrame
	}
	if o.reached = reachedUser(th.Kernel); o.reached {
		switch {
		case th.Seam != nil && th.Seam.UserIP != 0: // the trap frame's own, also when the user dump says another
			o.next, o.hasNext = th.Seam.UserIP, true
		case th.Stitched && th.User != nil && len(th.User.Frames) > 0:
			o.next, o.hasNext = th.User.Frames[0].IP, true
		}
	}
	t.half(th.Kernel, o)
	if th.Seam != nil || th.User != nil {
		t.line(sgrCyan, "%s", seamLine(th))
	}
}

// reachedUser reports whether a kernel half's outermost frame is the one that
// user mode entered through. When a walk breaks off before that and the trap
// frame is found by its place alone, frames are missing between the two; the
// walk then gives the reason that it broke off for.
func reachedUser(half *triage.Half) bool {
	n := len(half.Frames)
	return half.Stop.Reason == unwind.StopTrapFrame && n > 0 &&
		(half.Stop.Detail == "" || half.Frames[n-1].Method == unwind.MethodTrapSlot)
}

// seamLine is drawn between a kernel half and its user half.
func seamLine(th *triage.Thread) string {
	var notes []string
	if s := th.Seam; s != nil {
		if s.Rule != "" {
			notes = append(notes, clean(seamRule(s.Rule)))
		}
		if s.Note != "" {
			notes = append(notes, clean(s.Note))
		}
	}
	if !th.Stitched && th.User != nil && th.Kernel != nil && !strings.Contains(strings.Join(notes, " "), "not simultaneous") {
		notes = append(notes, "not stitched")
	}
	line := "-- user mode --"
	if len(notes) > 0 {
		line += " " + strings.Join(notes, "; ") + " "
	}
	return line + strings.Repeat("-", max(2, 64-len(line)))
}

// halfOptions say how a half is printed beside others.
type halfOptions struct {
	first     int    // number of the first frame
	noHeader  bool   // the columns were named above
	seam      bool   // the kernel half of a thread, with what follows it
	reached   bool   // seam: the outermost frame is the entry from user mode
	next      uint64 // address that the outermost frame returns to
	hasNext   bool
	trapFrame uint64 // of the outermost frame
}

// width is an architecture whose addresses are as wide as those of a half.
func width(half *triage.Half, arch dump.Arch) dump.Arch {
	if wide(half, arch) {
		return dump.AMD64
	}
	return dump.X86
}

func wide(half *triage.Half, arch dump.Arch) bool {
	if half != nil && half.Registers.Arch != dump.ArchUnknown {
		arch = half.Registers.Arch
	}
	return arch.PointerSize() == 8
}

func (t *text) half(half *triage.Half, o halfOptions) {
	is64 := wide(half, t.arch)
	if !o.noHeader && len(half.Frames) > 0 {
		if is64 {
			t.line("", " # Child-SP          RetAddr               Call Site")
		} else {
			t.line("", " # ChildEBP RetAddr  ")
		}
	}
	n := shown(half, t.limit)
	for _, r := range fold(half.Frames[:n]) {
		for i := r.from; i < r.from+r.count; i++ {
			t.frame(half, i, is64, o)
		}
		if r.repeats > 0 {
			from := o.first + r.from + r.count
			t.line(sgrDim, "   ... frames %02x..%02x repeat the %d above %d times", from, from+r.count*r.repeats-1, r.count, r.repeats)
		}
	}
	t.ending(half, n, o)
}

// ending says how a half ends when that is not at the end of the stack.
func (t *text) ending(half *triage.Half, n int, o halfOptions) {
	switch reason := half.Stop.Reason; {
	case n < len(half.Frames):
		t.line(sgrDim, "   ... %d more frames", len(half.Frames)-n)
	case half.Truncated:
		t.line(sgrYellow, "   ... truncated: the stack goes on")
	case reason == "" || reason == unwind.StopEndOfStack || (reason == unwind.StopTrapFrame && o.reached):
	case reason == unwind.StopTrapFrame && o.trapFrame != 0:
		t.line(sgrYellow, "   ... frames missing (%s); trap frame %s found by its place", clean(half.Stop.Detail), address(o.trapFrame, width(half, t.arch)))
	default:
		t.line(sgrYellow, "   stack ends: %s", clean(joinWith(": ", string(reason), half.Stop.Detail)))
	}
}

func (t *text) frame(half *triage.Half, i int, is64 bool, o halfOptions) {
	f := &half.Frames[i]
	sp, ret := f.SP, ""
	if !is64 && f.HasFP {
		sp = f.FP
	}
	arch := dump.X86
	if is64 {
		arch = dump.AMD64
	}
	switch last := i == len(half.Frames)-1; {
	case !last:
		ret = address(half.Frames[i+1].IP, arch)
	case o.hasNext:
		ret = address(o.next, arch)
	case half.Stop.Reason == unwind.StopEndOfStack:
		ret = address(0, arch)
	case is64:
		ret = unknown64
	default:
		ret = unknown32
	}
	site := callSite(f, arch)
	if o.reached && o.trapFrame != 0 && i == len(half.Frames)-1 {
		site += fmt.Sprintf(" (TrapFrame @ %s)", address(o.trapFrame, arch))
	}
	sgr := ""
	if f.Capture {
		sgr = sgrDim
	}
	site += sourceLine(f.Name.File, f.Name.Line)
	t.inlines(f, is64)
	mark := trustMark(f, cmp.Or(half.Registers.Arch, t.arch))
	if is64 {
		t.line(sgr, "%02x %s %s     %s%s", o.first+i, address(sp, arch), ret, site, mark)
	} else {
		t.line(sgr, "%02x %s %s %s%s", o.first+i, address(sp, arch), ret, site, mark)
	}
}

// callSite names a frame as the debugger does: module!function+0x1f.
func callSite(f *triage.Frame, arch dump.Arch) string {
	if f.Module == nil || f.Module.Module == nil {
		if f.Managed != nil {
			return managedSite(f, arch)
		}
		for _, hit := range f.Unloaded {
			switch module := "<Unloaded_"; {
			case hit.Module == nil:
			case f.Name.Function != "":
				return module + clean(hit.Module.Name()) + ">!" + clean(f.Name.Function) + plus(f.Name.Offset)
			default:
				return fmt.Sprintf("%s%s>+%#x", module, clean(hit.Module.Name()), hit.Offset)
			}
		}
		if f.Name.Function != "" {
			return clean(f.Name.Function) + plus(f.Name.Offset)
		}
		return "0x" + address(f.IP, arch)
	}
	module := clean(moduleAlias(f.Module.Module))
	if f.Name.Function == "" {
		return module + plus(f.IP-f.Module.Base)
	}
	return module + "!" + clean(f.Name.Function) + plus(f.Name.Offset)
}

func plus(offset uint64) string {
	if offset == 0 {
		return ""
	}
	return fmt.Sprintf("+%#x", offset)
}

// moduleAlias is the debugger's name for a module: nt for the kernel, else the
// base name without its extension.
func moduleAlias(m *dump.Module) string {
	if m.IsNT() {
		return "nt"
	}
	name := m.Name()
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}

// trustMark marks the frames that are not certain by how they were found.
func trustMark(f *triage.Frame, arch dump.Arch) string {
	return howFound(f, arch) + mismatchMark(f)
}

// mismatchMark marks a name that comes from symbols of another build.
func mismatchMark(f *triage.Frame) string {
	if f.Module != nil && f.Module.Symbols == symbols.DebugMismatch && (f.Name.Source == symbols.SourcePDB || f.Name.Source == symbols.SourceSym) {
		return " [symbols of another build]"
	}
	return ""
}

// howFound marks a frame that is not certain: how it was found, and whether
// anything proves what a scan led to.
func howFound(f *triage.Frame, arch dump.Arch) string {
	how := f.Trust.String()
	switch f.Trust {
	case unwind.TrustContext, unwind.TrustCFI, unwind.TrustInline:
		how = ""
	case unwind.TrustFramePointer:
		how = f.Method.String()
		if f.Method == unwind.MethodRBP && arch == dump.ARM64 { // the register's name there
			how = "fp"
		}
	}
	switch {
	case f.Proof == triage.Refuted, f.Proof == triage.Unproven && f.Trust != unwind.TrustScan:
		how = joinWith(", ", how, f.Proof.String())
	}
	if how == "" {
		return ""
	}
	return " [" + how + "]"
}

// seamRule puts into words how the trap frame of a seam was found.
func seamRule(rule string) string {
	switch rule {
	case "machine_frame":
		return "trap frame reached by unwinding"
	case "ebp":
		return "trap frame that ebp points to"
	case "fpo":
		return "trap frame by the kernel's frame records"
	case "scan":
		return "trap frame found by a scan of the stack"
	case "trap_frame", "initial_stack":
		return "trap frame by its place below InitialStack"
	case "kthread_trap_frame":
		return "trap frame by KTHREAD.TrapFrame"
	}
	return rule
}

// inlines writes a row for each function that was inlined into a frame,
// innermost first, as the debugger does.
func (t *text) inlines(f *triage.Frame, is64 bool) {
	columns := "   (Inline Function) --------`--------    "
	if !is64 {
		columns = "   (Inline) --------"
	}
	for _, in := range f.Name.Inlines {
		module := ""
		if f.Module != nil && f.Module.Module != nil {
			module = clean(moduleAlias(f.Module.Module)) + "!"
		}
		t.line(sgrDim, "%s %s%s%s", columns, module, clean(in.Function), sourceLine(in.File, in.Line))
	}
}

// sourceLine is " [file @ line]", or "" where the line is not known.
func sourceLine(file string, line uint32) string {
	if file == "" || line == 0 {
		return ""
	}
	return fmt.Sprintf(" [%s @ %d]", clean(file), line)
}
