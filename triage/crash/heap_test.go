package crash

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// The layout of 32-bit code, and what is no such structure.
func TestHeapFailureX86(t *testing.T) {
	words := func(w ...uint32) (b []byte) {
		for _, v := range w {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	for _, c := range []struct {
		memory []byte
		want   *HeapFailure
	}{
		{words(1, 0xb0, 11, 0x520000, 0x525e10), &HeapFailure{11, "usage_after_free", 0x520000, 0x525e10}},
		{words(1, 0xb0, 99, 0x520000, 0), &HeapFailure{99, "", 0x520000, 0}}, // of a system to come
		{words(1, 0xb0, 11, 0x520000), nil},                                  // cut off
		{words(1, 0, 0, 0, 0), nil},                                          // as it is in the file
		{words(1, 0xb0, 0, 0, 0), nil},                                       // never filled
		{words(0x1234567, 0xb0, 11, 0x520000, 0), nil},
		{words(1, 0xb0, 11, 0x520004, 0), nil}, // no heap begins there
	} {
		inc := incident(codeHeapCorruption)
		inc.System.Arch, inc.Crash.Context.Arch = dump.X86, dump.X86
		inc.Crash.Parameters = []uint64{0x775d4268}
		inc.UserSpace = triage.NewView(pages{0x775d4268: c.memory}, nil, []*triage.Module{{Module: &dump.Module{Base: 0x77500000, Size: 0x180000, Path: "ntdll.dll"}}})
		if v := Of(inc, nil); (v.Heap == nil) != (c.want == nil) || v.Heap != nil && *v.Heap != *c.want {
			t.Errorf("%x: %+v, want %+v", c.memory, v.Heap, c.want)
		}
	}
}
