package minidump

import (
	"fmt"
	"io"
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
	r         io.ReaderAt
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

// FunctionTables returns the FunctionTable stream. The entries stay in the file
// until they are asked for.
func (f *File) FunctionTables() ([]FunctionTable, error) {
	return f.tables.get(f, (*File).decodeFunctionTables)
}

func (f *File) decodeFunctionTables() ([]FunctionTable, *dump.Error) {
	c, fs := f.open(StreamFunctionTable)
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
		t, ok := f.readFunctionTable(c, fs, int(descriptor), int(native), int(entry))
		if !ok {
			break
		}
		out = append(out, t)
	}
	return out, fs.done()
}

// readFunctionTable reads one table and moves past it. It reports false when
// the next table cannot be found.
func (f *File) readFunctionTable(c *cursor.Cursor, fs *faults, descriptor, native, entry int) (FunctionTable, bool) {
	d := c.Sub(descriptor)
	t := FunctionTable{Min: d.U64(), Max: d.U64(), Base: d.U64(), EntrySize: entry, r: f.r}
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
		return t, true // the last: what follows cannot be placed
	}
	c.Skip(k * entry)
	if uint64(pad) <= uint64(c.Left()) {
		c.Skip(int(pad))
	} else if c.Left() > 0 {
		fs.errorf(dump.BadRecord, c.FileOffset(), "%d bytes of padding, %d left", pad, c.Left())
		c.Skip(c.Left())
	}
	return t, true
}

// ReadEntry reads the bytes of entry i, EntrySize of them, into p.
func (t *FunctionTable) ReadEntry(p []byte, i int) error {
	if i < 0 || i >= t.Count {
		return dump.Errorf(dump.OutOfRange, "FunctionTable", "entry %d of %d", i, t.Count)
	}
	p = p[:min(len(p), t.EntrySize)]
	at := t.Offset + int64(i)*int64(t.EntrySize)
	if n, err := t.r.ReadAt(p, at); n < len(p) {
		return &dump.Error{Code: dump.IO, Stream: "FunctionTable", Offset: at, Size: int64(len(p)), Msg: "cannot be read", Err: err}
	}
	return nil
}

// Entry reads entry i of an AMD64 table.
func (t *FunctionTable) Entry(i int) (FunctionEntry, error) {
	var b [functionEntryAMD64]byte
	if t.EntrySize < functionEntryAMD64 {
		return FunctionEntry{}, dump.Errorf(dump.BadRecord, "FunctionTable", "entries of %d bytes are not AMD64's", t.EntrySize)
	}
	if err := t.ReadEntry(b[:], i); err != nil {
		return FunctionEntry{}, err
	}
	c := cursor.New(b[:], "FunctionTable", -1)
	return FunctionEntry{c.U32(), c.U32(), c.U32()}, nil
}

// Contains reports whether the table covers an address.
func (t *FunctionTable) Contains(va uint64) bool { return va >= t.Min && va < t.Max }

// Lookup finds the entry of an AMD64 table that covers va. Tables may be
// unsorted: when the search fails, all entries are tried.
func (t *FunctionTable) Lookup(va uint64) (FunctionEntry, bool, error) {
	if va < t.Base || va-t.Base > 0xffffffff || t.Count == 0 {
		return FunctionEntry{}, false, nil
	}
	rva := uint32(va - t.Base)
	var failed error
	at := func(i int) FunctionEntry {
		e, err := t.Entry(i)
		if err != nil {
			failed = err
		}
		return e
	}
	i := sort.Search(t.Count, func(i int) bool { return at(i).Begin > rva }) - 1
	if i >= 0 && failed == nil {
		if e := at(i); rva >= e.Begin && rva < e.End {
			return e, true, failed
		}
	}
	for i := 0; i < t.Count && failed == nil; i++ {
		if e := at(i); rva >= e.Begin && rva < e.End {
			return e, true, nil
		}
	}
	if failed != nil {
		return FunctionEntry{}, false, fmt.Errorf("function table at %#x: %w", t.Base, failed)
	}
	return FunctionEntry{}, false, nil
}
