package triage

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// record is an EXCEPTION_RECORD of winnt.h, padded to its whole size.
func record(arch dump.Arch, code, flags uint32, next, address uint64, params ...uint64) []byte {
	var b []byte
	word := func(v uint64) {
		if b = binary.LittleEndian.AppendUint64(b, v); arch.PointerSize() == 4 {
			b = b[:len(b)-4]
		}
	}
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, code), flags)
	word(next)
	word(address)
	word(uint64(len(params))) // and padding
	for _, p := range params {
		word(p)
	}
	for i := len(params); i < 15; i++ {
		word(0)
	}
	return b
}

func TestRaised(t *testing.T) {
	const top, module = 0x80000, 0x401000
	cxx := []uint64{0x19930520, 0x81234, 0x405000, 0x400000}
	for _, arch := range []dump.Arch{dump.AMD64, dump.X86, dump.ARM64} {
		stack := make([]byte, 0x4000)
		put := func(off int, b []byte) { copy(stack[off:], b) }
		put(0x108, record(arch, 0xe0001234, 1, 0, module, 7))          // in a frame that raises
		put(0x208, record(arch, 0xe0001234, 1, 0, module, 7))          // in one that does not
		put(0x308, record(arch, 0xe06d7363, 1, 0, module, cxx...))     // C++ tells itself
		put(0x408, record(arch, 0xe06d7363, 1, 0, module, 1, 2, 3, 4)) // without the magic number
		put(0x508, record(arch, 0xe06d7363, 1, 0, 0x999, cxx...))      // raised outside all modules
		put(0xff0, record(arch, 0xe06d7363, 1, 0, module, cxx...))     // across two pages
		put(0x2008, record(arch, 0xc0000005, 0, 0, module, 1, 0x10))   // in a frame that dispatches
		put(0x2108, record(arch, 0xc0000005, 0, 0, module, 5, 0x10))   // there is no such access
		put(0x2208, record(arch, 0xc0000005, 0x1000, 0, module, 1, 0)) // nor such flags
		put(0x2308, record(arch, 0x00000123, 0, 0, module))            // nor is this an error
		frame := func(name string, off uint64) Frame {
			return Frame{Frame: unwind.Frame{SP: top + off}, Name: symbols.Name{Function: name}}
		}
		th := &Thread{Thread: dump.Thread{ID: 5, StackBase: top + 0x4000}, User: &Half{Registers: dump.Registers{Arch: arch},
			Frames: []Frame{frame("abort", 0), frame("RaiseException", 0x100), frame("work", 0x200), frame("KiUserExceptionDispatcher", 0x2000), frame("main", 0x3000)}}}
		v := NewView(pages{top: stack}, nil, []*Module{{Module: &dump.Module{Base: 0x400000, Size: 0x10000}}})
		want := []Raised{
			{At: top + 0x108, Frame: 1, Live: true, Exception: dump.Exception{Code: 0xe0001234}},
			{At: top + 0x308, Frame: 2, Exception: dump.Exception{Code: 0xe06d7363}},
			{At: top + 0xff0, Frame: 2, Exception: dump.Exception{Code: 0xe06d7363}},
			{At: top + 0x2008, Frame: 3, Live: true, Exception: dump.Exception{Code: 0xc0000005}},
		}
		got := v.Raised(th)
		if len(got) != len(want) {
			t.Errorf("%s: %+v", arch, got)
			continue
		}
		for i, w := range want {
			if g := got[i]; g.At != w.At || g.Frame != w.Frame || g.Live != w.Live || g.Code != w.Code || g.ThreadID != 5 || g.Address != module {
				t.Errorf("%s: %+v, want %+v", arch, g, w)
			}
		}
		if p := got[1].Parameters; len(p) != 4 || p[1] != 0x81234 || p[3] != 0x400000 {
			t.Errorf("%s: parameters %#x", arch, p)
		}
		// Part of the stack is missing.
		v.Memory = pages{top + 0x2000: stack[0x2000:0x2050]}
		if got := v.Raised(th); len(got) != 0 {
			t.Errorf("%s: of a record that is cut off: %+v", arch, got)
		}
	}
	var none *View
	if none.Raised(&Thread{}) != nil {
		t.Error("a view that knows nothing")
	}
}

// The search ends with the stack that the frames are on: what lies behind it is another's.
func TestRaisedEndsWithTheStack(t *testing.T) {
	const top, teb, teb32, module = 0x80000, 0x7ffd0000, 0x7ffd2000, 0x401000
	stack := make([]byte, 0x6000)
	for _, off := range []int{0x100, 0x2100, 0x4100} { // by the frames, behind them, and on the stack behind
		copy(stack[off:], record(dump.X86, 0xe06d7363, 1, 0, module, 0x19930520, 0x81234, 0x405000))
	}
	self := make([]byte, 0x20)
	binary.LittleEndian.PutUint32(self[4:], top+0x4000) // StackBase
	binary.LittleEndian.PutUint32(self[8:], top)        // StackLimit
	binary.LittleEndian.PutUint32(self[0x18:], teb32)   // Self
	head := binary.LittleEndian.AppendUint64(nil, teb32)
	for _, c := range []struct {
		name        string
		memory      pages
		limit, base uint64 // that the dump has of the thread
		want        int
	}{
		{"WoW64", pages{top: stack, teb: head, teb32: self}, 0x31a1b00000, 0x31a1c00000, 2},
		{"WoW64 without the 32-bit TEB", pages{top: stack}, 0x31a1b00000, 0x31a1c00000, 1},
		{"a 64-bit stack below", pages{top: stack}, 0x10000, 0x20000, 1},
		{"no bounds", pages{top: stack}, 0, 0, 1},
	} {
		sp := newSpace(&fake{system: dump.System{Arch: dump.AMD64}, memory: c.memory, modules: []dump.Module{{Base: 0x400000, Size: 0x10000}}}, symbols.NewStore(nil))
		th := &Thread{Thread: dump.Thread{TEB: teb, StackLimit: c.limit, StackBase: c.base},
			User: &Half{Registers: dump.Registers{Arch: dump.X86}, Frames: []Frame{{Frame: unwind.Frame{SP: top}}, {Frame: unwind.Frame{SP: top + 0x200}}}}}
		if got := viewOf(&walker{space: sp}).Raised(th); len(got) != c.want {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}
