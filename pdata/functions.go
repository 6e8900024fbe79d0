package pdata

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	tableStream  = "exception directory"
	functionSize = 12       // RUNTIME_FUNCTION of x64
	blockLen     = 64       // entries that one index entry stands for
	chunkSize    = 64 << 10 // what the verification reads at once
	maxTable     = 64 << 20 // bytes; ten times the largest table measured
	maxLinks     = 32       // indirections or chain links followed
	blockCache   = 32
)

// functionTable searches an exception directory where it lies. One streamed
// pass over it checks the order and notes where every 64th entry begins, so
// that a lookup costs one read of 768 bytes, or none when that block is
// cached. Parts that are missing leave gaps; a table that is out of order is
// copied and sorted.
type functionTable struct {
	rva, size uint32 // clipped to the bytes that are there
	err       error  // why nothing can be looked up
	blocks    []block
	leadGap   bool // entries before the first block are missing
	gaps      bool
	ordered   bool
	last      uint32            // Begin of the entry before, while the order is checked
	sorted    []RuntimeFunction // the copy, when the table is out of order
	cache     [blockCache]atomic.Pointer[cachedBlock]
}

// block is a run of up to blockLen entries that are all readable and not zero.
type block struct {
	begin uint32 // Begin of the first
	first uint32 // its index in the directory
	n     uint8
	gap   bool // what follows the last entry is missing
}

type cachedBlock struct {
	index   int
	n       int
	entries [blockLen]RuntimeFunction
}

func (im *Image) table() *functionTable {
	im.functionsOnce.Do(im.openTable)
	return &im.functions
}

// hasDirectory reports whether the image has an exception directory of x64's
// layout; other machines' entries mean other things.
func (im *Image) hasDirectory() bool {
	d := im.tableOf(machineAMD64)
	return d.rva != 0 && d.size >= functionSize
}

// HasFunctionTable reports whether the image has an x64 exception directory of
// which at least the first entry can be read.
func (im *Image) HasFunctionTable() bool {
	if !im.hasDirectory() {
		return false
	}
	im.firstOnce.Do(func() {
		d := im.tableOf(machineAMD64)
		b := make([]byte, functionSize)
		_, err := im.layout.read(b, d.rva)
		im.firstThere = err == nil && im.layout.backed(d.rva) >= functionSize
	})
	return im.firstThere
}

// LacksFunctionTable reports whether the image's headers tell of a function
// table, x64's or ARM64's, of which nothing can be read: as where a dump holds
// little more of an image than its first page.
func (im *Image) LacksFunctionTable() bool {
	switch im.h.id.Machine {
	case machineAMD64:
		return im.hasDirectory() && !im.HasFunctionTable()
	case machineARM64:
		d := im.h.dirs[dirException]
		return d.rva != 0 && d.size >= arm64EntryLen && !im.HasARM64Table()
	}
	return false
}

func (im *Image) openTable() {
	t := &im.functions
	if !im.hasDirectory() {
		return
	}
	d := im.tableOf(machineAMD64)
	t.rva, t.size = d.rva, min(d.size, im.layout.backed(d.rva), maxTable)
	if t.size < functionSize {
		t.err = tableError(dump.OutOfRange, d.rva, min(d.size, maxTable), "lies outside the image")
		return
	}
	t.ordered = true
	t.scan(im.layout, t.index)
	if t.size < d.size && !t.endsInZeros(im.layout) {
		t.gap()
	}
	if !t.ordered {
		t.scan(im.layout, func(_ uint32, rf RuntimeFunction, _ bool) {
			if rf != (RuntimeFunction{}) {
				t.sorted = append(t.sorted, rf)
			}
		})
		slices.SortStableFunc(t.sorted, func(a, b RuntimeFunction) int { return cmp.Compare(a.Begin, b.Begin) })
		t.blocks = nil
	}
	if len(t.blocks) == 0 && len(t.sorted) == 0 && t.gaps {
		t.err = tableError(dump.Truncated, t.rva, t.size, "none of it can be read")
	}
}

// endsInZeros reports whether what the directory claims beyond its clipped size
// is the zeros behind a section's data, and not bytes that are missing.
func (t *functionTable) endsInZeros(l layout) bool {
	if t.size == maxTable {
		return false
	}
	_, err := l.read(make([]byte, 1), t.rva+t.size)
	return err == nil
}

// scan reads the directory in chunks and hands on every entry there is.
// afterGap says that the entry before it, if any, is missing.
func (t *functionTable) scan(l layout, visit func(i uint32, rf RuntimeFunction, afterGap bool)) {
	buf := make([]byte, min(t.size, chunkSize/functionSize*functionSize))
	count := t.size / functionSize
	gap := false
	for i := uint32(0); i < count; {
		want := min(uint32(len(buf)), (count-i)*functionSize)
		n, _ := l.read(buf[:want], t.rva+i*functionSize)
		c := cursor.New(buf[:n], tableStream, -1)
		whole := uint32(n) / functionSize
		for k := range whole {
			visit(i+k, decodeFunction(c.Bytes(functionSize)), gap)
			gap = false
		}
		i += whole
		if uint32(n) < want {
			gap = true
			t.gap()
			i = t.nextPage(i, uint32(n)-whole*functionSize)
		}
	}
}

// nextPage returns the first entry that lies wholly behind the page where the
// read of entry i, of which have bytes are there, failed.
func (t *functionTable) nextPage(i, have uint32) uint32 {
	missing := uint64(t.rva) + uint64(i)*functionSize + uint64(have)
	next := missing/pageSize*pageSize + pageSize - uint64(t.rva)
	return uint32(max(roundUp(next, functionSize)/functionSize, uint64(i)+1))
}

func (t *functionTable) gap() {
	t.gaps = true
	if n := len(t.blocks); n > 0 {
		t.blocks[n-1].gap = true
	} else {
		t.leadGap = true
	}
}

// index adds an entry to the last block or begins a new one.
func (t *functionTable) index(i uint32, rf RuntimeFunction, afterGap bool) {
	if rf == (RuntimeFunction{}) {
		return // padding
	}
	t.ordered = t.ordered && rf.Begin >= t.last
	t.last = rf.Begin
	if n := len(t.blocks); n > 0 && !afterGap {
		if b := &t.blocks[n-1]; b.n < blockLen && b.first+uint32(b.n) == i {
			b.n++
			return
		}
	}
	t.blocks = append(t.blocks, block{begin: rf.Begin, first: i, n: 1})
}

// decodeFunction decodes the functionSize bytes of a RUNTIME_FUNCTION.
func decodeFunction(b []byte) RuntimeFunction {
	return RuntimeFunction{
		Begin:      binary.LittleEndian.Uint32(b),
		End:        binary.LittleEndian.Uint32(b[4:]),
		UnwindInfo: binary.LittleEndian.Uint32(b[8:]),
	}
}

// Lookup finds the RUNTIME_FUNCTION that covers an RVA. Indirect entries are
// followed. ok is false when no entry covers it (a leaf function, or no code);
// the error says that the table, or the part needed, cannot be read. Images
// without an x64 exception directory never have an answer.
func (im *Image) Lookup(rva uint32) (rf RuntimeFunction, ok bool, err error) {
	rf, ok, err = im.table().find(im.layout, rva)
	if ok && rf.UnwindInfo&1 != 0 {
		if rf, err = im.direct(rf); err != nil {
			ok = false
		}
	}
	if err != nil {
		return RuntimeFunction{}, false, withFile(err, im.name)
	}
	return rf, ok, nil
}

// FunctionStart returns where the function that covers an RVA begins: on x64
// through the chain of its unwind information; on ARM64, where nothing leads
// from a part to its function, that part's begin.
func (im *Image) FunctionStart(rva uint32) (begin uint32, ok bool) {
	if im.CodeArch(rva) == dump.ARM64 {
		begin, _, ok = im.Extent(rva)
		return begin, ok
	}
	rf, ok, _ := im.Lookup(rva)
	if !ok {
		return 0, false
	}
	return im.Primary(rf).Begin, true
}

// Extent returns the range of the entry, x64's or ARM64's, that covers an RVA: a
// function or a part of one. An indirect entry has its own range here, since
// the one that it refers to may describe code elsewhere.
func (im *Image) Extent(rva uint32) (begin, end uint32, ok bool) {
	if im.CodeArch(rva) == dump.ARM64 {
		fn, ok, _ := im.LookupARM64(rva)
		return fn.Begin, fn.End(), ok
	}
	rf, ok, _ := im.table().find(im.layout, rva)
	if !ok {
		return 0, 0, false
	}
	return rf.Begin, rf.End, true
}

// find returns the last entry that begins at or before rva, if it covers it.
func (t *functionTable) find(l layout, rva uint32) (RuntimeFunction, bool, error) {
	if t.err != nil {
		return RuntimeFunction{}, false, t.err
	}
	if t.sorted != nil {
		if rf, ok := covering(t.sorted, rva); ok || !t.gaps {
			return rf, ok, nil
		}
		return RuntimeFunction{}, false, t.unknown(rva)
	}
	i := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].begin > rva }) - 1
	if i < 0 {
		if t.leadGap {
			return RuntimeFunction{}, false, t.unknown(rva)
		}
		return RuntimeFunction{}, false, nil
	}
	b, err := t.load(l, i)
	if err != nil {
		return RuntimeFunction{}, false, err
	}
	entries := b.entries[:b.n]
	rf, ok := covering(entries, rva)
	if !ok && t.blocks[i].gap && entries[b.n-1].Begin <= rva {
		return rf, false, t.unknown(rva) // the entry may be one of those missing
	}
	return rf, ok, nil
}

func (t *functionTable) unknown(rva uint32) error {
	return tableError(dump.Truncated, t.rva, t.size, fmt.Sprintf("the part that may describe RVA %#x is missing", rva))
}

func tableError(code dump.Code, rva, size uint32, msg string) *dump.Error {
	e := rvaError(code, uint64(rva), int(size), msg)
	e.Stream = tableStream
	return e
}

func covering(entries []RuntimeFunction, rva uint32) (RuntimeFunction, bool) {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Begin > rva }) - 1
	if i >= 0 && rva < entries[i].End {
		return entries[i], true
	}
	return RuntimeFunction{}, false
}

// load returns the entries of a block, from the cache when they are there.
func (t *functionTable) load(l layout, i int) (*cachedBlock, error) {
	slot := &t.cache[i%blockCache]
	if c := slot.Load(); c != nil && c.index == i {
		return c, nil
	}
	b := t.blocks[i]
	buf := make([]byte, int(b.n)*functionSize)
	if _, err := l.read(buf, t.rva+b.first*functionSize); err != nil {
		return nil, err
	}
	c := &cachedBlock{index: i, n: int(b.n)}
	cur := cursor.New(buf, tableStream, -1)
	for k := range c.n {
		c.entries[k] = decodeFunction(cur.Bytes(functionSize))
	}
	slot.Store(c)
	return c, nil
}

// direct follows an indirect entry, whose UnwindInfo is, but for bit 0, the
// RVA of another RUNTIME_FUNCTION.
func (im *Image) direct(rf RuntimeFunction) (RuntimeFunction, error) {
	for range maxLinks {
		if rf.UnwindInfo&1 == 0 {
			return rf, nil
		}
		var b [functionSize]byte
		if _, err := im.layout.read(b[:], rf.UnwindInfo&^1); err != nil {
			return rf, err
		}
		rf = decodeFunction(b[:])
	}
	return rf, tableError(dump.Cycle, rf.UnwindInfo&^1, functionSize, "indirect entries do not end")
}
