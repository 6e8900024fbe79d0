package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// An entry whose UnwindInfo is odd refers to another entry, at that RVA less
// one; so may the entry that chained unwind data ends in.
func TestDynamicIndirect(t *testing.T) {
	const (
		direct, indirect, lost, round = 0x9000, 0x9010, 0xf000, 0x9020
		chained, chainsLost           = 0x8100, 0x8200
	)
	chain := func(to uint32) []byte { // version 1, flag CHAININFO, no codes; then the entry
		b := []byte{1 | 4<<3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		put32(b, 4, 0x100, 0x200, to)
		return b
	}
	entries := make([]byte, 0x100)
	put32(entries, 0, 0x100, 0x200, 0x8000, 0x200, 0x300, direct|1, 0x300, 0x400, indirect|1,
		0x400, 0x500, chained, 0x500, 0x600, lost|1, 0x600, 0x700, round|1, 0x700, 0x800, chainsLost)
	links := make([]byte, 0x30)
	put32(links, 0x00, 0x100, 0x200, 0x8000)
	put32(links, 0x10, 0x100, 0x200, direct|1)
	put32(links, 0x20, 0x100, 0x200, round|1) // refers to itself
	m := pages{tableVA: entries, jitBase + 0x8000: rbpFrame, jitBase + direct: links,
		jitBase + chained: chain(indirect | 1), jitBase + chainsLost: chain(lost | 1)}
	s := newSpace(stub{mem: m}, symbols.NewStore(nil))
	d := s.dynamic
	d.opened = true
	d.tables = []*dynamicTable{{owner: d, min: jitBase, max: jitBase + 0x10000, base: jitBase, count: 7, method: unwind.MethodDynamicTable, entries: memoryEntries{m, tableVA}}}
	d.finish()
	for _, c := range []struct {
		rva, info uint32
		primary   uint32
		code      dump.Code
	}{
		{0x110, 0x8000, 0x100, ""}, {0x210, 0x8000, 0x100, ""}, {0x310, 0x8000, 0x100, ""}, {0x410, chained, 0x100, ""},
		{0x510, lost | 1, 0, dump.OutOfRange}, {0x610, round | 1, 0, dump.Cycle}, {0x710, chainsLost, 0, dump.OutOfRange},
	} {
		table, _, _ := s.DynamicTable(jitBase + uint64(c.rva))
		rf, ok, err := table.Lookup(c.rva)
		if !ok || err != nil || rf.UnwindInfo != c.info {
			t.Errorf("%#x: %+v %v %v, want information at %#x", c.rva, rf, ok, err, c.info)
			continue
		}
		_, err = table.UnwindInfo(rf.UnwindInfo)
		if e, _ := err.(*dump.Error); (e == nil) != (c.code == "") || e != nil && e.Code != c.code {
			t.Errorf("%#x: %v, want %q", c.rva, err, c.code)
		}
		if c.code == "" {
			if p := table.Primary(rf); p.Begin != c.primary || p.UnwindInfo != 0x8000 {
				t.Errorf("%#x: primary %+v", c.rva, p)
			}
		}
	}
}
