package hang

import (
	"dumptriage/dump"
	"dumptriage/triage"
)

// Class is what a thread does or waits for. Its text is part of the JSON
// contract and of rule files.
type Class string

// The classes. Rules name them; docs/hangs.md explains them.
const (
	ClassUnknown       Class = "" // no stack, or nothing on it that a rule knows
	ClassRunning       Class = "running"
	ClassSpinning      Class = "spinning" // running, and its times say for long
	ClassSystemCall    Class = "system_call"
	ClassObject        Class = "object"  // one handle of unknown type
	ClassObjects       Class = "objects" // several handles
	ClassMutex         Class = "mutex"
	ClassEvent         Class = "event"
	ClassSemaphore     Class = "semaphore"
	ClassTimer         Class = "timer"
	ClassProcess       Class = "process"
	ClassThread        Class = "thread"
	ClassJob           Class = "job"
	ClassCritical      Class = "critical_section"
	ClassSRW           Class = "srw_lock"
	ClassCondition     Class = "condition_variable"
	ClassAddress       Class = "address"
	ClassKeyedEvent    Class = "keyed_event"
	ClassInitOnce      Class = "init_once"
	ClassBarrier       Class = "barrier"
	ClassResource      Class = "resource"
	ClassPushLock      Class = "push_lock"
	ClassRundown       Class = "rundown"
	ClassGate          Class = "gate"
	ClassPaging        Class = "paging"
	ClassMonitor       Class = "monitor"
	ClassTask          Class = "task" // of .NET
	ClassLoaderLock    Class = "loader_lock"
	ClassGC            Class = "gc_suspension"
	ClassSleep         Class = "sleep"
	ClassSuspended     Class = "suspended"
	ClassIO            Class = "io"
	ClassIOCompletion  Class = "io_completion"
	ClassIdleWorker    Class = "idle_worker"
	ClassIdleGUI       Class = "idle_gui"
	ClassSendMessage   Class = "send_message"
	ClassALPC          Class = "alpc"
	ClassRPC           Class = "rpc"
	ClassCOM           Class = "com_call"
	ClassDebugEvent    Class = "debug_event"
	ClassDebugger      Class = "debugger"
	ClassDebuggerBreak Class = "debugger_break" // the thread that a debugger made to break in
	ClassExiting       Class = "exiting"
	ClassBreakpoint    Class = "breakpoint" // the thread of an exception that stands for a stop by a debugger
	ClassCrashed       Class = "crashed"    // the thread of any other exception
)

// classes are those that a rule may name.
var classes = []Class{ClassRunning, ClassObject, ClassObjects, ClassMutex, ClassEvent, ClassSemaphore, ClassTimer, ClassProcess,
	ClassThread, ClassJob, ClassCritical, ClassSRW, ClassCondition, ClassAddress, ClassKeyedEvent, ClassInitOnce, ClassBarrier,
	ClassResource, ClassPushLock, ClassRundown, ClassGate, ClassPaging, ClassMonitor, ClassTask, ClassLoaderLock, ClassGC, ClassSleep,
	ClassSuspended, ClassIO, ClassIOCompletion, ClassIdleWorker, ClassIdleGUI, ClassSendMessage, ClassALPC, ClassRPC, ClassCOM,
	ClassDebugEvent, ClassDebugger, ClassExiting}

// Idle reports whether a thread of the class waits for work, which is no hang.
func (c Class) Idle() bool {
	switch c {
	case ClassIdleWorker, ClassIdleGUI, ClassIOCompletion:
		return true
	}
	return false
}

// lock reports whether the class is a lock that some thread holds meanwhile.
func (c Class) lock() bool {
	switch c {
	case ClassCritical, ClassSRW, ClassMutex, ClassMonitor, ClassLoaderLock, ClassResource, ClassPushLock, ClassInitOnce:
		return true
	}
	return false
}

// Kind is what identifies an object. Its text is part of rule files.
type Kind string

// The kinds of objects.
const (
	KindNone      Kind = ""
	KindHandle    Kind = "handle"
	KindHandles   Kind = "handles"
	KindCritical  Kind = "critical_section"
	KindSRW       Kind = "srw_lock"
	KindCondition Kind = "condition_variable"
	KindAddress   Kind = "address"
	KindKey       Kind = "key"
	KindWindow    Kind = "window"
	KindLoader    Kind = "loader_lock"
	KindGC        Kind = "gc"
	KindKernel    Kind = "kernel_object" // Value is its address
	KindMonitor   Kind = "monitor"       // the same, of a .NET object
)

var kinds = []Kind{KindHandle, KindHandles, KindCritical, KindSRW, KindCondition, KindAddress, KindKey, KindWindow}

// Confidence is how far a statement can be believed.
type Confidence string

// The grades of confidence.
const (
	High   Confidence = "high"   // read, and confirmed by something else
	Medium Confidence = "medium" // read or computed, unconfirmed
	Low    Confidence = "low"    // inferred
)

func (c Confidence) rank() int {
	switch c {
	case High:
		return 3
	case Medium:
		return 2
	case Low:
		return 1
	}
	return 0
}

// weaker is the lower of two grades.
func weaker(a, b Confidence) Confidence {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// Source is where a fact was found. Its text is part of the JSON contract.
type Source string

// The sources.
const (
	FromCall     Source = "call_site" // computed from the code that made the call
	FromRegister Source = "register"  // a preserved register, restored by unwinding
	FromStack    Source = "stack"     // an argument on an x86 stack
	FromMemory   Source = "memory"    // the lock's own fields
	FromHandles  Source = "handles"   // the dump's handle list
	FromCode     Source = "code"      // inferred from a call that the thread's code made earlier
	FromFrames   Source = "frames"    // a function on the owner's stack
	FromKernel   Source = "kernel"    // the kernel's own structures
	FromRuntime  Source = "runtime"   // the .NET runtime's own structures
)

// Evidence is one thing that speaks for a fact.
type Evidence struct {
	Source Source
	Frame  int      // of the thread's user half, where there is one
	Reg    dump.Reg // FromRegister
}

// Wait is what one thread does.
type Wait struct {
	Class      Class
	Frame      int    // the frame that says so, -1 when none does
	Caller     int    // the first frame of the same half behind what waits go through, -1 when there is none
	Kernel     bool   // Frame is one of the kernel half
	Rule       string // file:line, "" when no rule was needed
	Roles      []string
	Holds      []Kind // what frames show it to hold: KindLoader, KindGC
	Object     Object
	Owner      *Owner           // of Object, nil when not known
	InKernel   *dump.KernelWait // what the kernel's structures say, nil when nothing or no more than the means
	CPUShare   float64          // of a processor since the thread began, when HasCPU
	HasCPU     bool
	Confidence Confidence

	matches []match
}

// Has reports whether the thread has a role.
func (w *Wait) Has(role string) bool {
	for _, r := range w.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// Object is what a thread waits for, as far as it is known.
type Object struct {
	Kind       Kind
	Value      uint64 // address, handle, window: 0 when not known
	Handles    []Handle
	WaitAll    bool
	Place      *triage.Frame    // what Value points at in a module, nil elsewhere
	Lock       *CriticalSection // when memory holds it
	Slim       *SlimLock        // of a slim lock, when memory holds it
	Type       string           // of a .NET object
	Word       *uint64          // the pointer-sized value at Value, for addresses
	Evidence   []Evidence
	Confidence Confidence
}

// Known reports whether it is known which object it is.
func (o *Object) Known() bool {
	return o.Value != 0 || len(o.Handles) > 0 || o.Kind == KindLoader || o.Kind == KindGC
}

// Handle is a handle that is waited for, with what the dump lists of it.
type Handle struct {
	Value  uint64
	Listed *dump.Handle // nil when the dump has no such handle
	Owner  *Owner       // of a mutex, nil when not known
}

// Owner is the thread that holds an object.
type Owner struct {
	ThreadID   uint32
	Index      int  // in Incident.Threads, -1 when it is not among them
	Elsewhere  bool // the dump has it, in a process that the incident is not about
	Foreign    bool // a thread of another process has the id now: the owner has ended
	Evidence   []Evidence
	Confidence Confidence
}
