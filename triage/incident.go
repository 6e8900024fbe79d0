// Package triage makes one incident out of one dump, or of a user dump and its
// kernel companion: it pairs the files, matches their threads, walks both
// halves of every stack and joins them at the system call.
//
// It works on dump.Source values and never on file bytes. What it cannot know
// it leaves empty and says why; nothing in an Incident is text for people,
// which is package report's work.
package triage

import (
	"time"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/managed"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// Incident is everything that is known after analysis.
type Incident struct {
	Inputs []Input
	// Captured is when the dump was written, of a pair the user dump; zero when
	// it does not say.
	Captured time.Time
	System   dump.System
	Process  dump.Process
	// Emulation is set when the process runs code of another architecture than
	// its system's.
	Emulation *Emulation
	// Crashing is the index in Threads of the thread that the exception or
	// bugcheck belongs to, or -1.
	Crashing int
	Crash    *Crash
	BugCheck *BugCheck
	Threads  []Thread
	// Processes are those that own the threads, of a dump of a whole system.
	Processes []dump.Process
	Modules   []*Module // user modules by address, then kernel modules by address
	Unloaded  []dump.Module
	Handles   []dump.Handle
	CPUs      []CPU
	// OneProcess is set when processes of a dump of a whole system were asked for by
	// name: what processors ran of others is beside the point.
	OneProcess bool
	Pairing    *Pairing
	Missing    []symbols.Missing // images that a walk or a name needed and did not find
	Errors     []*dump.Error

	Runtime *ManagedRuntime // of the user dump's process, nil when none was found

	Explanation *Explanation // when Options.Explain asked for one

	// UserSpace and KernelSpace are the address spaces of the two dumps, nil
	// where there is none.
	UserSpace, KernelSpace *View

	store *symbols.Store
}

// LiveCompanion reports whether the bugcheck is only that of the live kernel dump
// that procdump -mk writes beside a user dump: the user dump says what happened.
func (inc *Incident) LiveCompanion() bool {
	return inc.BugCheck != nil && inc.BugCheck.Live && inc.Pairing != nil
}

// Close closes the image and symbol files that naming opened. The incident's
// views must not be used afterwards.
func (inc *Incident) Close() error {
	if inc.store == nil {
		return nil
	}
	return inc.store.Close()
}

// Input is one file that was read.
type Input struct {
	Path   string
	Member string // of the archive that Path is
	Size   int64
	SHA256 string // hexadecimal, "" when the file was too large to hash by default
	Format dump.Format
	Kind   string
	Flags  []string
	// Comments are what the writer of the dump put in, such as a tool's command
	// line and why it wrote.
	Comments []string
}

// ProcessOf returns the process of Processes that owns a thread, nil when none
// does.
func (inc *Incident) ProcessOf(t *Thread) *dump.Process {
	for i := range inc.Processes {
		if k := t.KernelInfo; k != nil && inc.Processes[i].EPROCESS == k.EPROCESS {
			return &inc.Processes[i]
		}
	}
	return nil
}

// Module is a module with what became of its image and names.
type Module struct {
	*dump.Module
	Image       symbols.ImageState
	ImagePath   string // file the image was read from; "" when it came from dump memory or not at all
	Symbols     symbols.DebugState
	SymbolsPath string // file with debug information, "" none
	UsedInStack bool
	Named       bool // some frame in it got a name
	// Unlisted modules are in no list of modules, only in the loader's inverted
	// function table.
	Unlisted bool
}

// Crash is the exception of a user dump.
type Crash struct {
	dump.Exception
	Module      *Module // of the exception address
	Assertion   string  // text of a Breakpad assertion record, "" none
	Instruction *Instruction
	Adjusted    *AdjustedAddress
}

// Instruction is the decoded instruction at a faulting address.
type Instruction struct {
	Text     string // Intel syntax, numbers as decoded
	Bytes    []byte
	Accesses []MemoryAccess
	// Target is where a call, jump or return through a register or memory leads, as
	// far as that is known.
	Target    uint64
	HasTarget bool
}

// MemoryAccess is one memory operand of an instruction, with its address
// computed from the registers at the fault.
type MemoryAccess struct {
	Address uint64
	Size    int
	Write   bool
	Read    bool // a write that reads what was there first
	Align   int  // bytes that Address has to be a multiple of, 0 when any will do
	Known   bool // false when a register it needs is unknown

	inTEB  bool   // the address is relative to the thread's TEB,
	offset uint64 // by so much
}

// AdjustedAddress is the address that a fault was really about when the
// exception record cannot say it.
type AdjustedAddress struct {
	Kind    string // "non-canonical" or "null-pointer"
	Address uint64
	Offset  uint64 // null-pointer: offset from null
}

// BugCheck is a kernel dump's bugcheck. What it means is package bugcheck's to say.
type BugCheck struct {
	dump.BugCheck
	Live         bool            // the system went on: a live dump
	BrokenDriver string          // that the kernel itself held responsible, "" when it named none
	Exception    *dump.Exception // that the parameters report, nil when they report none
	Fault        Fault
	Blobs        []kdump.Blob // secondary data
	Processors   []Processor
}

// Processor is a processor of a kernel dump.
type Processor struct {
	PRCB    uint64
	Number  uint32
	Crashed bool // it wrote the dump
}

// Fault says where a bugcheck's fault is and which registers its stack is walked from.
type Fault struct {
	// Source is ContextParameter, ContextTrapFrame or ContextTask when the registers
	// of the fault were found, ContextHeader when the walk starts at the bugcheck itself.
	Source dump.ContextSource
	// Parameter (0 to 3) points to the registers, or gives the address of the
	// instruction; -1 when none does. Missing is set when what it points to is not in
	// the dump, or is no such record.
	Parameter int
	Missing   bool
	TrapFrame uint64 // that was found on the stack, 0 none
	Registers dump.Registers
	At        *Frame // the instruction at fault, named; nil when not known
	// Index is where the fault's frame is in the thread's kernel half, -1 when it is
	// not there. The frames before it belong to the bugcheck.
	Index int
}

// Pairing says how two files were matched.
type Pairing struct {
	User, Kernel string // paths
	How          string // "given", "beside", "archive"
	PID          uint32
	Warnings     []string
}

// Thread is one thread with its halves.
type Thread struct {
	dump.Thread       // of the user dump, else of the kernel dump
	User        *Half // nil when there is none
	Kernel      *Half // nil when there is none
	Handler     *Half // the exception thread's own context, when it differs; of a bugcheck what leads from the fault to KeBugCheckEx
	Wow64       *Half // the 64-bit half of a 32-bit process, whose User is then the 32-bit one
	KernelInfo  *dump.KernelThread
	Stitched    bool
	Seam        *Seam
	Managed     *managed.Thread // what the .NET runtime says of it, nil when it knows no such thread
	KernelNote  string          // why a thread of the user dump has no kernel half
	Callbacks   []Callback      // of Options.Callbacks, from the inside out

	kernelThread *dump.Thread // of the kernel dump, nil when there is none
}

// Callback is a kernel stack that a thread left when the kernel called it back
// into user mode. Its kernel half leads to the user registers of the segment,
// which are those of a frame of Thread.User.
type Callback struct {
	dump.StackSegment
	Kernel *Half  // nil when it was not found
	Note   string // why not
}

// Half is one walked half of a stack.
type Half struct {
	Frames    []Frame
	Stop      unwind.Stop
	Truncated bool
	Registers dump.Registers // of frame 0

	walkedBy walkedBy
}

// Frame is one frame with its names.
type Frame struct {
	unwind.Frame
	Module   *Module // nil outside all loaded modules
	Name     symbols.Name
	Unloaded []UnloadedHit
	Capture  bool            // put on the stack by the dump's writer
	Proof    Proof           // of a frame that has a scan on the way to it
	Managed  *managed.Method // of .NET code, nil of other
}

// UnloadedHit says that a frame's address lies where a module had been.
type UnloadedHit struct {
	Module *dump.Module
	Offset uint64
}

// Seam is the place where a kernel half meets its user half.
type Seam struct {
	Rule   string // how the trap frame was found
	UserIP uint64
	UserSP uint64
	Note   string // "not simultaneous: ..." and the like
}

// CPU is one processor of a kernel dump.
type CPU struct {
	dump.CPU
	Thread int   // index in Incident.Threads of the thread it was running, -1 when that is not in the dump
	Kernel *Half // of that thread, or walked from the processor's own context
	User   *Half // that Kernel leads to, nil when it leads to none
	// PID and ProcessName are of the process that owns the thread, 0 and "" not known.
	PID         uint32
	ProcessName string
}
