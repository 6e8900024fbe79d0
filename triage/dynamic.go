package triage

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/minidump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

const (
	maxDynamicEntries = 1 << 22 // of one table; the largest seen has 62,000
	// All tables of a process together may have so many entries looked at one
	// by one, to learn their order, and so many copied and sorted.
	orderBudget = 1 << 22
	sortBudget  = 1 << 21
)

// tableSource is implemented by dumps that list function tables themselves.
type tableSource interface {
	FunctionTables() ([]minidump.FunctionTable, error)
}

// dynamicTables are the function tables of a process for code outside modules:
// those of the dump's FunctionTable stream, then those that the process's own
// list in memory adds. Nothing is read before the first question.
type dynamicTables struct {
	space  *space
	source tableSource // nil when the dump has none
	opened bool
	tables []*dynamicTable // ascending by min
	reach  []uint64        // the highest max of tables[0..i]: tables may overlap
	last   *dynamicTable

	order, sorted int // what is left of the budgets
}

func newDynamicTables(s *space, src dump.Source) *dynamicTables {
	if d, ok := src.(*Dump); ok {
		src = d.Source
	}
	source, _ := src.(tableSource)
	return &dynamicTables{space: s, source: source, order: orderBudget, sorted: sortBudget}
}

// DynamicTable implements unwind.DynamicSpace.
func (s *space) DynamicTable(va uint64) (t unwind.Table, base uint64, method unwind.Method) {
	known := s.dynamic.find(va)
	if known != nil && known.covers(va) {
		return known, known.base, known.method
	}
	if t, base, method := s.codeHeap(va); t != nil {
		return t, base, method
	}
	if known != nil {
		return known, known.base, known.method
	}
	if im, base := s.gone.at(s, va); im != nil {
		return im, base, unwind.MethodPdata
	}
	return nil, 0, unwind.MethodNone
}

// HasDynamicTables implements unwind.DynamicSpace.
func (s *space) HasDynamicTables() bool {
	s.dynamic.open()
	return len(s.dynamic.tables) > 0 || s.runtime(false).HasCode()
}

// find returns the table that covers va, one with an entry for it if there is.
func (d *dynamicTables) find(va uint64) *dynamicTable {
	d.open()
	if t := d.last; t != nil && t.contains(va) && t.covers(va) {
		return t // it overlaps no other
	}
	var widest *dynamicTable
	i := sort.Search(len(d.tables), func(i int) bool { return d.tables[i].min > va })
	for tries := 0; i > 0 && d.reach[i-1] > va && tries < maxOverlap; tries++ {
		i--
		t := d.tables[i]
		if !t.contains(va) {
			continue
		}
		if t.covers(va) {
			if (i == 0 || d.reach[i-1] <= t.min) && (i+1 == len(d.tables) || d.reach[i] <= d.tables[i+1].min) {
				d.last = t
			}
			return t
		}
		widest = t
	}
	return widest
}

// maxOverlap caps the tables looked at for one address.
const maxOverlap = 64

func (d *dynamicTables) open() {
	if d.opened {
		return
	}
	d.opened = true
	if d.space.arch != dump.AMD64 {
		return // other machines' entries mean other things
	}
	if d.source != nil {
		d.addStream()
	}
	if len(d.tables) == 0 {
		d.addList()
	}
	d.finish()
}

// finish orders the tables for find.
func (d *dynamicTables) finish() {
	slices.SortStableFunc(d.tables, func(a, b *dynamicTable) int { return cmp.Compare(a.min, b.min) })
	d.reach = make([]uint64, len(d.tables))
	var reach uint64
	for i, t := range d.tables {
		reach = max(reach, t.max)
		d.reach[i] = reach
	}
}

// addStream takes the tables of the FunctionTable stream. Damage to the stream
// is among the dump's own errors.
func (d *dynamicTables) addStream() {
	tables, _ := d.source.FunctionTables()
	for i := range tables {
		t := &tables[i]
		if t.Min >= t.Max {
			continue
		}
		d.tables = append(d.tables, &dynamicTable{
			owner: d, min: t.Min, max: t.Max, base: t.Base, count: min(t.Count, maxDynamicEntries),
			method: unwind.MethodFunctionTable, entries: streamEntries{t},
		})
	}
}

// entrySource gives the RUNTIME_FUNCTIONs of a table by number.
type entrySource interface {
	entry(i int) (pdata.RuntimeFunction, bool)
}

type streamEntries struct{ t *minidump.FunctionTable }

func (s streamEntries) entry(i int) (pdata.RuntimeFunction, bool) {
	e, ok := s.t.Entry(i)
	return pdata.RuntimeFunction(e), ok
}

// dynamicTable is one function table of code made at run time. It implements
// unwind.Table; RVAs count from base.
type dynamicTable struct {
	owner          *dynamicTables
	min, max, base uint64
	count          int
	method         unwind.Method
	kind           tableKind
	provider       string // of a callback: the DLL that can answer it elsewhere
	context        uint64 // of a callback: what it is called with
	entries        entrySource
	order          tableOrder
	sorted         []pdata.RuntimeFunction // when the entries are out of order
	infos          map[uint32]*pdata.UnwindInfo
	// What Lookup found last, and where: it is asked twice.
	last    pdata.RuntimeFunction
	lastRVA uint32
	hasLast bool
}

// tableKind is DYNAMIC_FUNCTION_TABLE.Type.
type tableKind uint32

const (
	tableSorted tableKind = iota
	tableUnsorted
	tableCallback
	tableGrowable
)

// tableOrder says what is known of the order of a table's entries.
type tableOrder uint8

const (
	orderUnknown tableOrder = iota
	orderAscending
	orderSorted // by a copy
	orderNone   // and too large to sort
)

func (t *dynamicTable) contains(va uint64) bool { return va >= t.min && va < t.max }

func (t *dynamicTable) covers(va uint64) bool {
	if va < t.base || va-t.base > 0xffffffff {
		return false
	}
	_, ok, _ := t.Lookup(uint32(va - t.base))
	return ok
}

// Lookup implements unwind.Table. It searches the entries where they lie. Only
// when that finds nothing does it make sure that they are in order.
func (t *dynamicTable) Lookup(rva uint32) (pdata.RuntimeFunction, bool, error) {
	if t.hasLast && rva == t.lastRVA {
		return t.last, true, nil
	}
	rf, ok := t.search(rva)
	if !ok && t.order == orderUnknown {
		t.learnOrder()
		rf, ok = t.search(rva)
	}
	if !ok {
		return pdata.RuntimeFunction{}, false, nil
	}
	if to, err := t.direct(rf); err == nil {
		rf = to // else UnwindInfo says what is wrong
	}
	if t.handlerOnly(rf) {
		return pdata.RuntimeFunction{}, false, nil
	}
	t.last, t.lastRVA, t.hasLast = rf, rva, true
	return rf, true, nil
}

// direct follows an indirect entry, whose UnwindInfo is, but for bit 0, the RVA
// of another RUNTIME_FUNCTION.
func (t *dynamicTable) direct(rf pdata.RuntimeFunction) (pdata.RuntimeFunction, error) {
	for range maxLinks {
		if rf.UnwindInfo&1 == 0 {
			return rf, nil
		}
		at := t.base + uint64(rf.UnwindInfo&^1)
		var ok bool
		if rf, ok = (memoryEntries{t.owner.space.mem, at}).entry(0); !ok {
			return rf, dump.Errorf(dump.OutOfRange, "RUNTIME_FUNCTION", "the entry at %#x that another refers to is not in the dump", at)
		}
		if rf.Begin >= rf.End {
			return rf, dump.Errorf(dump.BadRecord, "RUNTIME_FUNCTION", "the entry at %#x that another refers to describes no code", at)
		}
	}
	return rf, dump.Errorf(dump.Cycle, "RUNTIME_FUNCTION", "indirect entries do not end")
}

func (t *dynamicTable) search(rva uint32) (pdata.RuntimeFunction, bool) {
	if t.order == orderSorted {
		i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].Begin > rva })
		if i > 0 && rva < t.sorted[i-1].End {
			return t.sorted[i-1], true
		}
		return pdata.RuntimeFunction{}, false
	}
	// The entry before the first that begins behind rva.
	lo, hi := 0, t.count
	var best pdata.RuntimeFunction
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		rf, ok := t.entries.entry(mid)
		switch {
		case !ok:
			return best, false
		case rf.Begin > rva:
			hi = mid
		default:
			lo, best = mid+1, rf
		}
	}
	return best, lo > 0 && rva < best.End
}

// learnOrder looks at all entries once, and sorts a copy if need be.
func (t *dynamicTable) learnOrder() {
	t.order = orderNone
	if t.count > t.owner.order {
		return
	}
	t.owner.order -= t.count
	var last uint32
	for i := range t.count {
		rf, ok := t.entries.entry(i)
		if !ok {
			t.count = i // the rest is not in the dump
			break
		}
		if rf.Begin < last {
			t.sort()
			return
		}
		last = rf.Begin
	}
	t.order = orderAscending
}

func (t *dynamicTable) sort() {
	if t.count > t.owner.sorted {
		return
	}
	t.owner.sorted -= t.count
	for i := range t.count {
		rf, ok := t.entries.entry(i)
		if !ok {
			break
		}
		t.sorted = append(t.sorted, rf)
	}
	slices.SortStableFunc(t.sorted, func(a, b pdata.RuntimeFunction) int { return cmp.Compare(a.Begin, b.Begin) })
	t.order = orderSorted
}

// handlerOnly recognises the entry by which HotSpot catches exceptions in its
// code: one that spans the whole range and describes no prolog, only a handler.
// Its frames do not look like that, least of all like a leaf's.
func (t *dynamicTable) handlerOnly(rf pdata.RuntimeFunction) bool {
	if t.count != 1 || t.method == unwind.MethodCodeHeap || uint64(rf.End-rf.Begin) < (t.max-t.min)/2 {
		return false
	}
	info, err := t.UnwindInfo(rf.UnwindInfo)
	if err != nil || len(info.Codes) > 0 || info.V3 != nil && len(info.V3.Prolog) > 0 {
		return false
	}
	return info.Flags&(pdata.FlagEHandler|pdata.FlagUHandler) != 0
}

// Remark implements unwind.Remarker: what is known of code in the table's range
// that no entry describes.
func (t *dynamicTable) Remark() string {
	switch {
	case t.kind == tableCallback && t.provider != "":
		return "code made at run time, of whose functions only a callback knows (" + t.provider + ")"
	case t.kind == tableCallback:
		return "code made at run time, of whose functions only a callback knows"
	case t.count == 1:
		if rf, ok := t.entries.entry(0); ok && t.handlerOnly(rf) {
			return "code made at run time, of whose range only an exception handler is registered"
		}
	}
	return "code made at run time, in no function of its table"
}

// HasFunctionTable implements unwind.Table.
func (t *dynamicTable) HasFunctionTable() bool { return true }

// Executable implements unwind.Table.
func (t *dynamicTable) Executable(rva uint32) bool { return t.contains(t.base + uint64(rva)) }

// ReadRVA implements unwind.Table.
func (t *dynamicTable) ReadRVA(p []byte, rva uint32) (int, error) {
	return t.owner.space.mem.ReadAt(p, t.base+uint64(rva))
}

// Primary implements unwind.Table.
func (t *dynamicTable) Primary(rf pdata.RuntimeFunction) pdata.RuntimeFunction {
	for range maxLinks {
		info, err := t.UnwindInfo(rf.UnwindInfo)
		if err != nil || !info.Chained {
			break
		}
		rf = info.Chain
	}
	return rf
}

const (
	maxLinks       = 32           // chained entries followed
	maxInfo        = 4 + 512 + 12 // bytes of UNWIND_INFO: header, codes, trailer
	maxCachedInfos = 1 << 12
)

// UnwindInfo implements unwind.Table. The information is in the dump's memory.
func (t *dynamicTable) UnwindInfo(rva uint32) (*pdata.UnwindInfo, error) {
	if info := t.infos[rva]; info != nil {
		return info, nil
	}
	if rva&1 != 0 { // of an indirect entry that Lookup could not follow
		to, err := t.direct(pdata.RuntimeFunction{UnwindInfo: rva})
		if err != nil {
			return nil, err
		}
		rva = to.UnwindInfo
	}
	var buf [maxInfo]byte
	va := t.base + uint64(rva)
	n, err := t.owner.space.mem.ReadAt(buf[:], va)
	if n == 0 {
		return nil, dump.Errorf(dump.OutOfRange, "UNWIND_INFO", "the unwind data at %#x is not in the dump: %v", va, err)
	}
	info, err := pdata.DecodeUnwindInfo(buf[:n])
	if err != nil {
		return nil, err
	}
	if info.Chained {
		if info.Chain, err = t.direct(info.Chain); err != nil {
			return nil, err
		}
	}
	if t.infos == nil || len(t.infos) >= maxCachedInfos {
		t.infos = map[uint32]*pdata.UnwindInfo{}
	}
	t.infos[rva] = info
	return info, nil
}
