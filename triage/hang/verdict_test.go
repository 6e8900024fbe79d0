package hang

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// waitsFor is a thread that waits for a critical section at an address, held by
// the thread with the index owner; -1 not known, -2 by one that is gone.
func waitsFor(lock uint64, owner int, c Confidence) Wait {
	w := Wait{Class: ClassCritical, Confidence: High, Object: Object{Kind: KindCritical, Value: lock, Confidence: High}}
	switch {
	case owner >= 0:
		w.Owner = &Owner{ThreadID: uint32(100 + 4*owner), Index: owner, Confidence: c}
	case owner == -2:
		w.Owner = &Owner{ThreadID: 4444, Index: -1, Confidence: c}
	}
	return w
}

func does(c Class) Wait { return Wait{Class: c, Confidence: High} }

// judged is the verdict on threads 100, 104, 108 ...
func judged(waits ...Wait) *Verdict {
	inc := incident()
	for i := range waits {
		inc.Threads = append(inc.Threads, triage.Thread{Thread: dump.Thread{ID: uint32(100 + 4*i)}})
	}
	return (&analysis{inc: inc, waits: waits}).verdict()
}

func TestVerdict(t *testing.T) {
	gui := func(w Wait) Wait { w.Roles = []string{roleGUI}; return w }
	loader := Wait{Class: ClassLoaderLock, Confidence: High, Object: Object{Kind: KindLoader}, Owner: &Owner{ThreadID: 104, Index: 1, Confidence: Medium}}
	gc := Wait{Class: ClassGC, Confidence: High, Object: Object{Kind: KindGC}, Owner: &Owner{ThreadID: 104, Index: 1, Confidence: Medium}}
	spin := func(share float64) Wait { return Wait{Class: ClassSpinning, CPUShare: share, HasCPU: true} }
	for _, c := range []struct {
		name    string
		waits   []Wait
		state   State
		conf    Confidence
		subject int
		chain   string
	}{
		{"cycle of two", []Wait{does(ClassSleep), waitsFor(0x10, 2, High), waitsFor(0x20, 1, High)}, Deadlock, High, 1, "[1 2]"},
		{"cycle of three and one outside", []Wait{waitsFor(0x10, 1, High), waitsFor(0x20, 3, High), waitsFor(0x30, 1, Medium), waitsFor(0x40, 2, High)},
			Deadlock, Medium, 1, "[1 3 2]"},
		{"inferred cycle", []Wait{waitsFor(0x10, 1, Low), waitsFor(0x20, 0, High)}, Possible, Low, 0, "[0 1]"},
		{"itself", []Wait{does(ClassIdleWorker), waitsFor(0x10, 1, Medium)}, SelfDeadlock, Medium, 1, "[1]"},
		{"orphan", []Wait{does(ClassRunning), waitsFor(0x10, -2, High)}, Orphaned, High, 1, "[1]"},
		{"loader lock", []Wait{loader, does(ClassIO), loader}, LoaderLock, Medium, 1, "[0 1]"},
		{"loader lock, nobody known", []Wait{does(ClassIO), {Class: ClassLoaderLock}}, LoaderLock, Medium, 1, "[1]"},
		{"chain", []Wait{waitsFor(0x10, 1, High), waitsFor(0x20, 2, High), does(ClassIO), waitsFor(0x10, 1, High)}, Blocked, High, 2, "[0 1 2]"},
		{"most waiters", []Wait{does(ClassIO), waitsFor(0x10, 0, High), does(ClassSleep), waitsFor(0x20, 2, High), waitsFor(0x20, 2, High)}, Blocked, High, 2, "[3 2]"},
		{"garbage collection", []Wait{gc, does(ClassRunning), gc}, GCSuspension, Medium, 1, "[0 1]"},
		{"window", []Wait{does(ClassIdleWorker), gui(does(ClassProcess))}, GUIBlocked, High, 1, "[1]"},
		{"window idle", []Wait{gui(does(ClassIdleGUI)), does(ClassIO)}, Waiting, High, 1, "[1]"},
		{"owner not known", []Wait{waitsFor(0x10, -1, ""), does(ClassIdleWorker), waitsFor(0x10, -1, "")}, Contention, Medium, 0, "[0]"},
		{"spinning", []Wait{does(ClassSleep), spin(0.6), spin(0.9)}, Spinning, Medium, 2, "[2]"},
		{"process", []Wait{does(ClassProcess), does(ClassIdleWorker)}, ForProcess, High, 0, "[0]"},
		{"idle", []Wait{does(ClassIdleGUI), does(ClassIdleWorker), does(ClassIOCompletion), does(ClassUnknown)}, Idle, Low, -1, "[]"},
		{"idle, all of them", []Wait{does(ClassIdleGUI), does(ClassIdleWorker)}, Idle, Medium, -1, "[]"},
		{"active", []Wait{does(ClassRunning)}, Active, High, 0, "[0]"},
		{"nothing known", []Wait{does(ClassUnknown)}, NoThreads, Low, -1, "[]"},
		{"no threads", nil, NoThreads, Low, -1, "[]"},
	} {
		v := judged(c.waits...)
		if v.State != c.state || v.Confidence != c.conf || v.Subject != c.subject || fmt.Sprint(v.Chain()) != c.chain {
			t.Errorf("%s: %s (%s) about %d, chain %v; want %s (%s) %d %s", c.name, v.State, v.Confidence, v.Subject, v.Chain(), c.state, c.conf, c.subject, c.chain)
		}
	}
}

func TestVerdictLists(t *testing.T) {
	v := judged(waitsFor(0x10, 1, High), waitsFor(0x20, 2, High), does(ClassIO), waitsFor(0x10, 1, High), waitsFor(0x50, -2, High))
	if len(v.Roots) != 1 || v.Roots[0].Thread != 2 || fmt.Sprint(v.Roots[0].Waiters) != "[0 1 3]" {
		t.Errorf("roots %+v", v.Roots)
	}
	if fmt.Sprint(v.Chains) != "[[0 1 2] [3 1 2]]" {
		t.Errorf("chains %v", v.Chains)
	}
	if len(v.Orphans) != 1 || v.Orphans[0].Object.Value != 0x50 || fmt.Sprint(v.Orphans[0].Waiters) != "[4]" {
		t.Errorf("orphans %+v", v.Orphans)
	}
	if len(v.Contended) != 1 || v.Contended[0].Object.Value != 0x10 || fmt.Sprint(v.Contended[0].Waiters) != "[0 3]" || v.Contended[0].Owner.Index != 1 {
		t.Errorf("contended %+v", v.Contended)
	}
}

// Two deadlocks: the surer one is the verdict's.
func TestCyclesAreRanked(t *testing.T) {
	v := judged(waitsFor(1, 1, Low), waitsFor(2, 0, High), waitsFor(3, 3, High), waitsFor(4, 2, High))
	if v.State != Deadlock || fmt.Sprint(v.Cycles) != "[[2 3] [0 1]]" {
		t.Errorf("%s %v", v.State, v.Cycles)
	}
}

// The graph against what a definition of cycles and waiters gives on random
// graphs: threads that reach each other.
func TestGraphOnRandomGraphs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rnd.IntN(9)
		waits := make([]Wait, n)
		for i := range waits {
			for range rnd.IntN(3) {
				o := rnd.IntN(n)
				waits[i].Object.WaitAll = true
				waits[i].Object.Handles = append(waits[i].Object.Handles, Handle{Owner: &Owner{Index: o}})
			}
		}
		g := newGraph(waits)
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
			for _, o := range g.out[i] {
				reach[i][o] = true
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		in := map[int]int{}
		for k, c := range g.components() {
			for _, i := range c {
				in[i] = k + 1
			}
			cycle := g.shortestCycle(c, func(i int) uint32 { return uint32(i) })
			for k, i := range cycle {
				if !slices.Contains(g.out[i], cycle[(k+1)%len(cycle)]) {
					t.Fatalf("%v is no cycle of %v", cycle, g.out)
				}
			}
			if cycle[0] != slices.Min(cycle) {
				t.Fatalf("%v does not begin with the lowest", cycle)
			}
		}
		for i := range n {
			if (in[i] != 0) != reach[i][i] {
				t.Fatalf("thread %d: in component %d, reaches itself %v: %v", i, in[i], reach[i][i], g.out)
			}
			for j := range n {
				if i != j && (in[i] != 0 && in[i] == in[j]) != (reach[i][j] && reach[j][i]) {
					t.Fatalf("threads %d and %d: %v", i, j, g.out)
				}
				if i != j && slices.Contains(g.waiters(i), j) != reach[j][i] {
					t.Fatalf("waiters of %d are %v: %v", i, g.waiters(i), g.out)
				}
			}
		}
	}
}

// A hundred thousand threads in one chain that ends in a cycle take no time and
// no stack.
func TestLongChain(t *testing.T) {
	const n = 100_000
	waits := make([]Wait, n)
	for i := range waits {
		waits[i] = waitsFor(uint64(i), min(i+1, n-1), High)
	}
	waits[n-1] = waitsFor(1, n-2, High)
	start := time.Now()
	v := judged(waits...)
	if v.State != Deadlock || len(v.Chain()) != 2 || time.Since(start) > 20*time.Second {
		t.Errorf("%s %d %v", v.State, len(v.Chain()), time.Since(start))
	}
}

func TestOverrides(t *testing.T) {
	wait := []string{"ntdll!NtDelayExecution", "kernelbase!SleepEx", "app!main"}
	inc := incident(thread(4, wait...), thread(8, wait...), thread(12, "ntdll!DbgBreakPoint", "ntdll!DbgUiRemoteBreakin"))
	for i := range inc.Threads {
		inc.Threads[i].SuspendCount = 1 // the writer stopped all
	}
	inc.Threads[1].SuspendCount = 2
	inc.Crashing, inc.Crash = 2, &triage.Crash{Exception: dump.Exception{Code: 0x80000003}}
	v := Of(inc, nil)
	for i, want := range []Class{ClassSleep, ClassSuspended, ClassDebuggerBreak} {
		if v.Waits[i].Class != want {
			t.Errorf("thread %d is %s, want %s", i, v.Waits[i].Class, want)
		}
	}
	// A writer inside the process stops all threads but its own.
	inc.Threads[2].SuspendCount, inc.Threads[1].SuspendCount = 0, 1
	if c := Of(inc, nil).Waits[0].Class; c != ClassSleep {
		t.Errorf("a thread that the writer stopped is %s", c)
	}
	inc.Crashing = 0
	if c := Of(inc, nil).Waits[0].Class; c != ClassBreakpoint {
		t.Errorf("a breakpoint's thread is %s", c)
	}
	inc.Crash.Code = 0xc0000005
	if c := Of(inc, nil).Waits[0].Class; c != ClassCrashed {
		t.Errorf("the crashed thread is %s", c)
	}
}

func TestSpinningNeedsTime(t *testing.T) {
	for _, c := range []struct {
		busy, age time.Duration
		want      Class
	}{{9 * time.Second, 10 * time.Second, ClassSpinning}, {time.Second, time.Second, ClassRunning}, {time.Minute, time.Hour, ClassRunning}} {
		inc := incident(thread(4, "app!loop", "app!main"))
		inc.Threads[0].Times = &dump.ThreadTimes{Created: inc.Captured.Add(-c.age), User: c.busy}
		if w := Of(inc, nil).Waits[0]; w.Class != c.want || !w.HasCPU {
			t.Errorf("%v of %v: %s", c.busy, c.age, w.Class)
		}
	}
}

// Who holds the loader lock or collects garbage shows on its stack.
func TestHeldByFrames(t *testing.T) {
	waiting := []string{"ntdll!NtWaitForSingleObject", "ntdll!LdrpDrainWorkQueue", "ntdll!LdrLoadDll", "app!main"}
	holding := []string{"ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx", "my!DllMain", "ntdll!LdrpCallInitRoutine", "ntdll!LdrLoadDll"}
	v := Of(incident(thread(4, waiting...), thread(8, holding...)), nil)
	if o := v.Waits[0].Owner; o == nil || o.Index != 1 || o.Confidence != Medium || o.Evidence[0].Source != FromFrames {
		t.Errorf("owner %+v", o)
	}
	if v.State != LoaderLock || v.Subject != 1 {
		t.Errorf("%s about %d", v.State, v.Subject)
	}
	// Two that might hold it: not known.
	v = Of(incident(thread(4, waiting...), thread(8, holding...), thread(12, holding...)), nil)
	if v.Waits[0].Owner != nil {
		t.Errorf("owner %+v of two", v.Waits[0].Owner)
	}
	v = Of(incident(thread(4, "ntdll!NtWaitForSingleObject", "coreclr!Thread::RareDisablePreemptiveGC", "app!managed"),
		thread(8, "coreclr!WKS::gc_heap::mark_phase", "coreclr!WKS::gc_heap::garbage_collect", "coreclr!WKS::GCHeap::GarbageCollectGeneration")), nil)
	if v.State != GCSuspension || v.Subject != 1 {
		t.Errorf("%s about %d", v.State, v.Subject)
	}
}

// Each [role] and [hold] rule marks a stack with its function.
func TestMarks(t *testing.T) {
	for _, c := range []struct{ frame, role, hold string }{
		{"user32!GetMessageW", "gui", ""}, {"user32!PeekMessageW", "gui", ""}, {"user32!DispatchMessageWorker", "gui", ""},
		{"user32!WaitMessage", "gui", ""}, {"user32!DialogBoxParamW", "gui", ""}, {"win32u!NtUserGetMessage", "gui", ""},
		{"win32u!NtUserWaitMessage", "gui", ""}, {"win32u!NtUserDispatchMessage", "gui", ""}, {"user32!NtUserGetMessage", "gui", ""},
		{"ntdll!TppWorkerThread", "pool", ""}, {"coreclr!FinalizerThread::FinalizerThreadStart", "finalizer", ""},
		{"rpcrt4!LRPC_ADDRESS::ProcessIO", "rpc_server", ""}, {"rpcrt4!LRPC_SCALL::DispatchRequest", "rpc_server", ""},
		{"ntdll!DbgUiRemoteBreakin", "debugger_break", ""},
		{"ntdll!LdrpCallInitRoutineInternal", "", "loader_lock"}, {"ntdll!LdrpCallTlsInitializers", "", "loader_lock"},
		{"ntdll!LdrShutdownProcess", "", "loader_lock"}, {"ntdll!LdrpInitializeProcess", "", "loader_lock"},
		{"coreclr!SVR::gc_heap::garbage_collect", "", "gc"}, {"coreclr!WKS::GCHeap::GarbageCollectGeneration", "", "gc"},
		{"clr!ThreadSuspend::SuspendEE", "", "gc"}, {"clr!GCHeap::GarbageCollectGeneration", "", "gc"},
	} {
		w := Of(incident(thread(4, "app!f", c.frame, "app!main")), nil).Waits[0]
		if c.role != "" && fmt.Sprint(w.Roles) != "["+c.role+"]" || c.hold != "" && fmt.Sprint(w.Holds) != "["+c.hold+"]" {
			t.Errorf("%s: roles %v, holds %v", c.frame, w.Roles, w.Holds)
		}
	}
}

// Frames of the capture are on no thread's own stack.
func TestCaptureFramesAreIgnored(t *testing.T) {
	th := triage.Thread{Kernel: half("nt!NtReadFile", "nt!KiDeliverApc", "nt!KeDelayExecutionThread", "nt!NtDelayExecution")}
	th.Kernel.Frames[0].Name.Function = "IopXxxControlFile" // it would say io
	th.Kernel.Frames[0].Capture, th.Kernel.Frames[1].Capture = true, true
	if w := Of(incident(th), nil).Waits[0]; w.Class != ClassSleep || w.matches != nil && w.matches[0].frame != 2 || w.Frame != 2 {
		t.Errorf("%s at %d", w.Class, w.Frame)
	}
	th.User = half("app!inject", "ntdll!NtDelayExecution", "kernelbase!Sleep", "app!main")
	th.User.Frames[0].Capture = true
	if w := Of(incident(th), nil).Waits[0]; w.Class != ClassSleep || w.Kernel {
		t.Errorf("user half: %s", w.Class)
	}
}

// In a dump of a whole system no one thread stands for all.
func TestManyProcesses(t *testing.T) {
	a, b := kernelThread(10, nil, "ntdll!NtDelayExecution"), kernelThread(20, nil, "ntdll!NtDelayExecution")
	if v := Of(incident(a, b), nil); v.State != Waiting || v.Subject != 0 {
		t.Errorf("of one process: %s %d", v.State, v.Subject)
	}
	b.KernelInfo.PID = 8
	if v := Of(incident(a, b), nil); v.State != Waiting || v.Subject != -1 {
		t.Errorf("of two: %s %d", v.State, v.Subject)
	}
}

func TestAnyOfSeveralObjects(t *testing.T) {
	k := &dump.KernelWait{Class: "objects", Objects: []dump.WaitObject{{Address: 0xa0, Type: "mutant", Owner: ref(7, 20)}, {Address: 0xb0, Type: "synchronization event"}}}
	other := kernelThread(20, nil, "app!main")
	w := Of(incident(kernelThread(10, k, waitFrames...), other), nil).Waits[0]
	if w.Owner != nil { // the event will do as well
		t.Errorf("any: %+v", w.Owner)
	}
	k.All = true
	if w = Of(incident(kernelThread(10, k, waitFrames...), other), nil).Waits[0]; w.Owner == nil || w.Owner.Confidence != High {
		t.Errorf("all: %+v", w.Owner)
	}
}

func TestHandlesHaveTwoFreeBits(t *testing.T) {
	a := &analysis{inc: incident(), handles: map[uint64]*dump.Handle{0x1c4: {Value: 0x1c4, Type: "Event"}}}
	if h := a.handle(0x1c6); h.Listed == nil || h.Value != 0x1c6 {
		t.Errorf("%+v", h)
	}
}

func TestLocked(t *testing.T) {
	for _, c := range []struct {
		cs   CriticalSection
		want bool
	}{{CriticalSection{LockCount: -2, RecursionCount: 1, OwningThread: 4}, true}, {CriticalSection{LockCount: 0, RecursionCount: 1, OwningThread: 4}, true}, // before Vista, and Wine
		{CriticalSection{LockCount: -1}, false}, {CriticalSection{LockCount: -1, RecursionCount: 1, OwningThread: 4}, false},
		{CriticalSection{LockCount: -2, OwningThread: 4}, false}, {CriticalSection{LockCount: -2, RecursionCount: 1}, false}} {
		if c.cs.Locked() != c.want {
			t.Errorf("%+v", c.cs)
		}
	}
}

// A thread in the kernel does not run in user mode, unless it was interrupted.
func TestInTheKernel(t *testing.T) {
	th := kernelThread(10, nil, "app!f", "app!main")
	th.Kernel = half("nt!", "nt!")
	if w := Of(incident(th), nil).Waits[0]; w.Class != ClassSystemCall {
		t.Errorf("%s", w.Class)
	}
	th.KernelInfo.Interrupted = true
	if w := Of(incident(th), nil).Waits[0]; w.Class != ClassRunning {
		t.Errorf("interrupted: %s", w.Class)
	}
}
