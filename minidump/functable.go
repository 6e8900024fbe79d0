package minidump

import (
	"math"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// FunctionTable is one dynamic function table of the FunctionTable stream: the
// unwind data of generated code. The UNWIND_INFO that its entries point to is
// in the dump's memory, if anywhere.
type FunctionTable struct {
	Min, Max  uint64 // addresses that the table covers: [Min, Max)
	Base      uint64 // entries are relative to it
	Count     int    // entries that are in the file
	EntrySize int    // bytes: 12 on AMD64
	Native    []byte // the operating system's own descriptor, as far as the file holds it
	Offset    int64  // file offset of the entries
	entries   []byte
}

// FunctionEntry is an AMD64 RUNTIME_FUNCTION: offsets from the table's Base.
type FunctionEntry struct {
	Begin, End, UnwindInfo uint32
}

const (
	functionStreamHeader     = 24
	functionDescriptorSize   = 32
	functionEntryAMD64       = 12
	maxFunctionTables        = 1 << 20
	maxNativeDescriptor      = 4096
	maxFunctionTableAlignPad = 4096
)

// FunctionTables returns the FunctionTable stream. Entries are decoded when they
// are asked for.
func (f *File) FunctionTables() ([]FunctionTable, error) {
	return f.tables.get(f, (*File).decodeFunctionTables)
}

func (f *File) decodeFunctionTables() ([]FunctionTable, *dump.Error) {
	c, fs := f.open(StreamFunctionTable, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, descriptor, native, entry, count, pad := c.U32(), c.U32(), c.U32(), c.U32(), c.U32(), c.U32()
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	if header < functionStreamHeader || descriptor < functionDescriptorSize || entry == 0 || entry > 1024 ||
		native > maxNativeDescriptor || pad > maxFunctionTableAlignPad || header > 4096 || descriptor > 4096 {
		fs.errorf(dump.BadRecord, c.FileOffset(), "header of %d, descriptors of %d, native descriptors of %d, entries of %d bytes", header, descriptor, native, entry)
		return nil, fs.done()
	}
	c.Seek(int(header))
	c.Skip(int(pad))
	n := fs.count(c, uint64(count), int(descriptor+native), maxFunctionTables)
	var out []FunctionTable
	for range n {
		t, ok := readFunctionTable(c, fs, int(descriptor), int(native), int(entry))
		if !ok {
			break
		}
		out = append(out, t)
	}
	return out, fs.done()
}

// readFunctionTable reads one table and moves past it. It reports false when
// the next table cannot be found.
func readFunctionTable(c *cursor.Cursor, fs *faults, descriptor, native, entry int) (FunctionTable, bool) {
	d := c.Sub(descriptor)
	t := FunctionTable{Min: d.U64(), Max: d.U64(), Base: d.U64(), EntrySize: entry}
	entries, pad := d.U32(), d.U32()
	t.Native = c.Bytes(native)
	t.Offset = c.FileOffset()
	if c.Err() != nil {
		fs.add(c.Err())
		return t, false
	}
	k, err := c.Count(uint64(entries), entry)
	t.Count = k
	if err != nil {
		fs.add(err)
		t.entries = c.Bytes(k * entry)
		c.Skip(c.Left()) // what follows cannot be placed
		return t, true
	}
	t.entries = c.Bytes(k * entry)
	if uint64(pad) <= uint64(c.Left()) {
		c.Skip(int(pad))
	} else if c.Left() > 0 {
		fs.errorf(dump.BadRecord, c.FileOffset(), "%d bytes of padding, %d left", pad, c.Left())
		c.Skip(c.Left())
	}
	return t, true
}

// EntryBytes returns the bytes of entry i, EntrySize of them, or nil. They are
// the table's own.
func (t *FunctionTable) EntryBytes(i int) []byte {
	if i < 0 || i >= t.Count {
		return nil
	}
	c := cursor.New(t.entries, "FunctionTable", t.Offset)
	c.Seek(i * t.EntrySize)
	return c.Bytes(t.EntrySize)
}

// Entry returns entry i of an AMD64 table, and whether there is one.
func (t *FunctionTable) Entry(i int) (FunctionEntry, bool) {
	if i < 0 || i >= t.Count || t.EntrySize < functionEntryAMD64 {
		return FunctionEntry{}, false
	}
	c := cursor.New(t.entries, "FunctionTable", t.Offset)
	c.Seek(i * t.EntrySize)
	return FunctionEntry{c.U32(), c.U32(), c.U32()}, true
}

// Contains reports whether the table covers an address.
func (t *FunctionTable) Contains(va uint64) bool { return va >= t.Min && va < t.Max }

// Lookup finds the entry of an AMD64 table that covers va. Tables may be
// unsorted: when the binary search fails, all entries are tried.
func (t *FunctionTable) Lookup(va uint64) (FunctionEntry, bool) {
	if va < t.Base || va-t.Base > math.MaxUint32 {
		return FunctionEntry{}, false
	}
	rva := uint32(va - t.Base)
	i := sort.Search(t.Count, func(i int) bool {
		e, _ := t.Entry(i)
		return e.Begin > rva
	})
	if e, ok := t.Entry(i - 1); ok && e.covers(rva) {
		return e, true
	}
	for i := range t.Count {
		if e, ok := t.Entry(i); ok && e.covers(rva) {
			return e, true
		}
	}
	return FunctionEntry{}, false
}

func (e FunctionEntry) covers(rva uint32) bool { return rva >= e.Begin && rva < e.End }
