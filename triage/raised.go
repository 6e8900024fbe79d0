package triage

import (
	"encoding/binary"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// Raised is an exception whose record lies on a thread's stack: one that the thread
// was raising or handling, or, in a part of the stack that nothing is known of, one
// that is over.
type Raised struct {
	dump.Exception        // without a Context
	At             uint64 // where the record lies
	Frame          int    // of the user half, whose part of the stack holds it; -1 none
	// Live is set when Frame raises or dispatches exceptions, or another record points to
	// this one: then the exception was not over.
	Live bool
}

const (
	maxRaised     = 16      // records on one stack
	maxRaisedScan = 1 << 20 // bytes of a stack that are searched
	exceptionCxx  = 0xe06d7363
)

// ExceptionAt reads the EXCEPTION_RECORD at an address; ok is false when what is there
// cannot be one.
func (v *View) ExceptionAt(va uint64, arch dump.Arch) (e dump.Exception, ok bool) {
	b := make([]byte, threadcontext.ExceptionRecordSize(arch.PointerSize()))
	if n, _ := v.ReadAt(b, va); n < len(b) {
		return e, false
	}
	return parseRecord(b, arch)
}

// parseRecord decodes a record and reports whether it can be one.
func parseRecord(b []byte, arch dump.Arch) (e dump.Exception, ok bool) {
	c := cursor.New(b, "EXCEPTION_RECORD", -1)
	r := threadcontext.ParseExceptionRecord(c, arch.PointerSize())
	e = dump.Exception{Code: r.Code, Flags: r.Flags, Record: r.Record, Address: r.Address, Parameters: r.Parameters}
	if c.Err() != nil || r.Count > threadcontext.MaxExceptionParameters || e.Flags > 0xff || !raisable(e.Code) {
		return e, false
	}
	switch e.Code {
	case exceptionCxx:
		ok = r.Count >= 3 && e.Parameters[0] >= 0x19930520 && e.Parameters[0] <= 0x19930522
	case exceptionAccessViolation:
		ok = r.Count == 2 && (e.Parameters[0] <= 1 || e.Parameters[0] == 8)
	default:
		ok = true
	}
	return e, ok && e.Address != 0
}

// raisable reports whether a number is the code of an exception that ends programs:
// an error, or a breakpoint or the like.
func raisable(code uint32) bool { return code>>30 == 3 || code>>28 == 8 && code&0xfffffff < 0x100 }

// raisers are functions that have the record of an exception in their frame.
var raisers = map[string]bool{"RaiseException": true, "RtlRaiseException": true, "RtlRaiseStatus": true,
	"KiUserExceptionDispatch": true, "KiUserExceptionDispatcher": true, "KiRaiseUserExceptionDispatcher": true}

// Raised finds the exceptions whose records lie on the user half of a thread's stack,
// innermost first: those in frames that raise or dispatch, and C++ exceptions, which
// tell themselves, anywhere.
func (v *View) Raised(t *Thread) []Raised {
	if v == nil || t.User == nil || len(t.User.Frames) == 0 {
		return nil
	}
	arch := t.User.Registers.Arch
	from, step := t.User.Frames[0].SP, uint64(arch.PointerSize())
	if step == 0 || from%step != 0 {
		return nil
	}
	var out []Raised
	frame, size := 0, threadcontext.ExceptionRecordSize(arch.PointerSize())
	v.eachPage(from, v.stackEnd(t), func(va uint64, b []byte) bool {
		for off := 0; off+4 <= len(b); off += int(step) {
			code := binary.LittleEndian.Uint32(b[off:])
			if !raisable(code) {
				continue
			}
			at := va + uint64(off)
			frame = frameOf(t.User.Frames, at, frame)
			live := frame >= 0 && raisers[t.User.Frames[frame].Name.Function]
			if code != exceptionCxx && !live {
				continue
			}
			e, ok := dump.Exception{}, false
			if off+size <= len(b) {
				e, ok = parseRecord(b[off:off+size], arch)
			} else {
				e, ok = v.ExceptionAt(at, arch)
			}
			if ok && v.Module(e.Address) != nil {
				e.ThreadID = t.ID
				out = append(out, Raised{Exception: e, At: at, Frame: frame, Live: live})
			}
			if len(out) == maxRaised {
				return false
			}
		}
		return true
	})
	return out
}

// stackEnd is where the search of a thread's stack ends: at its base, and where its
// bounds are not known or are of another stack, with the page of the last frame.
func (v *View) stackEnd(t *Thread) uint64 {
	first, last := t.User.Frames[0].SP, t.User.Frames[len(t.User.Frames)-1].SP
	limit, end := t.StackLimit, t.StackBase
	if v.walker != nil && t.User.Registers.Arch.PointerSize() < v.space.arch.PointerSize() {
		limit, end = v.walker.teb32Bounds(t.TEB) // the thread's own are of the 64-bit stack
	}
	if first < limit || first >= end {
		end = (last | 0xfff) + 1
	}
	return min(end, first+maxRaisedScan)
}

// eachPage gives what there is of memory from an address to another, by pages, until
// do returns false.
func (v *View) eachPage(from, to uint64, do func(va uint64, b []byte) bool) {
	const page = 0x1000
	var b [page]byte
	for va := from; va < to; {
		n := int(min(page-va%page, to-va))
		got, _ := v.ReadAt(b[:n], va)
		if got > 0 && !do(va, b[:got]) {
			return
		}
		va += uint64(n)
	}
}

// frameOf is the frame whose part of the stack holds an address, sought from one on;
// -1 in front of the first.
func frameOf(frames []Frame, va uint64, from int) int {
	i := max(from, 0)
	for i+1 < len(frames) && frames[i+1].SP <= va {
		i++
	}
	if va < frames[i].SP {
		return -1
	}
	return i
}

// Raising reports whether a frame of the thread's user half raises or dispatches an
// exception.
func (t *Thread) Raising() bool {
	if t.User == nil {
		return false
	}
	for i := range t.User.Frames {
		if raisers[t.User.Frames[i].Name.Function] {
			return true
		}
	}
	return false
}
