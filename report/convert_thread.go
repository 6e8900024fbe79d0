package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// stateWaiting is the KTHREAD_STATE in which a wait reason is not stale.
const stateWaiting = 5

func threadJSON(t *triage.Thread, h hexer, limit int) ThreadJSON {
	j := threadHead(t, h)
	j.Frames = []FrameJSON{}
	if t.User != nil {
		j.Frames = framesJSON(t.User, h, limit)
		j.Stop = stopJSON(t.User)
		j.Truncated = t.User.Truncated || len(j.Frames) < len(t.User.Frames)
	}
	if t.Kernel != nil {
		j.KernelFrames = framesJSON(t.Kernel, h, limit)
		j.KernelStop = stopJSON(t.Kernel)
		j.Truncated = j.Truncated || t.Kernel.Truncated || len(j.KernelFrames) < len(t.Kernel.Frames)
	}
	if t.Wow64 != nil {
		j.Wow64Frames = framesJSON(t.Wow64, h, limit)
		j.Truncated = j.Truncated || t.Wow64.Truncated || len(j.Wow64Frames) < len(t.Wow64.Frames)
	}
	if t.Handler != nil {
		j.HandlerFrames = framesJSON(t.Handler, h, limit)
	}
	j.Callbacks = callbacksJSON(t, h, limit)
	j.FrameCount = len(j.Frames)
	return j
}

// threadHead is what is known of a thread besides its frames.
func threadHead(t *triage.Thread, h hexer) ThreadJSON {
	j := ThreadJSON{ThreadID: t.ID, ThreadName: t.Name, Stitched: t.Stitched, TEB: h.known(t.TEB), StartAddress: h.known(t.StartAddress)}
	j.Wait = basicWait(t)
	if t.Thread.Kernel == nil { // a kernel dump does not say
		j.SuspendCount = &t.SuspendCount
	}
	if t.HasLastError {
		j.LastErrorCode = hex32(t.LastError)
		if j.LastErrorValue = codes.Win32Error(t.LastError); j.LastErrorValue == "" {
			j.LastErrorValue = j.LastErrorCode
		}
	}
	if t.StackBase != 0 {
		j.Stack = &StackJSON{h.addr(t.StackBase), h.addr(t.StackLimit)}
	}
	if s := t.Seam; s != nil {
		j.Seam = &SeamJSON{s.Rule, h.known(s.UserIP), h.known(s.UserSP), s.Note}
	}
	j.Times = timesJSON(t.Times)
	j.Kernel = kernelThreadJSON(t, h)
	j.Managed = managedThreadJSON(t.Managed, h)
	return j
}

func timesJSON(t *dump.ThreadTimes) *TimesJSON {
	if t == nil {
		return nil
	}
	j := TimesJSON{Created: timeText(t.Created)}
	if t.HasExit {
		j.Exited = timeText(t.Exited)
	}
	if t.HasInfo || t.Kernel != 0 {
		j.KernelSeconds = ptr(t.Kernel.Seconds())
	}
	if t.HasInfo || t.User != 0 {
		j.UserSeconds = ptr(t.User.Seconds())
	}
	if j == (TimesJSON{}) {
		return nil
	}
	return &j
}

func kernelThreadJSON(t *triage.Thread, h hexer) *KernelThreadJSON {
	k := t.KernelInfo
	if k == nil {
		if t.KernelNote == "" {
			return nil
		}
		return &KernelThreadJSON{Note: t.KernelNote}
	}
	j := &KernelThreadJSON{ETHREAD: h.known(k.ETHREAD), State: threadState(k), Note: joinNotes(k.Note, t.KernelNote)}
	if k.State == stateWaiting {
		j.WaitReason = codes.WaitReason(k.WaitReason)
	}
	if k.CPU >= 0 {
		j.CPU = &k.CPU
	}
	j.Wait = kernelWaitJSON(k.Wait, h)
	if t.Thread.Kernel != nil { // of a user dump's thread the dump says it
		j.PID, j.EPROCESS = knownCount(k.PID), h.known(k.EPROCESS)
	}
	return j
}

// threadState names the state of a thread; live triage dumps capture a thread
// inside itself and overwrite the state with 0xff. Where the thread's object was
// not found there is no state, though its number is 0.
func threadState(k *dump.KernelThread) string {
	if k.Live && k.State == 0xff {
		return "CapturedByApc"
	}
	if k.ETHREAD == 0 && k.State == 0 {
		return ""
	}
	return codes.ThreadState(k.State)
}

func joinNotes(notes ...string) string {
	var keep []string
	for _, n := range notes {
		if n != "" {
			keep = append(keep, n)
		}
	}
	return strings.Join(keep, "; ")
}

func stopJSON(half *triage.Half) *StopJSON {
	if half.Stop.Reason == "" {
		return nil
	}
	return &StopJSON{string(half.Stop.Reason), half.Stop.Detail}
}

func framesJSON(half *triage.Half, h hexer, limit int) []FrameJSON {
	n := shown(half, limit)
	out := make([]FrameJSON, n)
	for i := range n {
		fillFrame(&out[i], &half.Frames[i], i, h)
	}
	if n > 0 {
		out[0].Registers = registersJSON(&half.Registers, h)
	}
	return out
}

// shown is how many frames of a half a limit lets through.
func shown(half *triage.Half, limit int) int {
	if limit > 0 {
		return min(limit, len(half.Frames))
	}
	return len(half.Frames)
}

func fillFrame(j *FrameJSON, f *triage.Frame, index int, h hexer) {
	*j = FrameJSON{
		Frame: index, Trust: f.Trust.String(), TrustDetail: f.Detail, Proof: f.Proof.String(), Unwind: f.Method.String(),
		Offset: h.addr(f.Lookup), IP: h.addr(f.IP), ChildSP: h.known(f.SP), SymbolSource: string(f.Name.Source),
	}
	if j.SymbolSource == "" {
		j.SymbolSource = string(symbols.SourceNone)
	}
	if f.Module != nil && f.Module.Module != nil {
		j.Module = f.Module.Name()
		j.ModuleOffset = h.addr(f.IP - f.Module.Base)
		j.MissingSymbols = f.Name.Function == "" || f.Name.Source == symbols.SourcePdata
	}
	if f.Name.Function != "" {
		j.Function, j.FunctionFull = f.Name.Function, f.Name.Full
		j.FunctionOffset = h.addr(f.Name.Offset)
		j.sourceLines(&f.Name)
	}
	j.Managed = managedFrameJSON(f.Managed)
	j.UnloadedModules = hitsJSON(f.Unloaded, h)
}

// hitsJSON gathers the offsets of hits in modules of the same name.
func hitsJSON(hits []triage.UnloadedHit, h hexer) []UnloadedHitJSON {
	var out []UnloadedHitJSON
next:
	for _, hit := range hits {
		if hit.Module == nil {
			continue
		}
		name := hit.Module.Name()
		for i := range out {
			if out[i].Module == name {
				out[i].Offsets = append(out[i].Offsets, h.addr(hit.Offset))
				continue next
			}
		}
		out = append(out, UnloadedHitJSON{name, []string{h.addr(hit.Offset)}})
	}
	return out
}

func registersJSON(r *dump.Registers, h hexer) map[string]string {
	out := map[string]string{}
	for reg := range dump.Reg(dump.NumRegs) {
		v, ok := r.Get(reg)
		name := r.Arch.RegName(reg)
		if !ok || name == "" {
			continue
		}
		switch name {
		case "efl":
			out["eflags"] = hex32(uint32(v))
		case "cpsr":
			out[name] = hex32(uint32(v))
		case "cs", "ss":
			out[name] = fmt.Sprintf("0x%04x", v)
		default:
			out[name] = h.addr(v)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// sourceLines adds what only debug information knows.
func (j *FrameJSON) sourceLines(n *symbols.Name) {
	j.File, j.Line = clean(n.File), lineNumber(n.Line)
	for _, in := range n.Inlines {
		j.Inlines = append(j.Inlines, InlineJSON{Function: clean(in.Function), File: clean(in.File), Line: lineNumber(in.Line)})
	}
}

func lineNumber(n uint32) *uint32 {
	if n == 0 {
		return nil
	}
	return &n
}
