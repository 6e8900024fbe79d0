package triage

import (
	"encoding/binary"
	"slices"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

const (
	jitBase  = 0x21e47400000
	heapVA   = 0x1a0000 // where the list's entries are
	headVA   = ntdllVA + 0x3010
	ntdllVA  = 0x7ffa3b420000
	tableVA  = 0x1b0000
	stackVA  = 0x5ebed10000
	stackTop = stackVA + 0x4000
)

func put64(b []byte, off int, v ...uint64) {
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[off+8*i:], x)
	}
}

func put32(b []byte, off int, v ...uint32) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[off+4*i:], x)
	}
}

// rbpFrame is the UNWIND_INFO of push rbp; mov rbp, rsp as Mono writes it:
// version 1, prolog of 4 bytes, 2 codes, frame register rbp; SET_FPREG at 4,
// PUSH_NONVOL rbp at 1.
var rbpFrame = []byte{1, 4, 2, 5, 4, 3, 1, 0x50}

// node is a DYNAMIC_FUNCTION_TABLE: links, FunctionTable, time stamp, Minimum-,
// Maximum- and BaseAddress, callback, context, DLL, Type, EntryCount.
func node(next, prev, table, low, high, base, dll uint64, kind, count uint32) []byte {
	b := make([]byte, 0x58)
	put64(b, 0, next, prev, table, 0x1d760c35ff30eb0, low, high, base, 0, 0, dll)
	put32(b, 0x50, kind, count)
	return b
}

// listSpace is a process whose list of dynamic function tables begins at headVA.
func listSpace(m pages) *space {
	s := newSpace(stub{mem: m}, symbols.NewStore(nil))
	s.arch = dump.AMD64
	d := s.dynamic
	d.opened = true
	d.tables, _ = d.walkList(headVA)
	d.finish()
	return s
}

// Each type of table, its entries in memory: sorted, unsorted, growable, and a
// callback, whose range alone is known.
func TestDynamicList(t *testing.T) {
	const n1, n2, n3, n4 = heapVA, heapVA + 0x100, heapVA + 0x200, heapVA + 0x300
	head := make([]byte, 16)
	put64(head, 0, n1, n4)
	entries := make([]byte, 0x100)
	put32(entries, 0x00, 0x000, 0x100, 0x8000, 0x100, 0x180, 0x8000) // sorted
	put32(entries, 0x40, 0x400, 0x500, 0x8000, 0x100, 0x180, 0x8000) // not
	put32(entries, 0x80, 0x000, 0x100, 0x8000)                       // one live entry of a growable table
	s := listSpace(pages{
		headVA: head, tableVA: entries, jitBase + 0x8000: rbpFrame, jitBase + 0x18000: rbpFrame, jitBase + 0x28000: rbpFrame,
		n1:             node(n2, headVA, tableVA, jitBase, jitBase+0x10000, jitBase, 0, 0, 2),
		n2:             node(n3, n1, tableVA+0x40, jitBase+0x10000, jitBase+0x20000, jitBase+0x10000, 0, 1, 2),
		n3:             node(n4, n2, tableVA+0x80, jitBase+0x20000, jitBase+0x30000, jitBase+0x20000, 0, 3, 1),
		n4:             node(headVA, n3, 0, jitBase+0x30000, jitBase+0x40000, jitBase+0x30000, heapVA+0x400, 2, 0),
		heapVA + 0x400: []byte("C\x00:\x00\\\x00c\x00l\x00r\x00.\x00d\x00l\x00l\x00\x00\x00"),
	})
	for _, c := range []struct {
		va, begin uint64
		found     bool
	}{
		{jitBase, 0, true}, {jitBase + 0x17f, 0x100, true}, {jitBase + 0x180, 0, false},
		{jitBase + 0x10123, 0x100, true}, {jitBase + 0x104ff, 0x400, true}, {jitBase + 0x10200, 0, false},
		{jitBase + 0x20010, 0, true}, {jitBase + 0x20100, 0, false},
		{jitBase + 0x30010, 0, false},
	} {
		table, base, method := s.DynamicTable(c.va)
		if table == nil {
			t.Errorf("%#x: no table", c.va)
			continue
		}
		rf, ok, err := table.Lookup(uint32(c.va - base))
		if ok != c.found || err != nil || method != unwind.MethodDynamicTable || uint64(rf.Begin) != c.begin && ok {
			t.Errorf("%#x: %+v %v %v %v", c.va, rf, ok, err, method)
		}
		if !ok {
			continue
		}
		if info, err := table.UnwindInfo(rf.UnwindInfo); err != nil || info.FrameRegister != 5 || len(info.Codes) != 2 {
			t.Errorf("%#x: %+v %v", c.va, info, err)
		}
	}
	if table, _, _ := s.DynamicTable(jitBase + 0x40000); table != nil {
		t.Error("a table for an address behind all ranges")
	}
	table, _, _ := s.DynamicTable(jitBase + 0x30010)
	if got := table.(unwind.Remarker).Remark(); got != "code made at run time, of whose functions only a callback knows (clr.dll)" {
		t.Error(got)
	}
}

// Lists that lie: none may hang, and what cannot be trusted is left out.
func TestDynamicListHostile(t *testing.T) {
	const n1, n2 = heapVA, heapVA + 0x100
	head := make([]byte, 16)
	put64(head, 0, n1, n2)
	good := node(n2, headVA, tableVA, jitBase, jitBase+0x1000, jitBase, 0, 0, 1)
	for name, c := range map[string]struct {
		second []byte
		tables int
	}{
		"cycle that leaves the head out": {node(n1, n1, tableVA, jitBase+0x1000, jitBase+0x2000, jitBase, 0, 0, 1), 2},
		"entry that points at itself":    {node(n2, n1, tableVA, jitBase+0x1000, jitBase+0x2000, jitBase, 0, 0, 1), 2},
		"wrong back link":                {node(headVA, 0x1234, tableVA, jitBase, jitBase+0x1000, jitBase, 0, 0, 1), 1},
		"empty range":                    {node(headVA, n1, tableVA, jitBase, jitBase, jitBase, 0, 0, 1), 1},
		"unknown type":                   {node(headVA, n1, tableVA, jitBase+0x1000, jitBase+0x2000, jitBase, 0, 4, 1), 1},
		"absurd count":                   {node(headVA, n1, tableVA, jitBase+0x1000, jitBase+0x2000, jitBase, 0, 0, 0xffffffff), 2},
		"not there":                      {nil, 1},
	} {
		m := pages{headVA: head, n1: good, tableVA: make([]byte, 12)}
		if c.second != nil {
			m[n2] = c.second
		}
		s := listSpace(m)
		if len(s.dynamic.tables) != c.tables {
			t.Errorf("%s: %d tables, want %d", name, len(s.dynamic.tables), c.tables)
		}
		for va := uint64(jitBase); va < jitBase+0x3000; va += 0x111 {
			if table, _, _ := s.DynamicTable(va); table != nil {
				if rf, ok, _ := table.Lookup(uint32(va - jitBase)); ok {
					t.Errorf("%s: %#x is in %+v", name, va, rf)
				}
			}
		}
	}
}

// The head is found in ntdll's data by its shape, where no export tells it.
func TestDynamicListByShape(t *testing.T) {
	data := make([]byte, 0x4000)
	put64(data, 0x1000, heapVA+0x800, heapVA+0x800) // a list of something else
	put64(data, 0x3010, heapVA, heapVA)
	m := pages{ntdllVA: data, heapVA: node(headVA, headVA, tableVA, jitBase, jitBase+0x1000, jitBase, 0, 0, 1), tableVA: make([]byte, 12)}
	s := newSpace(stub{mem: m}, symbols.NewStore(nil))
	mod := &Module{Module: &dump.Module{Base: ntdllVA, Size: 0x4000, Path: "ntdll.dll"}}
	got := s.dynamic.searchHead(mod, &pdata.Image{})
	if len(got) != 1 || got[0].min != jitBase || got[0].count != 1 {
		t.Errorf("%+v", got)
	}
}

// HotSpot registers one entry for all of its code, with a handler and nothing
// else: version 1, flag EHANDLER. Taken at its word, all of it would be leaves.
func TestDynamicHandlerOnly(t *testing.T) {
	entries := make([]byte, 12)
	put32(entries, 0, 0, 0x10000, 0x20)
	m := pages{tableVA: entries, jitBase + 0x20: {1 | 1<<3, 0, 0, 0, 0x40, 0, 0, 0}}
	s := newSpace(stub{mem: m}, symbols.NewStore(nil))
	d := s.dynamic
	d.opened = true
	d.tables = []*dynamicTable{{owner: d, min: jitBase, max: jitBase + 0x10000, base: jitBase, count: 1, entries: memoryEntries{m, tableVA}}}
	d.finish()
	table, _, _ := s.DynamicTable(jitBase + 0x1234)
	if table == nil {
		t.Fatal("no table")
	}
	if rf, ok, _ := table.Lookup(0x1234); ok {
		t.Errorf("%+v", rf)
	}
	if got := table.(unwind.Remarker).Remark(); got != "code made at run time, of whose range only an exception handler is registered" {
		t.Error(got)
	}
	// Version 3 keeps its prolog elsewhere: one push, and a handler. That is a
	// function like any other.
	v3 := m[jitBase+0x20]
	m[jitBase+0x20] = []byte{3 | 1<<3, 1, 1, 1, 0, 0x1c, 0, 0, 0x40, 0, 0, 0}
	d.tables[0].infos = nil
	if _, ok, _ := table.Lookup(0x1234); !ok {
		t.Error("an entry of version 3 with a prolog and a handler is not found")
	}
	m[jitBase+0x20] = v3
	m[jitBase+0x20][0] = 1 // no handler: now it says leaf, and is believed
	d.tables[0].infos = nil
	if _, ok, _ := table.Lookup(0x1234); !ok {
		t.Error("an entry without codes or handler is not found")
	}
}

// Tables may overlap; the one that has an entry counts.
func TestDynamicOverlap(t *testing.T) {
	m := pages{tableVA: make([]byte, 0x100)}
	put32(m[tableVA], 0, 0x800, 0x900, 0x8000)
	put32(m[tableVA], 12, 0x500, 0x580, 0x8000)
	s := newSpace(stub{mem: m}, symbols.NewStore(nil))
	d := s.dynamic
	d.opened = true
	for i, r := range [][2]uint64{{jitBase, jitBase + 0x10000}, {jitBase + 0x400, jitBase + 0x600}} {
		d.tables = append(d.tables, &dynamicTable{owner: d, min: r[0], max: r[1], base: jitBase, count: 1, entries: memoryEntries{m, tableVA + 12*uint64(i)}})
	}
	slices.Reverse(d.tables)
	d.finish()
	for va, begin := range map[uint64]uint32{jitBase + 0x540: 0x500, jitBase + 0x880: 0x800} {
		table, base, _ := s.DynamicTable(va)
		if table == nil {
			t.Errorf("%#x: no table", va)
			continue
		}
		if rf, ok, _ := table.Lookup(uint32(va - base)); !ok || rf.Begin != begin {
			t.Errorf("%#x: %+v %v", va, rf, ok)
		}
	}
}
