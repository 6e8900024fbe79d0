package managed

import "dumptriage/internal/cursor"

// The stack trace of an exception object is an array of bytes: the number of frames,
// the runtime's Thread, then for each frame its address, its stack pointer, its
// MethodDesc and flags. Measured on .NET 10 (x64); what does not look so is no trace.
// With methods that may be unloaded it is an array of objects, of which the first
// is that array.
const (
	traceHead      = 16 // bytes
	traceElement   = 32
	maxTraceFrames = 256
)

// trace reads the stack trace, innermost frame first, of 64-bit runtimes.
func (r *Runtime) trace(array uint64) []StackFrame {
	if array == 0 || r.l.pointer != 8 {
		return nil
	}
	a := r.access()
	_, t := r.objectType(a, array)
	if t.name == "System.Object[]" {
		array = a.word(array+a.size("Array", 16), "stack trace")
		_, t = r.objectType(a, array)
	}
	if a.err != nil || t.name != "System.SByte[]" && t.name != "System.Byte[]" {
		return nil
	}
	length := a.u32(array, "Array", "m_NumComponents")
	data := array + a.size("Array", 16)
	n := uint64(uint32(a.number(data, 4, "stack trace")))
	if a.err != nil || n > uint64(length)/traceElement {
		return nil
	}
	b := make([]byte, traceElement*min(n, maxTraceFrames, uint64(max(0, r.toTell.frames))))
	got, _ := a.mem.ReadAt(b, data+traceHead)
	var out []StackFrame
	for c := cursor.New(b[:got], "stack trace", -1); c.Left() >= traceElement; {
		ip, _, md := c.U64(), c.U64(), c.U64()
		c.Skip(8)
		m, err := r.describe(md)
		if ip == 0 || err != nil {
			return out
		}
		named := *m
		if code, ok, _ := r.Code(ip - 1); ok && code.MethodDesc == md {
			named.Start = code.Start
		}
		out = append(out, StackFrame{IP: ip, Method: &named})
		r.toTell.frames--
	}
	return out
}
