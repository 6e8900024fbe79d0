package unwind

import (
	"dumptriage/dump"
	"dumptriage/pdata"
)

// Space is the address space that a stack is walked in: memory, the modules in
// it, and the images that describe their code. A kernel half and a user half
// are two spaces.
type Space interface {
	dump.Memory
	// Module returns the loaded module that holds va.
	Module(va uint64) (*dump.Module, bool)
	// Image returns the image that holds va and where it is loaded. It is nil
	// when no module holds va or no bytes of the module's image are at hand.
	Image(va uint64) (im *pdata.Image, base uint64)
	// Executable reports whether va can hold code, and whether that is known
	// at all. Outside modules it goes by the dump's memory protections.
	Executable(va uint64) (executable, known bool)
}

// Trust says how far a frame can be believed. Its text is part of the JSON
// contract.
type Trust uint8

// Trust values.
const (
	TrustNone         Trust = iota
	TrustScan               // found by scanning the stack for return addresses
	TrustCFIScan            // unwind data plus a scan for the return address
	TrustFramePointer       // found by following a frame pointer
	TrustCFI                // found by unwind data
	TrustContext            // the thread's own registers
	TrustInline
)

// String returns the contract's name.
func (t Trust) String() string {
	return [...]string{"none", "scan", "cfi_scan", "frame_pointer", "cfi", "context", "inline"}[min(t, TrustInline)]
}

// Method says by which rule a frame was found. Its text is part of the JSON
// contract.
type Method uint8

// Methods.
const (
	MethodNone Method = iota
	MethodContext
	MethodException
	MethodTrapFrame
	MethodSwitchFrame
	MethodPdata
	MethodEpilog
	MethodLeaf
	MethodMachineFrame
	MethodFunctionTable
	MethodDynamicTable
	MethodCodeHeap
	MethodFPO
	MethodEBP
	MethodRBP
	MethodScan
	MethodStitch
	MethodTrapSlot
	MethodSymCFI // STACK CFI of a Breakpad file, where no image is at hand
)

var methodNames = [...]string{"", "context", "exception", "trap_frame", "switch_frame", "pdata", "epilog", "leaf",
	"machine_frame", "function_table", "dynamic_table", "code_heap", "fpo", "ebp", "rbp", "scan", "stitch", "trap_slot", "sym_cfi"}

// String returns the contract's name.
func (m Method) String() string { return methodNames[min(int(m), len(methodNames)-1)] }

// Frame is one frame of a walked stack, innermost first.
type Frame struct {
	IP uint64 // program counter in frame 0 and after a trap, return address in callers
	// Lookup is the address that names and unwind data are looked up at: IP in
	// frame 0 and after a trap, IP-1 (ARM64: IP-4) in callers.
	Lookup uint64
	SP     uint64 // WinDbg's Child-SP: the stack pointer in this frame
	FP     uint64 // the frame pointer register, when HasFP
	HasFP  bool
	Trust  Trust
	Method Method
	Detail string // why no better rule served, "" when there is nothing to say
}

// Reason says why a walk ended. Its text is part of the JSON contract.
type Reason string

// Stop reasons.
const (
	StopEndOfStack    Reason = "end_of_stack"
	StopNoUnwindData  Reason = "no_unwind_data"
	StopStackMissing  Reason = "stack_missing"
	StopBadUnwindInfo Reason = "bad_unwind_info"
	StopNoProgress    Reason = "no_progress"
	StopLimit         Reason = "limit"
	StopTrapFrame     Reason = "trap_frame"
)

// Stop is why and where a walk ended.
type Stop struct {
	Reason Reason
	Detail string
}

// Stack is a walked stack.
type Stack struct {
	Frames    []Frame
	Stop      Stop
	Truncated bool // the frame cap cut it off
	// User holds, when Stop.Reason is StopTrapFrame, the user-mode registers
	// that the walk recovered: the first frame of the user half. TrapFrame is
	// where they were read, and UserMethod how.
	User       dump.Registers
	TrapFrame  uint64
	UserMethod Method
}

// Options steer one walk.
type Options struct {
	MaxFrames int // 0 means DefaultMaxFrames
	// StackLimit and StackBase bound the stack; zero means not known.
	StackLimit, StackBase uint64
	// OuterLimit and OuterBase bound another stack, from which a routine on this
	// one was called: the thread's, when the walk begins on a processor's own. A
	// step onto it is progress whether it lies above or below.
	OuterLimit, OuterBase uint64
	// First is the method to record for frame 0.
	First Method
	// Kernel is set for the kernel half of a thread.
	Kernel bool
	// TrapFrame is the checked address of the KTRAP_FRAME of the thread's entry
	// from user mode, 0 when there is none. A kernel walk that has no unwind
	// data uses its position.
	TrapFrame uint64
	// Task holds, on x86, the registers in the processor's task state segment: those
	// of the code that a task gate left. Empty when they are not known. Only code
	// that a frame record says was entered through one leads to them.
	Task dump.Registers
	// EntryProved is set when the caller knows that frame 0 stands at the first
	// instruction of its function, so that its return address is at [sp].
	EntryProved string

	away   bool // the stack pointer is on another stack than the bounds'
	noSeam bool // and on another than TrapFrame's
}

// DefaultMaxFrames caps a walk.
const DefaultMaxFrames = 1024
