package managed

import (
	"dumptriage/dump"
)

// Exception is an exception object.
type Exception struct {
	Address uint64
	Type    string   // "System.InvalidOperationException"
	Bases   []string // types that it is derived from, its parent first
	Message string   // "" none of its own: the type's default, or not in the dump
	// Cut is set when the message is longer than what is given.
	Cut     bool
	HResult uint32
	HasHR   bool
	Inner   []Exception // from the outside in; they have none themselves
	Stack   []StackFrame
	Note    string // what the dump does not hold of it
}

// StackFrame is a frame of the stack trace that an exception carries.
type StackFrame struct {
	IP     uint64
	Method *Method // nil unknown
}

const (
	maxMessage = 4096 // UTF-16 units
	maxInner   = 16
	maxBases   = 32
	maxNested  = 64 // exceptions in handlers of others
)

// exceptionBudget is how much more is told of exceptions. Threads may share them, and
// they their parts, so that a small dump would unfold into millions of frames.
type exceptionBudget struct {
	exceptions, frames int
	text               int // bytes of messages and of names of types
}

const (
	maxExceptions    = 1 << 12
	maxStackFrames   = 1 << 15
	maxExceptionText = 1 << 22
)

// spent says what was left out.
func (b *exceptionBudget) spent() error {
	switch {
	case b.exceptions < 0:
		return dump.Errorf(dump.Limit, "exceptions", "threads have more than %d: the rest is left out", maxExceptions)
	case b.frames <= 0:
		return dump.Errorf(dump.Limit, "exceptions", "they carry more than %d frames: the rest is left out", maxStackFrames)
	case b.text <= 0:
		return dump.Errorf(dump.Limit, "exceptions", "their messages and types have more than %d bytes: the rest is left out", maxExceptionText)
	}
	return nil
}

// threadException returns the exception that a thread handles, else the last that it
// threw.
func (r *Runtime) threadException(va uint64) (e *Exception, last bool) {
	a := r.access()
	handle := uint64(0)
	if tracker := a.ptr(va, "Thread", "ExceptionTracker"); a.err == nil && tracker != 0 {
		handle = r.thrown(tracker)
	}
	if handle == 0 {
		a = r.access()
		handle, last = a.ptr(va, "Thread", "LastThrownObject"), true
	}
	if handle == 0 || a.err != nil {
		return nil, false
	}
	object := a.word(handle, "GCHandle")
	if object == 0 || a.err != nil {
		return nil, false
	}
	return r.Exception(object), last
}

// thrown returns the handle of the innermost exception that is being handled.
func (r *Runtime) thrown(tracker uint64) uint64 {
	for range maxNested {
		a := r.access()
		handle := a.ptr(tracker, "ExceptionInfo", "ThrownObject")
		if handle != 0 || a.err != nil {
			return handle
		}
		if tracker = a.ptr(tracker, "ExceptionInfo", "PreviousNestedInfo"); tracker == 0 || a.err != nil {
			return 0
		}
	}
	return 0
}

// Exception reads an exception object, with those inside it.
func (r *Runtime) Exception(object uint64) *Exception {
	defer r.quietly()()
	e := r.exception(object)
	seen := map[uint64]bool{object: true}
	for at := object; len(e.Inner) < maxInner && r.toTell.exceptions >= 0; {
		a := r.access()
		if at = a.ptr(at, "Exception", "_innerException"); at == 0 || a.err != nil || seen[at] {
			break
		}
		seen[at] = true
		e.Inner = append(e.Inner, *r.exception(at))
	}
	return e
}

// exception reads one exception object.
func (r *Runtime) exception(object uint64) *Exception {
	e := &Exception{Address: object}
	if r.toTell.exceptions--; r.toTell.exceptions < 0 {
		e.Note = dump.AsError(r.toTell.spent()).Detail()
		return e
	}
	a := r.access()
	mt, t := r.objectType(a, object)
	if a.err != nil {
		e.Note = dump.AsError(a.err).Detail()
		return e
	}
	e.Type = t.String()
	if r.toTell.text > 0 { // forged types have long names
		e.Bases = r.bases(mt)
	}
	for _, name := range append(e.Bases, e.Type) {
		r.toTell.text -= len(name)
	}
	if text := a.ptr(object, "Exception", "_message"); text != 0 {
		e.Message, e.Cut = r.string(text, min(maxMessage, max(0, r.toTell.text)))
		r.toTell.text -= len(e.Message)
	}
	hr := a.u32(object, "Exception", "_HResult")
	e.HResult, e.HasHR = hr, a.err == nil
	if a.err != nil {
		e.Note = dump.AsError(a.err).Detail()
		return e
	}
	e.Stack = r.trace(a.ptr(object, "Exception", "_stackTrace"))
	return e
}

// bases names the types that a type is derived from.
func (r *Runtime) bases(mt uint64) (out []string) {
	for len(out) < maxBases {
		a := r.access()
		if mt = a.ptr(mt, "MethodTable", "ParentMethodTable"); mt == 0 || a.err != nil {
			break
		}
		t := r.typeName(mt, 0)
		if t.name == "" {
			break
		}
		out = append(out, t.String())
	}
	return out
}
