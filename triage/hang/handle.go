package hang

import (
	"dumptriage/dump"
	"dumptriage/triage"
)

const maxWaitHandles = 64 // MAXIMUM_WAIT_OBJECTS

var classOfType = map[string]Class{
	"Mutant": ClassMutex, "Event": ClassEvent, "Semaphore": ClassSemaphore, "Timer": ClassTimer, "IRTimer": ClassTimer,
	"Process": ClassProcess, "Thread": ClassThread, "Job": ClassJob, "File": ClassIO, "IoCompletion": ClassIOCompletion,
}

// handleObject fills in the handle that a thread waits for, and what the dump
// says of it.
func (a *analysis) handleObject(w *Wait, h *triage.Half, regs []dump.Registers, m match) {
	v, ev, ok := a.argument(h, regs, m.frame, m.arg)
	if !ok {
		return
	}
	if h.Registers.Arch.PointerSize() == 4 {
		v &= 0xffffffff
	}
	w.Object = Object{Kind: KindHandle, Value: v, Evidence: []Evidence{ev}, Confidence: Medium}
	w.Object.Handles = []Handle{a.handle(v)}
	a.judgeHandle(w)
}

// judgeHandle narrows the class of a wait for one handle by its type.
func (a *analysis) judgeHandle(w *Wait) {
	listed := w.Object.Handles[0].Listed
	if listed == nil {
		return
	}
	w.Object.Confidence = High
	w.Object.Evidence = append(w.Object.Evidence, Evidence{Source: FromHandles, Frame: -1})
	if c, ok := classOfType[listed.Type]; ok && w.Class == ClassObject {
		w.Class = c
	}
	w.Owner = w.Object.Handles[0].Owner
}

// handlesObject reads the array of handles that a thread waits for.
func (a *analysis) handlesObject(w *Wait, h *triage.Half, regs []dump.Registers, m match) {
	at, ev, ok1 := a.argument(h, regs, m.frame, m.arg)
	count, _, ok2 := a.argument(h, regs, m.frame, m.count)
	count &= 0xffffffff
	if !ok1 || !ok2 || count == 0 || count > maxWaitHandles {
		return
	}
	o := Object{Kind: KindHandles, Evidence: []Evidence{ev}, Confidence: Medium}
	size := uint64(h.Registers.Arch.PointerSize())
	for i := range count {
		v, err := dump.ReadPointer(a.space, h.Registers.Arch, at+i*size)
		if err != nil {
			return
		}
		o.Handles = append(o.Handles, a.handle(v))
	}
	if m.all >= 0 {
		v, _, ok := a.argument(h, regs, m.frame, m.all)
		o.WaitAll = ok && v&0xffffffff != 0
	} else if m.any >= 0 {
		v, _, ok := a.argument(h, regs, m.frame, m.any)
		o.WaitAll = ok && v&0xffffffff == 0
	}
	w.Object = o
	if count == 1 {
		w.Object.Kind, w.Object.Value = KindHandle, o.Handles[0].Value
		if w.Class == ClassObjects { // a rule that says what for says more
			w.Class = ClassObject
		}
		a.judgeHandle(w)
	}
}

// handle finds a handle in the dump's list. The two low bits of a handle are the
// program's own.
func (a *analysis) handle(v uint64) Handle {
	h := Handle{Value: v, Listed: a.handles[v&^3]}
	if h.Listed == nil || h.Listed.State == nil {
		return h
	}
	switch s := h.Listed.State; h.Listed.Type {
	case "Mutant":
		h.Owner = a.ownerByClient(s.Owner)
	case "Thread":
		// Who waits for a thread to end waits for that thread.
		if o := a.ownerByClient(s.Thread); o != nil && o.Index >= 0 && !s.Exited {
			if s.TEB != 0 && s.TEB == a.inc.Threads[o.Index].TEB {
				o.Confidence = High
			}
			h.Owner = o
		}
	}
	return h
}

// ownerByClient is a thread of the dump's process by what a handle's records say;
// nil when it is of another process.
func (a *analysis) ownerByClient(id *dump.ClientID) *Owner {
	if p := &a.inc.Process; id == nil || !p.HasPID || id.Process != p.PID {
		return nil
	}
	o := a.ownerByID(id.Thread, Evidence{Source: FromHandles, Frame: -1})
	o.Confidence = Medium
	return o
}
