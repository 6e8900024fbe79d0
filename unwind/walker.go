// Package unwind rebuilds call stacks: registers in, registers out. It does no
// input or output of its own; memory, modules and images come through a Space.
//
// Sources: Microsoft's public documentation of x64 exception handling
// (RUNTIME_FUNCTION, UNWIND_INFO versions 1 and 2, the preview of version 3,
// the rules for epilogs), of ARM64 exception handling (packed and .xdata
// records), of the x64, x86 and ARM64 calling conventions, of the FPO_DATA and
// FrameData records of x86 debug information, and of CONTEXT and KTRAP_FRAME in
// public headers and symbols; what is not documented was measured on dumps.
//
// Everything is untrusted: stacks, registers, code bytes and unwind data. A
// walk always ends: the stack pointer must rise with every frame except across
// a machine frame, whose number is capped, as are frames, scanned words and
// unwind operations. A frame is marked with the rule that found it, and a rule
// whose answer cannot be code is given up for a weaker one that says so.
package unwind

import (
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
	"dumptriage/pdata"
)

// maxSwitches caps the machine frames of one walk: they alone may move the
// stack pointer down, and so could return to where the walk has been.
const maxSwitches = 32

// Table is a function table and the code it describes. *pdata.Image is one.
type Table interface {
	ReadRVA(p []byte, rva uint32) (int, error)
	Executable(rva uint32) bool
	HasFunctionTable() bool
	Lookup(rva uint32) (pdata.RuntimeFunction, bool, error)
	Primary(rf pdata.RuntimeFunction) pdata.RuntimeFunction
	UnwindInfo(rva uint32) (*pdata.UnwindInfo, error)
}

// DynamicSpace is a Space that also knows function tables of code made at run
// time. They are asked for addresses outside modules only, as Windows does, and
// what they do not cover is not taken for a leaf.
type DynamicSpace interface {
	Space
	// HasDynamicTables reports whether there are any.
	HasDynamicTables() bool
	// DynamicTable returns the table for va, the address its RVAs count from,
	// and the method to record for frames found by it; nil when there is none.
	DynamicTable(va uint64) (t Table, base uint64, method Method)
}

// Remarker is a Table that knows something of the code in its range that it has
// no entry for: that only a callback could tell, for example.
type Remarker interface {
	Remark() string
}

// Walker walks stacks in one Space. It remembers what it learned about code
// addresses, so it should be used for many threads; it is not safe for
// concurrent use.
type Walker struct {
	space   Space
	arch    dump.Arch
	dynamic DynamicSpace // nil when the space is none
	find    func(va uint64) (Table, uint64)
	stack   *dump.Window
	sites   []site
	// siteShift makes a hash of 64 bits a place in sites; displaced counts sites that made way.
	siteShift uint8
	displaced int
	code      [codeBytes]byte // scratch for instructions
	other     [codeBytes]byte // scratch for the same instructions from the image
	trap      [0x190]byte     // scratch for a KTRAP_FRAME
	frame     []Frame         // scratch for the walk under way

	x86      x86State
	unproven int // scan frames in a row that no code bytes confirmed
	effort   int // what is left of reentryEffort in this walk
	settling int // steps until a searched frame register is beyond doubt
	seam     seam
	trace    *trace  // nil when nobody wants to know
	twin     *Walker // of the other machine's code, nil until there is some

	dispatchers DispatcherSpace // nil when the space is none

	frames   FrameSpace // nil when the space is none
	compiled map[uint64][]compiledRecord
	machine  machine // scratch for programs of frame records
}

// seam is where a kernel walk met user mode.
type seam struct {
	trapFrame uint64
	method    Method
}

// New returns a Walker over a space of the given architecture.
func New(space Space, arch dump.Arch) *Walker {
	return newWalker(space, arch, func(va uint64) (Table, uint64) {
		if im, base := space.Image(va); im != nil {
			return im, base
		}
		return nil, 0
	})
}

func newWalker(space Space, arch dump.Arch, find func(uint64) (Table, uint64)) *Walker {
	var dynamic DynamicSpace
	var dispatchers DispatcherSpace
	if arch == dump.AMD64 {
		dynamic, _ = space.(DynamicSpace)
		dispatchers, _ = space.(DispatcherSpace)
	}
	frames, _ := space.(FrameSpace)
	return &Walker{frames: frames, dispatchers: dispatchers, space: space, dynamic: dynamic, arch: arch, find: find, stack: dump.NewWindow(space), sites: make([]site, 1<<firstSiteBits), siteShift: 64 - firstSiteBits}
}

// Walk walks the stack that regs describe, innermost frame first. It always
// returns; Stack.Stop says why it went no further.
func (w *Walker) Walk(regs dump.Registers, opt Options) Stack {
	return w.WalkRegisters(regs, opt, nil)
}

// WalkRegisters is Walk that shows visit every frame's registers as far as they
// are known, frame 0's first. They are visit's for the call only; a walk ends
// behind the frame for which visit returns false.
func (w *Walker) WalkRegisters(regs dump.Registers, opt Options, visit func(frame int, regs *dump.Registers) bool) Stack {
	w.unproven, w.seam, w.effort, w.settling = 0, seam{}, reentryEffort, 0
	regs.Arch = w.arch
	f, stop, ok := w.first(&regs, &opt)
	if !ok {
		return Stack{Stop: stop}
	}
	limit := opt.MaxFrames
	if limit <= 0 {
		limit = DefaultMaxFrames
	}
	frames := append(w.frame[:0], f)
	truncated := false
	for switches := 0; ; {
		if visit != nil && !visit(len(frames)-1, &regs) {
			truncated, stop = true, Stop{StopLimit, "no further frames were asked for"}
			break
		}
		if w.trace != nil {
			w.trace.on = len(frames) == w.trace.frame
		}
		disputed := w.arch != dump.X86 && w.site(f.Lookup).disputed
		if stop, ok = w.Step(&regs, &f, &opt); !ok {
			break
		}
		if disputed {
			f.Detail = joinDetail(f.Detail, disputedDetail)
		}
		if len(frames) >= limit {
			truncated, stop = true, Stop{StopLimit, fmt.Sprintf("more than %d frames", limit)}
			break
		}
		frames = append(frames, f)
		opt.EntryProved = ""
		if f.Method == MethodMachineFrame {
			if switches++; switches > maxSwitches {
				stop = Stop{StopLimit, fmt.Sprintf("more than %d machine frames", maxSwitches)}
				break
			}
		}
	}
	w.frame = frames
	st := Stack{Frames: slices.Clone(frames), Stop: stop, Truncated: truncated}
	if stop.Reason == StopTrapFrame {
		st.User, st.TrapFrame, st.UserMethod = regs, w.seam.trapFrame, w.seam.method
	}
	return st
}

// first makes frame 0.
func (w *Walker) first(regs *dump.Registers, opt *Options) (Frame, Stop, bool) {
	switch w.arch {
	case dump.AMD64, dump.X86, dump.ARM64:
	default:
		return Frame{}, Stop{StopNoUnwindData, fmt.Sprintf("stacks of architecture %s are not walked", w.arch)}, false
	}
	pc, okPC := regs.PC()
	sp, okSP := regs.SP()
	if !okPC || !okSP {
		return Frame{}, Stop{StopNoUnwindData, "the thread's program counter or stack pointer is not known"}, false
	}
	f := Frame{IP: pc, Lookup: pc, SP: sp, Trust: TrustContext, Method: opt.First}
	if f.Method == MethodNone {
		f.Method = MethodContext
	}
	f.FP, f.HasFP = regs.Get(w.arch.FPReg())
	return f, Stop{}, true
}

// Step unwinds one frame: f and its registers are replaced by its caller's. A
// frame whose Lookup equals its IP is taken to be stopped at any instruction,
// any other at a call. When ok is false there is no caller to be had and Stop
// says why; f is unchanged and regs have no meaning, except that with
// StopTrapFrame they are the user-mode registers (see Seam).
func (w *Walker) Step(regs *dump.Registers, f *Frame, opt *Options) (stop Stop, ok bool) {
	if f.exact() {
		opt.settle(f.SP)
	}
	switch w.arch {
	case dump.AMD64:
		return w.stepAMD64(regs, f, opt)
	case dump.X86:
		return w.stepX86(regs, f, opt)
	case dump.ARM64:
		return w.stepARM64(regs, f, opt)
	}
	return Stop{StopNoUnwindData, fmt.Sprintf("stacks of architecture %s are not walked", w.arch)}, false
}

// DiscardMemory forgets what was read of the stack, for a space whose memory
// changes. What is known of code is kept.
func (w *Walker) DiscardMemory() { w.stack.Discard() }

// Seam returns, after Step stopped with StopTrapFrame, the address of the
// KTRAP_FRAME and how the user-mode registers were read.
func (w *Walker) Seam() (trapFrame uint64, method Method) { return w.seam.trapFrame, w.seam.method }

// caller makes f the caller's frame, after a call-like step.
func (w *Walker) caller(regs *dump.Registers, f *Frame, ip, sp uint64, trust Trust, method Method, detail string) {
	regs.ForgetVolatile()
	regs.SetPC(ip)
	regs.SetSP(sp)
	*f = Frame{IP: ip, Lookup: ip - w.callLength(ip), SP: sp, Trust: trust, Method: method, Detail: detail}
	f.FP, f.HasFP = regs.Get(w.arch.FPReg())
}

// guessed is caller for a step that followed no unwind data: what the functions
// passed over did to the preserved registers is not known, so none of them
// stays known but, where the step gave it, the frame pointer.
func (w *Walker) guessed(regs *dump.Registers, f *Frame, g guess) {
	w.settling = 0
	*regs = dump.Registers{Arch: w.arch}
	if g.hasFP {
		regs.Set(w.arch.FPReg(), g.fp)
	}
	w.caller(regs, f, g.ip, g.sp, g.trust, g.method, g.detail)
}

// guess is a caller found by a heuristic.
type guess struct {
	ip, sp uint64
	fp     uint64
	hasFP  bool
	trust  Trust
	method Method
	at     uint64 // where the return address was read
	fpAt   uint64 // and fp, 0 when it is still in its register
	popped bool   // x86: sp is above the arguments of the function that was left
	detail string
}

// exact reports that a frame may stand at any instruction, not just after a call.
func (f *Frame) exact() bool { return f.Lookup == f.IP }

// maxFrameGap is the largest frame that a frame pointer chain is believed to
// span, in bytes: a register further off is a pointer to a frame further out.
const maxFrameGap = 128 << 10

// maxKernelStack is more than any kernel stack's size.
const maxKernelStack = 128 << 10

// settle finds out, where the stack pointer may have come from anywhere, which
// stack it is on: a thread may run on another than its own (fiber, DPC stack,
// pivot), and then neither the bounds nor the trap frame say anything.
func (o *Options) settle(sp uint64) {
	o.away = sp < o.StackLimit || sp >= o.StackBase
	if o.StackBase != 0 {
		o.noSeam = o.away || o.TrapFrame < o.StackLimit || o.TrapFrame >= o.StackBase
	} else {
		o.noSeam = o.TrapFrame-sp+threadcontext.TrapFrameSize > maxKernelStack
	}
}

// bounded reports whether the stack's bounds are known.
func (o *Options) bounded() bool { return o.StackBase != 0 && !o.away }

// inStack reports whether va is known to be within the stack, where no code is. Of
// a stack of which only the base is known, all that lies below it may be anything.
func (o *Options) inStack(va uint64) bool {
	return o.bounded() && o.StackLimit != 0 && va >= o.StackLimit && va < o.StackBase
}

// atSeam reports whether the walk leads to the system service that TrapFrame
// belongs to.
func (o *Options) atSeam() bool { return o.Kernel && o.TrapFrame != 0 && !o.noSeam }

// holds reports whether size bytes at va are within the stack as far as its
// bounds are known.
func (o *Options) holds(va, size uint64) bool {
	return !o.bounded() || (va >= o.StackLimit && va <= o.StackBase && o.StackBase-va >= size)
}

const (
	lowestUser    = 0x10000 // nothing is ever mapped below
	highestUser   = 0x00007fffffffffff
	lowestKernel  = 0xffff800000000000
	highestUser32 = 0xffffffff
	// lowestKernel32 is where a 32-bit kernel's half begins, without the switch
	// that gives it less.
	lowestKernel32 = 0x80000000
)

// plausible reports whether ip can be an instruction's address in this half of
// the address space.
func (w *Walker) plausible(ip uint64, opt *Options) bool {
	switch {
	case w.arch == dump.X86 && opt.Kernel:
		return ip >= lowestKernel32 && ip <= highestUser32
	case w.arch == dump.X86:
		return ip >= lowestUser && ip <= highestUser32
	case opt.Kernel:
		return ip >= lowestKernel
	}
	return ip >= lowestUser && ip <= highestUser
}

// word reads one pointer of the stack.
func (w *Walker) word(va uint64) (uint64, bool) {
	if w.arch == dump.X86 {
		v, ok := w.stack.Uint32(va)
		return uint64(v), ok
	}
	return w.stack.Uint64(va)
}

// missing is the end of a walk that needs stack memory which cannot be read.
func (w *Walker) missing(va uint64) Stop {
	if why := w.stack.Why(va); why != nil {
		return Stop{StopStackMissing, fmt.Sprintf("stack memory at %#x: %v", va, why)}
	}
	return Stop{StopStackMissing, fmt.Sprintf("stack memory at %#x is not in the dump", va)}
}
