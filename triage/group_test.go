package triage

import (
	"slices"
	"testing"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// stackOf is a half whose frames lie at offsets in a module; base 0 means in no
// module, at those addresses.
func stackOf(name string, base uint64, capture int, offsets ...uint64) *Half {
	h := &Half{}
	for i, off := range offsets {
		f := Frame{Frame: unwind.Frame{IP: base + off}, Capture: i < capture}
		if base != 0 {
			f.Module = &Module{Module: &dump.Module{Base: base, Size: 0x10000, Path: name}}
		}
		h.Frames = append(h.Frames, f)
	}
	return h
}

func TestGroups(t *testing.T) {
	inc := &Incident{Threads: []Thread{
		{User: stackOf("a.dll", 0x10000, 0, 1, 2)},
		{User: stackOf("b.dll", 0x20000, 0, 1)},
		{User: stackOf("a.dll", 0x10000, 0, 1, 2)},
		{User: stackOf("a.dll", 0x10000, 0, 1)},                                          // shorter
		{User: stackOf("a.dll", 0x10000, 0, 1, 2), Kernel: stackOf("nt", 0x30000, 0, 5)}, // with a kernel half
		{User: stackOf("a.dll", 0x10000, 0, 1, 2), Kernel: stackOf("nt", 0x30000, 1, 4)}, // which is the capture's alone
		{User: stackOf("", 0, 0, 0x10001, 0x10002)},                                      // the same addresses, but in no module
	}}
	var got [][]int
	ids := map[string]bool{}
	for _, g := range inc.Groups() {
		got = append(got, g.Threads)
		ids[g.ID] = true
	}
	want := [][]int{{0, 2, 5}, {1}, {3}, {4}, {6}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
	if len(ids) != len(want) {
		t.Errorf("%d ids for %d groups", len(ids), len(want))
	}
	moved := &Incident{Threads: []Thread{{User: stackOf("A.DLL", 0x7fff0000, 0, 1, 2)}}}
	if moved.Groups()[0].ID != inc.Groups()[0].ID {
		t.Error("the id changes with the load address or the case of the module's name")
	}
}
