package triage

import (
	"testing"
	"unicode/utf16"

	"dumptriage/managed"
	"dumptriage/unwind"
)

// A .NET runtime without a descriptor registers its code with the system: a table that
// its debugger library answers for, called with the manager of its code heaps. The
// layouts are those measured of .NET Core 2.2 and .NET 10.
func TestCodeHeapOfList(t *testing.T) {
	m, s := ntdllScene(t, []byte{0x48, 0x8d, 0x05, 0x09, 0x5f, 0, 0, 0xc3})
	const manager, list, nibbles, header, name = 0x2_0001_0000, 0x2_0002_0000, 0x2_0003_0000, 0x2_0004_0000, 0x2_0005_0000
	put64(m[heapVA], 0x40, manager, name)
	put32(m[heapVA], 0x50, 2)
	for _, u := range utf16.Encode([]rune("C:\\dotnet\\mscordaccore.dll\x00")) {
		m[name] = append(m[name], byte(u), byte(u>>8))
	}
	m[manager], m[list], m[nibbles], m[header] = make([]byte, 0x20), make([]byte, 0x30), make([]byte, 0x100), make([]byte, 0x40)
	put64(m[manager], 0x10, list)
	put64(m[list], 0x10, jitBase+0x100, jitBase+0x1000, jitBase, nibbles)
	put32(m[nibbles], 4, 0x10000000) // a method at 100h
	m[jitBase+0xf8] = make([]byte, 0x208)
	put64(m[jitBase+0xf8], 0, header)
	put32(m[header], 0x20, 1, 0x100, 0x180, 0x200)
	m[jitBase+0xf8][0x108] = 1 // UNWIND_INFO of a function without a prolog

	table, base, method := s.DynamicTable(jitBase + 0x150)
	if table == nil || base != jitBase || method != unwind.MethodCodeHeap {
		t.Fatalf("%v, %#x, %v", table, base, method)
	}
	if rf, ok, err := table.Lookup(0x150); !ok || err != nil || rf.Begin != 0x100 || rf.End != 0x180 {
		t.Errorf("%+v, %v, %v", rf, ok, err)
	}
	f := Frame{Frame: unwind.Frame{IP: jitBase + 0x150, Lookup: jitBase + 0x150}}
	if s.managedName(&f); f.Managed == nil || f.Managed.Source != managed.SourceLayout || f.Name.Function != "" || f.Managed.Note == "" {
		t.Errorf("%+v", f.Managed)
	}
	// The library of another runtime's debugger says nothing of such heaps.
	m, s = ntdllScene(t, []byte{0x48, 0x8d, 0x05, 0x09, 0x5f, 0, 0, 0xc3})
	put64(m[heapVA], 0x40, manager, 0)
	put32(m[heapVA], 0x50, 2)
	if r := s.runtime(true); r != nil {
		t.Errorf("a callback of nobody's is taken for .NET's: %+v", r)
	}
}
