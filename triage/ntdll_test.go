package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// ntdllScene is a process with an ntdll in memory that has the exports a space
// asks for, and a list head behind its code. Code is the body of
// RtlGetFunctionTableListHead.
func ntdllScene(t *testing.T, code []byte) (pages, *space) {
	t.Helper()
	im := &fixtures.Image{
		Name: "ntdll.dll", Base: ntdllVA, TimeDateStamp: 0x7e57ab62, SizeOfImage: 0x8000,
		Functions: []*fixtures.Function{
			{Name: "KiUserApcDispatcher", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))},
			{Name: "KiUserExceptionDispatcher", RVA: 0x1040, Size: 0x60, Prolog: fixtures.Steps(fixtures.Alloc(0x28))},
			{Name: "RtlGetFunctionTableListHead", RVA: 0x1100, Size: 0x10, Leaf: true, Patches: []fixtures.Patch{{Offset: 0, Bytes: code}}},
		},
	}
	m := pages{
		ntdllVA + 0x7010: make([]byte, 16),
		heapVA:           node(ntdllVA+0x7010, ntdllVA+0x7010, tableVA, jitBase, jitBase+0x1000, jitBase, 0, 0, 1),
		tableVA:          make([]byte, 12),
	}
	put64(m[ntdllVA+0x7010], 0, heapVA, heapVA)
	put32(m[tableVA], 0, 0x100, 0x200, 0x8000)
	for _, r := range im.Mapped() {
		m[r.VA] = r.Data
	}
	return m, newSpace(stub{mem: m, mods: []dump.Module{{Base: ntdllVA, Size: 0x8000, Path: `C:\Windows\System32\ntdll.dll`}}}, symbols.NewStore(nil))
}

// The list head is what RtlGetFunctionTableListHead returns:
// lea rax, [rip+disp32]; ret. From 0x1107 to 0x7010 it is 0x5f09.
func TestListHead(t *testing.T) {
	_, s := ntdllScene(t, []byte{0x48, 0x8d, 0x05, 0x09, 0x5f, 0, 0, 0xc3})
	m, im := s.ntdll()
	if im == nil {
		t.Fatal("no ntdll")
	}
	if head, ok := s.dynamic.listHead(m, im); !ok || head != ntdllVA+0x7010 {
		t.Errorf("%#x %v", head, ok)
	}
	if !s.HasDynamicTables() {
		t.Error("no tables")
	}
	table, base, method := s.DynamicTable(jitBase + 0x180)
	if table == nil || base != jitBase || method != unwind.MethodDynamicTable {
		t.Fatalf("%v %#x %v", table, base, method)
	}
	if rf, ok, _ := table.Lookup(0x180); !ok || rf.Begin != 0x100 {
		t.Errorf("%+v %v", rf, ok)
	}
}

// A body of another form tells nothing, nor does one that points elsewhere.
func TestListHeadOtherForm(t *testing.T) {
	for name, code := range map[string][]byte{
		"mov rax":        {0x48, 0x8b, 0x05, 0x09, 0x5f, 0, 0, 0xc3},
		"no ret":         {0x48, 0x8d, 0x05, 0x09, 0x5f, 0, 0, 0x90},
		"out of ntdll":   {0x48, 0x8d, 0x05, 0, 0, 0, 0x10, 0xc3},
		"in front of it": {0x48, 0x8d, 0x05, 0, 0, 0, 0xf0, 0xc3},
	} {
		_, s := ntdllScene(t, code)
		m, im := s.ntdll()
		if head, ok := s.dynamic.listHead(m, im); ok {
			t.Errorf("%s: %#x", name, head)
		}
	}
}

func TestDispatcherRanges(t *testing.T) {
	_, s := ntdllScene(t, nil)
	for rva, want := range map[uint64]unwind.Dispatcher{
		0x1000: unwind.APCDispatcher, 0x103f: unwind.APCDispatcher,
		0x1040: unwind.ExceptionDispatcher, 0x109f: unwind.ExceptionDispatcher,
		0x10a0: unwind.NoDispatcher, 0x1100: unwind.NoDispatcher, 0x9000: unwind.NoDispatcher,
	} {
		if got := s.Dispatcher(ntdllVA + rva); got != want {
			t.Errorf("%#x: %v, want %v", rva, got, want)
		}
	}
}

// An unloaded module's image serves while nothing contradicts it.
func TestUnloadedImage(t *testing.T) {
	const base, stamp, size = 0x7ff8a0000000, 0x7e57ab61, 0x6000 // of jithost.exe
	gone := dump.Module{Base: base, Size: size, TimeDateStamp: stamp, Path: "jithost.exe", Unloaded: true}
	other := gone
	other.Base -= 0x1000
	unstamped, wrong := gone, gone
	unstamped.TimeDateStamp, wrong.TimeDateStamp = 0, stamp+1
	for name, c := range map[string]struct {
		unloaded []dump.Module
		mem      pages
		regions  []dump.Region
		found    bool
	}{
		"one record":           {[]dump.Module{gone}, nil, nil, true},
		"the same twice":       {[]dump.Module{gone, gone}, nil, nil, true},
		"free now":             {[]dump.Module{gone}, nil, []dump.Region{{Base: base, Size: size, State: 0x10000}}, true},
		"two that overlap":     {[]dump.Module{gone, other}, nil, nil, false},
		"no time stamp":        {[]dump.Module{unstamped}, nil, nil, false},
		"another build":        {[]dump.Module{wrong}, nil, nil, false},
		"memory in its place":  {[]dump.Module{gone}, pages{base + 0x1000: make([]byte, 0x100)}, nil, false},
		"in use by others now": {[]dump.Module{gone}, nil, []dump.Region{{Base: base, Size: size, State: memCommit}}, false},
		"not at this address":  {nil, nil, nil, false},
		"an endless list":      {append(make([]dump.Module, unloadedSearched), gone), nil, nil, false},
	} {
		store := symbols.NewStore([]string{"../fixtures/jit/images"})
		s := newSpace(stub{mem: c.mem}, store)
		s.gone.modules, s.regions = c.unloaded, c.regions
		table, at, method := s.DynamicTable(base + 0x102c)
		if (table != nil) != c.found || c.found && (at != base || method != unwind.MethodPdata) {
			t.Errorf("%s: %v %#x %v", name, table, at, method)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The function's name is that of the image's exports, when the file is proved and
// nothing has taken its place. jithost.exe has host_main at 0x1100.
func TestUnloadedName(t *testing.T) {
	const base, stamp, size = 0x7ff8a0000000, 0x7e57ab61, 0x6000
	for name, c := range map[string]struct {
		stamp uint32
		mem   pages
		want  string
	}{
		"proved":              {stamp, nil, "host_main"},
		"another build":       {stamp + 1, nil, ""},
		"memory in its place": {stamp, pages{base + 0x1000: make([]byte, 0x200)}, ""},
	} {
		store := symbols.NewStore([]string{"../fixtures/jit/images"})
		s := newSpace(stub{mem: c.mem}, store)
		w := newWalker(s, []dump.Module{{Base: base, Size: size, TimeDateStamp: c.stamp, Path: "jithost.exe", Unloaded: true}}, 10, newFrameBudget(1<<20))
		f := w.look(unwind.Frame{IP: base + 0x1100 + 5, Lookup: base + 0x1100 + 4})
		if f.Module != nil || len(f.Unloaded) != 1 || f.Unloaded[0].Module.Name() != "jithost.exe" || f.Name.Function != c.want {
			t.Errorf("%s: %+v", name, f)
		}
		if c.want != "" && f.Name.Offset != 5 {
			t.Errorf("%s: offset %#x", name, f.Name.Offset)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Damage in a process's list and tables makes no panic and no hang.
func FuzzDynamicList(f *testing.F) {
	f.Add(node(headVA, headVA, tableVA, jitBase, jitBase+0x1000, jitBase, 0, 0, 2), []byte{0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0}, rbpFrame)
	f.Add(node(heapVA, heapVA, tableVA, jitBase, jitBase+0x1000, jitBase, heapVA, 2, 0xffffffff), []byte{1}, []byte{9, 0, 1, 0})
	f.Fuzz(func(t *testing.T, entry, table, info []byte) {
		head := make([]byte, 16)
		put64(head, 0, heapVA, heapVA)
		s := listSpace(pages{headVA: head, heapVA: entry, tableVA: table, jitBase + 0x400: info})
		for va := uint64(jitBase); va < jitBase+0x1000; va += 0x55 {
			table, base, _ := s.DynamicTable(va)
			if table == nil || va < base || va-base > 0xffffffff { // the walker does not ask then
				continue
			}
			rf, ok, err := table.Lookup(uint32(va - base))
			if err != nil || !ok {
				continue
			}
			// An indirect entry's target may describe other code, but some.
			raw, _ := table.(*dynamicTable).search(uint32(va - base))
			if indirect := raw.UnwindInfo&1 != 0; rf.Begin >= rf.End || !indirect && (va-base < uint64(rf.Begin) || va-base >= uint64(rf.End)) {
				t.Fatalf("%#x is not in %+v", va-base, rf)
			}
			_, _ = table.UnwindInfo(rf.UnwindInfo)
			table.Primary(rf)
		}
	})
}
