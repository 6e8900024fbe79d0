package report

import (
	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/crash"
	"dumptriage/triage/hang"
	"dumptriage/triage/verdict"
)

// WaitJSON is what a thread does or waits for.
type WaitJSON struct {
	Class         string  `json:"class,omitempty" jsonschema_description:"see docs/hangs.md"`
	Object        string  `json:"object,omitempty" jsonschema_description:"what is waited for, in words"`
	OwnerThreadID *uint32 `json:"owner_thread_id,omitempty"`
	Detail        string  `json:"detail,omitempty" jsonschema_description:"how it is known and what else is, in words"`

	Confidence      string       `json:"confidence,omitempty" jsonschema:"enum=high,enum=medium,enum=low"`
	ObjectKind      string       `json:"object_kind,omitempty"`
	ObjectAddress   string       `json:"object_address,omitempty"`
	ObjectSymbol    string       `json:"object_symbol,omitempty" jsonschema_description:"what the address is in its module"`
	Handles         []HandleJSON `json:"handles,omitempty" jsonschema_description:"that are waited for"`
	WaitAll         bool         `json:"wait_all,omitempty" jsonschema_description:"all handles are waited for, not any"`
	Lock            *LockJSON    `json:"lock,omitempty" jsonschema_description:"the critical section in memory"`
	SlimLock        *SlimJSON    `json:"slim_lock,omitempty" jsonschema_description:"the slim reader/writer lock in memory"`
	Value           string       `json:"value,omitempty" jsonschema_description:"the word at the address"`
	OwnerConfidence string       `json:"owner_confidence,omitempty" jsonschema:"enum=high,enum=medium,enum=low"`
	OwnerInDump     *bool        `json:"owner_in_dump,omitempty"`
	Evidence        []string     `json:"evidence,omitempty" jsonschema_description:"where object and owner were found"`
	Frame           *int         `json:"frame,omitempty" jsonschema_description:"index in frames, or in kernel_frames with kernel"`
	Kernel          bool         `json:"kernel,omitempty"`
	Rule            string       `json:"rule,omitempty"`
	Roles           []string     `json:"roles,omitempty"`
	Holds           []string     `json:"holds,omitempty" jsonschema_description:"what frames show the thread to hold"`
	CPUShare        *float64     `json:"cpu_share,omitempty" jsonschema_description:"of one processor, since the thread began"`
}

// LockJSON is a critical section as memory holds it.
type LockJSON struct {
	OwningThread   string `json:"owning_thread"`
	LockCount      int32  `json:"lock_count"`
	RecursionCount int32  `json:"recursion_count"`
	Confirmed      bool   `json:"confirmed" jsonschema_description:"its debug information points back to it"`
}

// SlimJSON is a slim reader/writer lock as memory holds it. Who holds it is not in it.
type SlimJSON struct {
	Locked     bool    `json:"locked"`
	Contended  bool    `json:"contended" jsonschema_description:"threads are queued: then it does not say whether a writer or readers hold it"`
	Readers    *uint64 `json:"readers,omitempty" jsonschema_description:"that hold it, 0 for a writer; of a lock that is held and not contended"`
	LastWaiter *uint32 `json:"last_waiter_thread_id,omitempty" jsonschema_description:"the thread that queued last"`
}

func slimJSON(inc *triage.Incident, s *hang.SlimLock) *SlimJSON {
	if s == nil {
		return nil
	}
	j := &SlimJSON{Locked: s.Locked, Contended: s.Contended}
	if s.Locked && !s.Contended {
		j.Readers = &s.Readers
	}
	if s.LastWaiter >= 0 && s.LastWaiter < len(inc.Threads) {
		j.LastWaiter = &inc.Threads[s.LastWaiter].ID
	}
	return j
}

// slimWords say what a slim lock's word tells.
func slimWords(s *hang.SlimLock) string {
	switch {
	case s == nil:
		return ""
	case s.Locked && s.Contended:
		return "held, with threads queued"
	case s.Contended:
		return "free in memory, with threads queued"
	case !s.Locked:
		return "the lock is free in memory"
	case s.Readers == 0:
		return "held by a writer"
	}
	return "held by " + plural(int(s.Readers), "reader")
}

// HangAnalysisJSON is what the threads of a process do to each other.
type HangAnalysisJSON struct {
	Class           string          `json:"class" jsonschema_description:"see docs/hangs.md"`
	Reason          string          `json:"reason,omitempty" jsonschema_description:"one sentence"`
	Confidence      string          `json:"confidence,omitempty" jsonschema:"enum=high,enum=medium,enum=low"`
	SubjectThreadID *uint32         `json:"subject_thread_id,omitempty" jsonschema_description:"the thread that the class is about"`
	Cycle           []HangLinkJSON  `json:"cycle,omitempty" jsonschema_description:"the first deadlock: each waits for the next, the last for the first"`
	Cycles          [][]uint32      `json:"cycles,omitempty" jsonschema_description:"thread ids of every deadlock"`
	Chains          [][]uint32      `json:"chains,omitempty" jsonschema_description:"thread ids, from who waits to who is waited for"`
	RootBlockers    []RootJSON      `json:"root_blockers,omitempty"`
	Orphans         []ContendedJSON `json:"orphans,omitempty" jsonschema_description:"locks whose owner the dump does not have"`
	Contended       []ContendedJSON `json:"contended,omitempty" jsonschema_description:"locks that several threads wait for"`
	Counts          map[string]int  `json:"counts,omitempty" jsonschema_description:"threads by class of wait"`
	Unresolved      int             `json:"unresolved,omitempty" jsonschema_description:"threads too many to look for their objects and owners to the end"`
}

// HangLinkJSON is a thread in a deadlock.
type HangLinkJSON struct {
	ThreadID uint32 `json:"thread_id"`
	WaitJSON
}

// RootJSON is a thread that others wait for and that itself waits for none.
type RootJSON struct {
	ThreadID uint32   `json:"thread_id"`
	Class    string   `json:"class,omitempty"`
	Waiters  []uint32 `json:"waiters"`
}

// ContendedJSON is an object and the threads that wait for it.
type ContendedJSON struct {
	Object        string   `json:"object"`
	ObjectAddress string   `json:"object_address,omitempty"`
	OwnerThreadID *uint32  `json:"owner_thread_id,omitempty"`
	Waiters       []uint32 `json:"waiters"`
}

func waitJSON(inc *triage.Incident, v *verdict.Verdict, index int, h hexer) *WaitJSON {
	if v == nil {
		return nil
	}
	return hangWaitJSON(inc, v.Hang, index, h)
}

func hangWaitJSON(inc *triage.Incident, v *hang.Verdict, index int, h hexer) *WaitJSON {
	if v == nil || index >= len(v.Waits) {
		return nil
	}
	w := &v.Waits[index]
	if w.Class == hang.ClassUnknown {
		return nil
	}
	o := &w.Object
	j := &WaitJSON{Class: string(w.Class), Confidence: string(w.Confidence), Kernel: w.Kernel, Rule: w.Rule, Roles: w.Roles}
	j.Object, j.Detail = objectText(o, inc.System.Arch), waitDetail(w)
	if s := objectInKernel(w); s != "" {
		j.Object = s
	}
	if w.Frame >= 0 {
		j.Frame = &w.Frame
	}
	for _, k := range w.Holds {
		j.Holds = append(j.Holds, string(k))
	}
	if w.HasCPU {
		j.CPUShare = &w.CPUShare
	}
	if !o.Known() { // who has it may be known all the same
		j.setOwner(w, inc.System.Arch)
		return j
	}
	j.ObjectKind = string(o.Kind)
	if !isHandle(o.Kind) {
		j.ObjectAddress = h.known(o.Value)
	}
	j.ObjectSymbol = placeText(o.Place)
	for _, x := range o.Handles {
		hj := HandleJSON{Handle: h.addr(x.Value)}
		if x.Listed != nil {
			hj.TypeName, hj.ObjectName = x.Listed.Type, x.Listed.Name
			hj.setState(x.Listed.State)
		}
		j.Handles = append(j.Handles, hj)
	}
	j.WaitAll = o.WaitAll
	if l := o.Lock; l != nil {
		j.Lock = &LockJSON{h.addr(l.OwningThread), l.LockCount, l.RecursionCount, l.Confirmed}
	}
	j.SlimLock = slimJSON(inc, o.Slim)
	if o.Word != nil {
		j.Value = h.addr(*o.Word)
	}
	j.Evidence = evidenceTexts(o.Evidence, inc.System.Arch)
	j.setOwner(w, inc.System.Arch)
	return j
}

func (j *WaitJSON) setOwner(w *hang.Wait, arch dump.Arch) {
	if w.Owner == nil {
		return
	}
	in := w.Owner.Index >= 0 || w.Owner.Elsewhere
	j.OwnerThreadID, j.OwnerConfidence, j.OwnerInDump = &w.Owner.ThreadID, string(w.Owner.Confidence), &in
	for _, e := range evidenceTexts(w.Owner.Evidence, arch) {
		j.Evidence = append(j.Evidence, "owner: "+e)
	}
}

func isHandle(k hang.Kind) bool { return k == hang.KindHandle || k == hang.KindHandles }

func hangJSON(inc *triage.Incident, v *hang.Verdict) *HangAnalysisJSON {
	if v == nil {
		return nil
	}
	h := hexFor(inc.System.Arch)
	ids := func(list []int) []uint32 {
		out := make([]uint32, len(list))
		for k, i := range list {
			out[k] = inc.Threads[i].ID
		}
		return out
	}
	j := &HangAnalysisJSON{Class: string(v.State), Reason: hangReason(inc, v), Confidence: string(v.Confidence), Counts: map[string]int{}, Unresolved: v.Unresolved}
	if v.Subject >= 0 {
		j.SubjectThreadID = &inc.Threads[v.Subject].ID
	}
	for k, c := range v.Cycles {
		j.Cycles = append(j.Cycles, ids(c))
		if k > 0 {
			continue
		}
		for _, i := range c {
			if w := hangWaitJSON(inc, v, i, h); w != nil {
				j.Cycle = append(j.Cycle, HangLinkJSON{inc.Threads[i].ID, *w})
			}
		}
	}
	for _, c := range v.Chains {
		j.Chains = append(j.Chains, ids(c))
	}
	for _, r := range v.Roots {
		j.RootBlockers = append(j.RootBlockers, RootJSON{inc.Threads[r.Thread].ID, string(v.Waits[r.Thread].Class), ids(r.Waiters)})
	}
	contended := func(list []hang.Contended) []ContendedJSON {
		var out []ContendedJSON
		for _, c := range list {
			x := ContendedJSON{Object: objectText(&c.Object, inc.System.Arch), Waiters: ids(c.Waiters)}
			if !isHandle(c.Object.Kind) {
				x.ObjectAddress = h.known(c.Object.Value)
			}
			if c.Owner != nil {
				x.OwnerThreadID = &c.Owner.ThreadID
			}
			out = append(out, x)
		}
		return out
	}
	j.Orphans, j.Contended = contended(v.Orphans), contended(v.Contended)
	for i := range v.Waits {
		j.Counts[classKey(v.Waits[i].Class)]++
	}
	return j
}

func classKey(c hang.Class) string {
	if c == hang.ClassUnknown {
		return "unknown"
	}
	return string(c)
}

// hangReason adds what the threads do to each other, and the frame that is to
// blame when they hang.
func (a *AnalysisJSON) hangReason(inc *triage.Incident, all *verdict.Verdict) {
	v := all.Hang
	if v == nil || all.OneThread {
		return
	}
	a.Reason, a.Confidence = hangReason(inc, v), string(v.Confidence)
	for i := range v.Next {
		a.NextSteps = append(a.NextSteps, stepText(inc, hangSteps[v.Next[i].Kind], v.Next[i].Modules))
	}
	if f := hangBlame(inc, v); f != nil {
		a.Blame = blameText(f)
		if !f.Certain() {
			a.Confidence = string(hang.Low)
		}
	}
}

// hangBlame is the frame from which the program called what waits or runs, nil
// when nothing hangs, or no module or name says where it is.
func hangBlame(inc *triage.Incident, v *hang.Verdict) *triage.Frame {
	if v == nil || v.Subject < 0 || !v.Hangs() {
		return nil
	}
	w, t := &v.Waits[v.Subject], &inc.Threads[v.Subject]
	if w.Kernel || t.User == nil || w.Caller < 0 || w.Caller >= len(t.User.Frames) {
		return nil
	}
	f := &t.User.Frames[w.Caller]
	if (f.Module == nil || f.Module.Module == nil) && f.Name.Function == "" {
		return nil
	}
	return f
}

// hangSteps say what to do; %s stands for the dump and %m for modules.
var hangSteps = map[hang.NextKind]string{
	hang.NextImages:  "to see what threads wait for give --images DIR; dumptriage symbols list %s tells which: %m",
	hang.NextSymbols: nextWords[crash.NextSymbols],
	hang.NextCompare: "a hang, or slow? take another dump some seconds later: dumptriage compare %s NEXT.dmp",
	hang.NextMemory:  "take a full dump (procdump -ma): this one lacks the locks, which name their owners",
	hang.NextOther:   "dump the other process too (procdump -ma PID): the answer is to come from there",
	hang.NextKernel:  "take the kernel half too (procdump -ma -mk): it shows what the call waits for",
	hang.NextAgain:   "if the program did not answer at other times, take the dump while it does not",
}
