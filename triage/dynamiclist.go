package triage

import (
	"strings"
	"unicode/utf16"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// The process's own list of dynamic function tables, as far as a dump with
// ntdll and the heap in it holds it. DYNAMIC_FUNCTION_TABLE of x64 is described
// in Microsoft's developer notes; its offsets are confirmed by the copies that
// dump writers put into FunctionTable streams.
const (
	nodeTable    = 0x10 // FunctionTable
	nodeMin      = 0x20 // MinimumAddress
	nodeMax      = 0x28 // MaximumAddress
	nodeBase     = 0x30 // BaseAddress
	nodeContext  = 0x40 // Context
	nodeProvider = 0x48 // OutOfProcessCallbackDll
	nodeType     = 0x50
	nodeCount    = 0x54 // EntryCount
	nodeSize     = 0x58

	maxNodes       = 1 << 16
	maxProvider    = 260 // characters
	maxHeadScan    = 4 << 20
	tableEntrySize = 12
	listHeadExport = "RtlGetFunctionTableListHead"
)

// addList adds the tables of the process's list.
func (d *dynamicTables) addList() {
	m, im := d.space.ntdll()
	if im == nil {
		return
	}
	if head, ok := d.listHead(m, im); ok {
		d.tables, _ = d.walkList(head)
		return
	}
	d.tables = d.searchHead(m, im)
}

// ntdll returns the 64-bit ntdll; a 32-bit process has another beside it.
func (s *space) ntdll() (*Module, *pdata.Image) {
	for _, m := range s.mods {
		if strings.EqualFold(m.Name(), "ntdll.dll") {
			if im := s.imageOf(m); im != nil && im.HasFunctionTable() {
				return m, im
			}
		}
	}
	return nil, nil
}

// listHead decodes RtlGetFunctionTableListHead, a documented export that
// returns the list head's address: lea rax, [rip+disp32]; ret.
func (d *dynamicTables) listHead(m *Module, im *pdata.Image) (uint64, bool) {
	rva, ok := exportRVA(im, listHeadExport)
	if !ok {
		return 0, false
	}
	var code [8]byte
	if n, _ := im.ReadRVA(code[:], rva); n < len(code) {
		return 0, false
	}
	c := cursor.New(code[:], "code", -1)
	op, disp, ret := c.Bytes(3), c.U32(), c.U8()
	if string(op) != "\x48\x8d\x05" || ret != 0xc3 {
		return 0, false
	}
	head := m.Base + uint64(rva) + 7 + uint64(int64(int32(disp)))
	return head, m.Contains(head)
}

func exportRVA(im *pdata.Image, name string) (uint32, bool) {
	for e, err := range im.Exports() {
		if err != nil {
			return 0, false
		}
		if e.Name == name {
			return e.RVA, e.Forwarder == ""
		}
	}
	return 0, false
}

// walkList reads the tables of a list. Each entry must point back at the one
// before, which no cycle survives that does not close at the head; whole says
// that the list did close.
func (d *dynamicTables) walkList(head uint64) (tables []*dynamicTable, whole bool) {
	at, ok := d.word(head)
	for prev := head; ok && len(tables) < maxNodes; {
		if at == head {
			return tables, true
		}
		next, t := d.node(at, prev)
		if t == nil {
			return tables, false
		}
		tables = append(tables, t)
		prev, at = at, next
	}
	return tables, false
}

func (d *dynamicTables) word(va uint64) (uint64, bool) {
	v, err := dump.ReadUint64(d.space.mem, va)
	return v, err == nil
}

// node reads one DYNAMIC_FUNCTION_TABLE; the table is nil when it is none.
func (d *dynamicTables) node(va, prev uint64) (next uint64, t *dynamicTable) {
	var b [nodeSize]byte
	if d.space.peek(b[:], va) < nodeSize {
		return 0, nil
	}
	c := cursor.New(b[:], "DYNAMIC_FUNCTION_TABLE", -1)
	next, back := c.U64(), c.U64()
	c.Seek(nodeTable)
	entries := c.U64()
	c.Seek(nodeMin)
	t = &dynamicTable{owner: d, method: unwind.MethodDynamicTable, min: c.U64(), max: c.U64(), base: c.U64()}
	c.Seek(nodeContext)
	t.context = c.U64()
	provider := c.U64() // at nodeProvider
	t.kind = tableKind(c.U32())
	count := c.U32()
	if back != prev || t.kind > tableGrowable || t.min >= t.max {
		return 0, nil
	}
	d.space.used(va, nodeSize)
	if t.kind == tableCallback {
		t.provider = d.text(provider)
		return next, t // it has no entries
	}
	t.count = int(min(count, maxDynamicEntries))
	t.entries = memoryEntries{d.space.mem, entries}
	return next, t
}

// text reads a NUL-terminated UTF-16 string.
func (d *dynamicTables) text(va uint64) string {
	if va == 0 {
		return ""
	}
	var b [2 * maxProvider]byte
	n := d.space.peek(b[:], va)
	s := cursor.UTF16(b[:n&^1])
	d.space.used(va, min(n, 2*(len(utf16.Encode([]rune(s)))+1)))
	return dump.BaseName(s)
}

// searchHead finds the list head by its shape where the export does not tell
// it: a LIST_ENTRY in ntdll's data whose list is one of tables and closes.
func (d *dynamicTables) searchHead(m *Module, im *pdata.Image) []*dynamicTable {
	const chunk = 64 << 10
	size := min(m.Size, maxHeadScan)
	buf := make([]byte, chunk+8)
	for at := uint64(0); at < size; {
		want := min(chunk+8, size-at)
		n := d.space.peek(buf[:want], m.Base+at)
		c := cursor.New(buf[:n], "ntdll", -1)
		for i := 0; i+16 <= n; i += 8 {
			c.Seek(i)
			next, back := c.U64(), c.U64()
			if !listLike(next) || !listLike(back) || m.Contains(next) || m.Contains(back) || im.Executable(uint32(at)+uint32(i)) {
				continue
			}
			if tables, whole := d.walkList(m.Base + at + uint64(i)); whole && len(tables) > 0 {
				d.space.usedFromPage(m.Base+at+uint64(i), 16)
				return tables
			}
		}
		if at += chunk; uint64(n) < want {
			at += uint64(n)&^0xfff + 0x1000 - chunk // behind the page that is missing
		}
	}
	return nil
}

// listLike reports whether v can be the address of a LIST_ENTRY on a heap.
func listLike(v uint64) bool { return v&7 == 0 && v >= 0x10000 && v < 1<<47 }

// memoryEntries are a table's entries in the process's memory.
type memoryEntries struct {
	mem dump.Memory
	va  uint64
}

func (s memoryEntries) entry(i int) (pdata.RuntimeFunction, bool) {
	var b [tableEntrySize]byte
	va := s.va + uint64(i)*tableEntrySize
	if n, _ := s.mem.ReadAt(b[:], va); va < s.va || n < len(b) {
		return pdata.RuntimeFunction{}, false
	}
	c := cursor.New(b[:], "RUNTIME_FUNCTION", -1)
	return pdata.RuntimeFunction{Begin: c.U32(), End: c.U32(), UnwindInfo: c.U32()}, true
}
