package hang

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/triage"
)

// fromKernel adds what the kernel's own structures say of a wait: which object
// it is and who owns it. A lock of user mode, which the kernel does not know,
// keeps the class that the stack gives.
func (a *analysis) fromKernel(w *Wait, t *triage.Thread) {
	if t.KernelInfo == nil || t.KernelInfo.Wait == nil {
		return
	}
	k := t.KernelInfo.Wait
	class := Class(k.Class)
	if k.Class != "" && slices.Contains(classes, class) && w.Class.vague() && !(class == ClassAddress && w.Class != ClassUnknown) {
		w.Class, w.Kernel, w.Frame, w.Rule, w.Confidence = class, true, -1, "", High
	}
	if w.Class.userLock() {
		return
	}
	w.InKernel = k
	if v := objectOf(k); v != 0 && !w.Object.Known() && !w.Class.Idle() && w.Class != ClassSleep && w.Class != ClassSuspended {
		w.Object = Object{Kind: KindKernel, Value: v, WaitAll: k.All, Evidence: []Evidence{{Source: FromKernel, Frame: -1}}, Confidence: High}
	}
	if o := k.Owner(); o != nil && o.TID != 0 && w.Owner == nil {
		i := a.indexOf(o)
		w.Owner = &Owner{ThreadID: o.TID, Index: i, Elsewhere: i < 0, Evidence: []Evidence{{Source: FromKernel, Frame: -1}}, Confidence: High}
	}
}

// objectOf is the address of the message or of the first object that is waited
// for, 0 when there is none but the thread's own.
func objectOf(k *dump.KernelWait) uint64 {
	if k.Message != nil {
		return k.Message.Address
	}
	for i := range k.Objects {
		if !k.Objects[i].Own {
			return k.Objects[i].Address
		}
	}
	return 0
}

// indexOf finds a thread by its ETHREAD, which unlike an id is of one process.
func (a *analysis) indexOf(o *dump.ThreadRef) int {
	if i, ok := a.byETHREAD[o.ETHREAD]; ok {
		return i
	}
	return -1
}

// vague reports whether a class says less than the kernel may know.
func (c Class) vague() bool {
	switch c {
	case ClassUnknown, ClassRunning, ClassSystemCall, ClassObject, ClassObjects, ClassIO:
		return true
	}
	return false
}

// userLock reports whether the class is a lock that user mode made by itself:
// what the kernel waits for is then only the means.
func (c Class) userLock() bool {
	switch c {
	case ClassCritical, ClassSRW, ClassCondition, ClassMonitor, ClassTask, ClassLoaderLock, ClassInitOnce, ClassBarrier, ClassGC:
		return true
	}
	return false
}
