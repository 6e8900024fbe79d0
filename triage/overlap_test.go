package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
)

// Where modules overlap in a damaged list the answer must not depend on what was
// asked before: of those that hold an address the one with the highest base.
func TestOverlappingModules(t *testing.T) {
	mods := []dump.Module{
		{Base: 0x10000, Size: 0x10000, Path: "outer.dll"},
		{Base: 0x14000, Size: 0x1000, Path: "inner.dll"},
		{Base: 0x40000, Size: 0x1000, Path: "apart.dll"},
		{Base: 0xfffffffffffff000, Size: 0x2000, Path: "wraps.dll"},
	}
	s := newSpace(stub{mem: pages{}, mods: mods}, symbols.NewStore(nil))
	asked := []struct {
		va   uint64
		want string
	}{
		{0x10800, "outer.dll"}, {0x14800, "inner.dll"}, {0x15800, "outer.dll"}, {0x14800, "inner.dll"},
		{0x40800, "apart.dll"}, {0x20000, ""}, {0x40fff, "apart.dll"}, {0x41000, ""}, {0xfffffffffffff800, "wraps.dll"}, {0xffff, ""},
	}
	for _, first := range asked {
		for _, q := range asked {
			s.find(first.va)
			got := ""
			if m := s.find(q.va); m != nil {
				got = m.Name()
			}
			if got != q.want {
				t.Errorf("%#x after %#x: %q, want %q", q.va, first.va, got, q.want)
			}
		}
	}
}
