package minidump

import (
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// at returns a cursor from an offset of the header to at most size bytes on, or
// nil, noted, when it lies outside the file.
func (u *UserDump) at(offset uint64, size int64, fs *faults) *cursor.Cursor {
	at := int64(min(offset, math.MaxInt64))
	if at >= u.size {
		fs.add(u.outside(fs.stream, at, max(size, 1)))
		return nil
	}
	return cursor.At(u.r, u.size, at, size, fs.stream)
}

// decodeRegions reads the array of MEMORY_BASIC_INFORMATION32 or 64.
func (u *UserDump) decodeRegions() ([]dump.Region, *dump.Error) {
	size := userRegion32
	if u.Header.Is64 {
		size = userRegion64
	}
	fs := u.faults("MemoryRegions")
	c := u.at(u.Header.MemoryRegionOffset, int64(u.Header.MemoryRegions)*int64(size), fs)
	if c == nil {
		return nil, fs.done()
	}
	n := fs.count(c, uint64(u.Header.MemoryRegions), size, noLimit)
	out := make([]dump.Region, 0, n)
	for range n {
		out = append(out, readRegion(c, u.Header.pointerSize()))
	}
	return out, fs.done()
}

func readRegion(c *cursor.Cursor, pointer int) dump.Region {
	r := dump.Region{Base: c.Pointer(pointer), AllocationBase: c.Pointer(pointer), AllocProtect: c.U32()}
	if pointer == 8 {
		c.Skip(4)
	}
	r.Size, r.State, r.Protect, r.Type = c.Pointer(pointer), c.U32(), c.U32(), c.U32()
	if pointer == 8 {
		c.Skip(4)
	}
	return r
}

// decodeMemory places each region's bytes: they follow each other from
// DataOffset on in the order of the regions. Only committed memory has bytes.
func (u *UserDump) decodeMemory() (*dump.FileMemory, *dump.Error) {
	regions := u.Regions()
	fs := u.faults("Memory")
	clip := clipper{f: &u.input, stream: fs.stream}
	out := make([]dump.Range, 0, len(regions))
	at := u.Header.DataOffset
	if at < headerSize && len(regions) > 0 {
		fs.errorf(dump.BadRecord, -1, "the memory begins at %#x, within the file's header", at)
		return dump.NewFileMemory(u.r, nil), fs.done()
	}
	for i := range regions {
		if regions[i].State != stateCommitted {
			continue
		}
		r := dump.Range{VA: regions[i].Base, Size: regions[i].Size, Off: int64(min(at, math.MaxInt64))}
		at = saturatingAdd(at, r.Size)
		if r = clip.clip(r); r.Size > 0 {
			out = append(out, r)
		}
	}
	clip.report(fs)
	return dump.NewFileMemory(u.r, out), fs.done()
}

// decodeModules walks the CRASH_MODULE records, each followed by its name.
func (u *UserDump) decodeModules() ([]dump.Module, *dump.Error) {
	const header32, header64, maxRecord = 12, 16, 1024
	size := header32
	if u.Header.Is64 {
		size = header64
	}
	fs := u.faults("Modules")
	n := int64(min(u.Header.Modules, maxModules))
	c := u.at(u.Header.ModuleOffset, n*maxRecord, fs)
	if c == nil {
		return nil, fs.done()
	}
	k := fs.count(c, uint64(u.Header.Modules), size, maxModules)
	var out []dump.Module
	for range k {
		m := dump.Module{Base: c.Pointer(u.Header.pointerSize()), Size: uint64(c.U32())}
		name := c.U32()
		if c.Err() == nil && int64(name) > int64(c.Left()) {
			fs.errorf(dump.BadRecord, c.FileOffset(), "a module's name of %d bytes, %d left", name, c.Left())
			break
		}
		m.Path = cursor.CString(c.Bytes(int(name)))
		if c.Err() != nil {
			break
		}
		out = append(out, m)
	}
	fs.add(c.Err())
	return out, fs.done()
}

// threadOffsets returns where the CONTEXT array and the CRASH_THREAD array
// begin. The names of the header's fields suggest the records at ThreadOffset,
// Ghidra reads them at ThreadStateOffset: the flags of a CONTEXT decide.
func (u *UserDump) threadOffsets(fs *faults) (contexts, records uint64) {
	h := &u.Header
	switch {
	case u.looksLikeContext(h.ThreadOffset):
		return h.ThreadOffset, h.ThreadStateOffset
	case u.looksLikeContext(h.ThreadStateOffset):
		return h.ThreadStateOffset, h.ThreadOffset
	}
	if h.Threads > 0 {
		fs.errorf(dump.BadRecord, -1, "no contexts at %#x or %#x", h.ThreadOffset, h.ThreadStateOffset)
	}
	return 0, h.ThreadStateOffset
}

// looksLikeContext checks the architecture bits of ContextFlags and that only
// documented other bits are set.
func (u *UserDump) looksLikeContext(offset uint64) bool {
	at, want := uint64(0), uint32(0x10000)
	switch u.arch() {
	case dump.AMD64:
		at, want = 0x30, 0x100000
	case dump.ARM64:
		want = 0x400000
	}
	if offset == 0 || offset > math.MaxInt64-at {
		return false
	}
	c := cursor.At(u.r, u.size, int64(offset+at), 4, "Threads")
	flags := c.U32()
	return c.Err() == nil && flags&0x00ffff00 == want
}

func (u *UserDump) decodeThreads() ([]dump.Thread, *dump.Error) {
	h, size := &u.Header, userThread32
	if h.Is64 {
		size = userThread64
	}
	fs := u.faults("Threads")
	contexts, records := u.threadOffsets(fs)
	c := u.at(records, int64(h.Threads)*int64(size), fs)
	if c == nil {
		return nil, fs.done()
	}
	n := fs.count(c, uint64(h.Threads), size, maxThreads)
	out := make([]dump.Thread, n)
	reader, each := u.contexts(fs, u.arch()), int64(threadcontext.Size(u.arch())) // the format has an array of CONTEXT
	teb := tebReader{mem: dump.NewWindow(u.memoryRanges()), arch: u.arch()}
	for i := range out {
		t, r := &out[i], c.Sub(size)
		t.ID, t.SuspendCount, t.PriorityClass, t.Priority = r.U32(), r.U32(), r.U32(), r.U32()
		t.TEB = r.Pointer(h.pointerSize())
		t.Context.Arch = u.arch()
		if contexts != 0 {
			at := Location{int64(contexts) + int64(i)*each, each}
			t.Context = reader.read(at, "the context of a thread")
		}
		if !t.Context.Empty() {
			t.ContextSource = dump.ContextThread
		}
		teb.fill(t)
	}
	return out, fs.done()
}

// debugEvent is the DEBUG_EVENT that the dump was written for.
type debugEvent struct {
	processID uint32
	exception *dump.Exception
}

func (u *UserDump) debugEvent() *debugEvent {
	e, _ := decodeOnce(&u.event, u, (*UserDump).decodeDebugEvent)
	return e
}

// decodeDebugEvent reads DEBUG_EVENT: code, process and thread id, then for an
// exception an EXCEPTION_RECORD32 or 64.
func (u *UserDump) decodeDebugEvent() (*debugEvent, *dump.Error) {
	const exceptionDebugEvent = 1
	if u.Header.DebugEventOffset == 0 {
		return nil, nil
	}
	fs := u.faults("DebugEvent")
	c := u.at(u.Header.DebugEventOffset, userEventSize, fs)
	if c == nil {
		return nil, fs.done()
	}
	code, process, thread := c.U32(), c.U32(), c.U32()
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	e := &debugEvent{processID: process}
	if code != exceptionDebugEvent {
		return e, fs.done()
	}
	pointer := u.Header.pointerSize()
	if pointer == 8 {
		c.Skip(4)
	}
	x := &dump.Exception{ThreadID: thread, Code: c.U32(), Flags: c.U32(), Record: c.Pointer(pointer), Address: c.Pointer(pointer)}
	n := c.U32()
	if pointer == 8 {
		c.Skip(4)
	}
	if n > maxParameters {
		fs.errorf(dump.BadCount, c.FileOffset(), "claims %d parameters, at most %d are possible", n, maxParameters)
		n = maxParameters
	}
	for range n {
		x.Parameters = append(x.Parameters, c.Pointer(pointer))
	}
	if c.Err() != nil {
		fs.add(c.Err())
		return e, fs.done()
	}
	e.exception = x
	return e, fs.done()
}
