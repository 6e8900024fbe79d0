package unwind

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// Dispatcher says which of the functions that the system enters user code
// through an address lies in.
type Dispatcher uint8

// Dispatchers.
const (
	NoDispatcher        Dispatcher = iota
	ExceptionDispatcher            // KiUserExceptionDispatcher
	APCDispatcher                  // KiUserApcDispatcher
)

// DispatcherSpace is a Space that knows the dispatchers. What they interrupted
// is in a CONTEXT on the stack, which holds every register where unwind data
// knows the preserved ones at best.
type DispatcherSpace interface {
	Space
	Dispatcher(va uint64) Dispatcher
}

// On x64 the system builds on the stack of the thread: the CONTEXT at the
// dispatcher's rsp, and for exceptions the EXCEPTION_RECORD behind its extended
// part. The distance is what the dispatchers of Windows' and Wine's ntdll add.
const (
	exceptionRecord  = 0x4f0
	exceptionAddress = exceptionRecord + 0x10 // EXCEPTION_RECORD.ExceptionAddress
	contextFlags     = 0x30
	contextAMD64     = 0x00100000
	contextFull      = 0x0b // control, integer, floating point
	dispatchedSize   = exceptionAddress + 8
)

const dispatchDetail = "the registers are those of the CONTEXT that the system left on the stack"

// stepDispatcher goes on from a dispatcher's frame to what was interrupted. ok
// is false when no CONTEXT that proves itself is there: its place and its shape
// must be right, and where it leads must be where the unwind data leads too or,
// of an exception, where the exception record says that it happened.
func (w *Walker) stepDispatcher(regs *dump.Registers, f *Frame, d Dispatcher, opt *Options) bool {
	var b [dispatchedSize]byte
	if w.stack.Bytes(b[:], f.SP) < len(b) {
		return false
	}
	c := cursor.New(b[:], "CONTEXT", -1)
	c.Seek(contextFlags)
	if flags := c.U32(); flags&contextAMD64 == 0 || flags&contextFull != contextFull {
		return false
	}
	c.Seek(exceptionAddress)
	address := c.U64()
	to, err := threadcontext.Parse(dump.AMD64, b[:exceptionRecord], -1)
	if err != nil {
		return false
	}
	ip, _ := to.PC()
	sp, _ := to.SP()
	cs, _ := to.Get(dump.RegCS)
	if cs&ring3 != ring3 || sp <= f.SP || sp&7 != 0 || !opt.holds(sp, 0) || !w.onStack(sp, opt) {
		return false
	}
	if !(d == ExceptionDispatcher && address == ip) && !w.leadsTo(*regs, f, ip, sp, opt) {
		return false
	}
	w.unproven, w.settling = 0, 0
	if w.tracing() {
		w.note(Note{Kind: NoteUndo, Rule: MethodException, Op: opContext, Addr: f.SP, SP: sp})
	}
	*regs = to
	*f = Frame{IP: ip, Lookup: ip, SP: sp, Trust: TrustContext, Method: MethodException, Detail: dispatchDetail}
	f.FP, f.HasFP = regs.Get(dump.RBP)
	return true
}

// leadsTo reports whether a frame's unwind data leads to an address and a stack
// pointer.
func (w *Walker) leadsTo(regs dump.Registers, f *Frame, ip, sp uint64, opt *Options) bool {
	s := w.resolved(f.Lookup)
	if s.kind != sitePdata {
		return false
	}
	t, stop := w.suppose(&regs, f, s, opt)
	return stop.Reason == "" && t.ip == ip && t.sp == sp
}
