package hang

import (
	"slices"

	"dumptriage/managed"
	"dumptriage/triage"
)

// fromRuntime adds what the .NET runtime's structures say of a thread: that it runs
// finalizers or has stopped the others, and which object's lock it waits for.
func (a *analysis) fromRuntime(w *Wait, t *triage.Thread) {
	rt := a.inc.Runtime
	if rt == nil || t.User == nil {
		return
	}
	if t.ID != 0 && t.ID == rt.Suspender {
		w.Holds = addNew(w.Holds, KindGC)
	}
	if t.ID != 0 && t.ID == rt.Finalizer {
		w.Roles = addNew(w.Roles, roleFinalizer)
		a.idleFinalizer(w, t)
	}
	if w.Class == ClassMonitor {
		a.monitor(w, t)
	}
}

// idleFinalizer recognises the finalizers' thread while it runs none: it waits, and
// no managed code is on its stack.
func (a *analysis) idleFinalizer(w *Wait, t *triage.Thread) {
	runs := slices.ContainsFunc(t.User.Frames, func(f triage.Frame) bool { return f.Managed != nil })
	if (w.Class == ClassObject || w.Class == ClassObjects || w.Class == ClassEvent) && !runs && !guessed(t.User.Frames) {
		w.Class, w.Object, w.Owner = ClassIdleWorker, Object{}, nil
	}
}

// monitor finds the object whose lock a thread waits for: it waits for the event that
// the lock's own structure names. Who waits in Monitor.Wait waits for another.
func (a *analysis) monitor(w *Wait, t *triage.Thread) {
	rt := a.inc.Runtime
	if len(rt.Monitors) == 0 || w.Object.Known() {
		return
	}
	event := a.waitedEvent(w, t)
	if event == 0 {
		return
	}
	at := slices.IndexFunc(rt.Monitors, func(m managed.Monitor) bool { return m.Event == event })
	if at < 0 {
		return
	}
	m := &rt.Monitors[at]
	ev := Evidence{Source: FromRuntime, Frame: -1}
	w.Object = Object{Kind: KindMonitor, Value: m.Object, Type: m.Type, Evidence: []Evidence{ev}, Confidence: High}
	if m.OwnerOSID != 0 && m.OwnerOSID != t.ID {
		w.Owner = a.ownerByID(m.OwnerOSID, ev)
	}
}

// waitedEvent is the one handle that a thread waits for, whatever it does so for; 0
// when it is not known.
func (a *analysis) waitedEvent(w *Wait, t *triage.Thread) uint64 {
	probe := *w
	probe.Class, probe.Object, probe.Owner = ClassObject, Object{}, nil
	probe.matches = slices.DeleteFunc(slices.Clone(w.matches), func(m match) bool { return m.object != KindHandle && m.object != KindHandles })
	a.resolve(&probe, t)
	if probe.Object.Kind != KindHandle || len(probe.Object.Handles) != 1 {
		return 0
	}
	return probe.Object.Value
}
