package hang

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// kernelThread is a thread of a full kernel dump, with what its kernel structures
// say that it waits for.
func kernelThread(id uint32, w *dump.KernelWait, user ...string) triage.Thread {
	k := &dump.KernelThread{ETHREAD: 0xffff900000000000 + uint64(id), State: 5, PID: 7, Wait: w}
	return triage.Thread{Thread: dump.Thread{ID: id, Kernel: k}, KernelInfo: k, User: half(user...), Kernel: half("nt!KiSwapContext", "nt!KiSwapThread")}
}

func ref(pid, id uint32) *dump.ThreadRef {
	return &dump.ThreadRef{ETHREAD: 0xffff900000000000 + uint64(pid-7)<<32 + uint64(id), PID: pid, TID: id}
}

var waitFrames = []string{"ntdll!NtWaitForSingleObject", "KERNELBASE!WaitForSingleObjectEx", "app!Work"}

// TestKernelOwners lets two threads wait for each other's mutants: no handle, no
// code and no memory tells, the kernel's structures do.
func TestKernelOwners(t *testing.T) {
	mutex := func(at uint64, owner *dump.ThreadRef) *dump.KernelWait {
		return &dump.KernelWait{Class: "mutex", Objects: []dump.WaitObject{{Address: at, Type: "mutant", Owner: owner}}}
	}
	v := Of(incident(kernelThread(10, mutex(0xa0, ref(7, 20)), waitFrames...), kernelThread(20, mutex(0xb0, ref(7, 10)), waitFrames...)), builtinRules(t))
	if v.State != Deadlock || len(v.Cycles) != 1 || len(v.Cycles[0]) != 2 {
		t.Fatalf("state %q, cycles %v", v.State, v.Cycles)
	}
	w := v.Waits[0]
	if w.Class != ClassMutex || w.Object.Kind != KindKernel || w.Object.Value != 0xa0 || w.Owner.ThreadID != 20 || w.Owner.Confidence != High {
		t.Errorf("wait %+v, owner %+v", w, w.Owner)
	}
}

// TestKernelWaitClasses: the kernel names a wait that the stack leaves open, and
// leaves alone a lock of user mode, for which its event is only the means.
func TestKernelWaitClasses(t *testing.T) {
	event := []dump.WaitObject{{Address: 0xc0, Type: "synchronization event"}}
	elsewhere := &dump.KernelWait{Class: "alpc", Message: &dump.ALPCMessage{Address: 0xd0, Server: ref(9, 10)}} // an id that is taken here too
	for _, c := range []struct {
		name  string
		wait  *dump.KernelWait
		stack []string
		class Class
		kind  Kind
		owner bool
	}{
		{"open", &dump.KernelWait{Class: "event", Objects: event}, waitFrames, ClassEvent, KindKernel, false},
		{"user lock", &dump.KernelWait{Class: "event", Objects: event},
			[]string{"ntdll!NtWaitForSingleObject", "ntdll!RtlpWaitOnCriticalSection", "ntdll!RtlEnterCriticalSection", "app!Work"}, ClassCritical, KindCritical, false},
		{"no stack", &dump.KernelWait{Class: "suspended", Objects: event}, nil, ClassSuspended, KindNone, false},
		{"another process", elsewhere, waitFrames, ClassALPC, KindKernel, true},
	} {
		v := Of(incident(kernelThread(11, c.wait, c.stack...), kernelThread(10, nil, "app!Run")), builtinRules(t))
		w := v.Waits[0]
		if w.Class != c.class || w.Object.Kind != c.kind || (w.Owner != nil) != c.owner {
			t.Errorf("%s: class %q, object %q, owner %+v", c.name, w.Class, w.Object.Kind, w.Owner)
		}
		if w.Owner != nil && w.Owner.Index != -1 {
			t.Errorf("%s: the owner is thread %d, of this process", c.name, w.Owner.Index)
		}
		if len(v.Orphans) != 0 {
			t.Errorf("%s: %+v has no owner that lives", c.name, v.Orphans)
		}
	}
}
