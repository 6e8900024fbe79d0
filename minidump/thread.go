package minidump

import (
	"time"

	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// Location is a place in the file.
type Location struct {
	Offset, Size int64
}

// ThreadRecord is an entry of the ThreadList or ThreadExList stream as it is in
// the file.
type ThreadRecord struct {
	ID, SuspendCount        uint32
	PriorityClass, Priority uint32
	TEB                     uint64
	Stack                   dump.Range // the stack memory from about the stack pointer up
	Context                 Location   // CONTEXT
	BackingStore            dump.Range // ThreadExList only
}

const (
	threadSize   = 48
	threadExSize = 64
	maxThreads   = 1 << 16
	// maxContext is above the largest CONTEXT with all XSAVE components (AMX
	// tiles alone are 8 KB).
	maxContext = 16384
	// sharedContexts is by how much the contexts of all threads may exceed the
	// file. Each takes its own bytes in a real dump; in a hostile one a thread
	// would cost 48 bytes and unfold into kilobytes.
	sharedContexts = 1 << 20
)

// ThreadList returns the ThreadList stream, or ThreadExList when that is the
// one in the file.
func (f *File) ThreadList() ([]ThreadRecord, error) {
	return f.threadList.get(f, (*File).decodeThreadList)
}

func (f *File) decodeThreadList() ([]ThreadRecord, *dump.Error) {
	streamType, size := uint32(StreamThreadList), threadSize
	if !f.Has(StreamThreadList) && f.Has(StreamThreadExList) {
		streamType, size = StreamThreadExList, threadExSize
	}
	c, fs, n := f.openList(streamType, size, maxThreads)
	if c == nil {
		return nil, fs.done()
	}
	out := make([]ThreadRecord, 0, n)
	contexts := f.size + sharedContexts
	for i := range n {
		t := ThreadRecord{ID: c.U32(), SuspendCount: c.U32(), PriorityClass: c.U32(), Priority: c.U32(), TEB: c.U64(), Stack: memoryDescriptor(c)}
		t.Context = location(c)
		if size == threadExSize {
			t.BackingStore = memoryDescriptor(c)
		}
		if contexts -= f.contextCost(t.Context); contexts < 0 {
			fs.errorf(dump.Limit, t.Context.Offset, "the contexts of %d threads overlap and exceed the size of the file; the first %d are read", n, i)
			break
		}
		out = append(out, t)
	}
	fs.add(c.Err())
	return out, fs.done()
}

// contextCost is what a thread counts for in the sum of contexts: one that lies
// beyond the end of a file that was cut short still has an entry in the answer.
func (f *File) contextCost(c Location) int64 {
	const entry = 256
	if c.Offset > f.size || c.Size > f.size-c.Offset {
		return entry
	}
	return max(entry, min(c.Size, maxContext))
}

// ThreadInfo is an entry of the ThreadInfoList stream. It also lists threads
// that had ended and have no entry in the thread list.
type ThreadInfo struct {
	ID           uint32
	StartAddress uint64
	dump.ThreadTimes
}

// MINIDUMP_THREAD_INFO.DumpFlags that deny the other fields.
const (
	threadExited      = 0x4
	threadInvalidInfo = 0x8
	threadInfoSize    = 64
)

// ThreadInfoList returns the ThreadInfoList stream.
func (f *File) ThreadInfoList() ([]ThreadInfo, error) {
	return f.threadInfos.get(f, (*File).decodeThreadInfoList)
}

func (f *File) decodeThreadInfoList() ([]ThreadInfo, *dump.Error) {
	c, fs := f.open(StreamThreadInfoList, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, record, count := c.U32(), c.U32(), c.U32()
	n := fs.table(c, header, record, 12, threadInfoSize, uint64(count), maxThreads)
	out := make([]ThreadInfo, 0, n)
	for range n {
		r := c.Sub(int(record))
		t := ThreadInfo{ID: r.U32()}
		t.DumpFlags, t.DumpError, t.ExitStatus = r.U32(), r.U32(), r.U32()
		t.Created, t.Exited = fileTime(r.U64()), fileTime(r.U64())
		t.Kernel, t.User = ticks(r.U64()), ticks(r.U64())
		t.StartAddress, t.Affinity = r.U64(), r.U64()
		t.HasInfo = t.DumpFlags&threadInvalidInfo == 0
		t.HasExit = t.DumpFlags&threadExited != 0
		out = append(out, t)
	}
	return out, fs.done()
}

// fileTime converts a FILETIME: 100 ns units since 1601. Zero and what no clock
// says become the zero time.
func fileTime(v uint64) time.Time {
	const unixEpoch = 116444736000000000
	if v == 0 || v > 1<<62 {
		return time.Time{}
	}
	d := int64(v) - unixEpoch
	return time.Unix(d/1e7, d%1e7*100).UTC()
}

// ticks converts a span of 100 ns units, saturating.
func ticks(v uint64) time.Duration {
	return time.Duration(min(v, 1<<63/100-1) * 100)
}

// ThreadNames returns the ThreadNames stream as names by thread id.
func (f *File) ThreadNames() (map[uint32]string, error) {
	return f.threadNames.get(f, (*File).decodeThreadNames)
}

func (f *File) decodeThreadNames() (map[uint32]string, *dump.Error) {
	c, fs, n := f.openList(StreamThreadNames, 12, maxThreads)
	if c == nil {
		return nil, fs.done()
	}
	out := make(map[uint32]string, n)
	text := f.texts(fs)
	for range n {
		id, rva := c.U32(), c.U64()
		if rva > uint64(f.size) {
			fs.errorf(dump.Truncated, c.FileOffset(), "the name of thread %d at %#x lies beyond the end of the file", id, rva)
			continue
		}
		if name := text.utf16(int64(rva), "a thread name"); name != "" {
			out[id] = name
		}
	}
	fs.add(c.Err())
	return out, fs.done()
}

// Threads implements dump.Source.
func (f *File) Threads() []dump.Thread {
	t, _ := f.threads.get(f, (*File).decodeThreads)
	return t
}

func (f *File) decodeThreads() ([]dump.Thread, *dump.Error) {
	records, _ := f.ThreadList()
	names, _ := f.ThreadNames()
	infos := f.infoByThread()
	out := make([]dump.Thread, len(records))
	contexts := f.contexts(f.faults("ThreadList"), f.Arch())
	teb := tebReader{mem: dump.NewWindow(f.memoryRanges()), arch: f.Arch()}
	for i, r := range records {
		t := &out[i]
		t.ID, t.SuspendCount, t.PriorityClass, t.Priority = r.ID, r.SuspendCount, r.PriorityClass, r.Priority
		t.TEB, t.Name = r.TEB, names[r.ID]
		if t.Context = contexts.read(r.Context, "the context of a thread"); !t.Context.Empty() {
			t.ContextSource = dump.ContextThread
		}
		if info := infos[r.ID]; info != nil {
			t.Times, t.StartAddress = &info.ThreadTimes, info.StartAddress
		}
		if !teb.fill(t) && r.Stack.Size > 0 {
			t.StackBase, t.StackLimit = saturatingAdd(r.Stack.VA, r.Stack.Size), r.Stack.VA
		}
	}
	return out, contexts.fs.done()
}

func (f *File) infoByThread() map[uint32]*ThreadInfo {
	list, _ := f.ThreadInfoList()
	byID := make(map[uint32]*ThreadInfo, len(list))
	for i := range list {
		if list[i].HasInfo {
			byID[list[i].ID] = &list[i]
		}
	}
	return byID
}

func saturatingAdd(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// contextReader decodes the CONTEXT records that a stream points to.
type contextReader struct {
	w    window
	fs   *faults
	arch dump.Arch
}

func (f *input) contexts(fs *faults, arch dump.Arch) *contextReader {
	r := &contextReader{window{f: f, fs: fs}, fs, arch}
	if arch != dump.ArchUnknown && threadcontext.MinSize(arch) == 0 {
		r.fs.errorf(dump.UnsupportedFormat, -1, "contexts of architecture %s are not read", arch)
	}
	return r
}

// read decodes a CONTEXT; what cannot be decoded is empty and noted.
func (r *contextReader) read(at Location, what string) dump.Registers {
	arch := r.arch
	empty := dump.Registers{Arch: arch}
	if at.Size == 0 || at.Offset == 0 || threadcontext.MinSize(arch) == 0 {
		return empty
	}
	if at.Size < int64(threadcontext.MinSize(arch)) {
		r.fs.add(&dump.Error{Code: dump.BadRecord, Offset: at.Offset, Size: at.Size, Msg: what + " is too short for its architecture"})
		return empty
	}
	c, cut := r.w.at(at.Offset, int(min(at.Size, maxContext)))
	if cut != nil {
		r.fs.addAt(cut, what)
		if c.Left() < threadcontext.MinSize(arch) {
			return empty
		}
	}
	regs, err := threadcontext.Parse(arch, c.Bytes(c.Left()), at.Offset)
	if err != nil {
		r.fs.addAt(asError(err), what)
		return empty
	}
	if regs.Empty() {
		r.fs.addAt(&dump.Error{Code: dump.BadRecord, Warning: true, Offset: at.Offset, Size: at.Size, Msg: "its writer stored no registers in it"}, what)
	}
	return regs
}
