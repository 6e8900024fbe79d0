package minidump

import (
	"fmt"
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	memoryDescriptorSize   = 16
	memoryDescriptor64Size = 16
	memoryInfoSize         = 48
	noLimit                = math.MaxInt32 // the bytes of the stream are limit enough
)

// memoryDescriptor reads a MINIDUMP_MEMORY_DESCRIPTOR.
func memoryDescriptor(c *cursor.Cursor) dump.Range {
	r := dump.Range{VA: c.U64(), Size: uint64(c.U32())}
	r.Off = int64(c.U32())
	return r
}

// MemoryList returns the MemoryList stream, clipped to the file.
func (f *File) MemoryList() ([]dump.Range, error) {
	return f.memoryList.get(f, (*File).decodeMemoryList)
}

func (f *File) decodeMemoryList() ([]dump.Range, *dump.Error) {
	c, fs, n := f.openList(StreamMemoryList, memoryDescriptorSize, noLimit)
	if c == nil {
		return nil, fs.done()
	}
	out := make([]dump.Range, 0, n)
	clip := clipper{f: &f.input, stream: fs.stream}
	for range n {
		if r := clip.clip(memoryDescriptor(c)); r.Size > 0 {
			out = append(out, r)
		}
	}
	fs.add(c.Err())
	clip.report(fs)
	return out, fs.done()
}

// Memory64List returns the Memory64List stream: ranges whose bytes follow each
// other from one offset on, clipped to the file.
func (f *File) Memory64List() ([]dump.Range, error) {
	return f.memory64.get(f, (*File).decodeMemory64List)
}

func (f *File) decodeMemory64List() ([]dump.Range, *dump.Error) {
	c, fs := f.open(StreamMemory64List, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	count, base := c.U64(), c.U64()
	n := fs.count(c, count, memoryDescriptor64Size, noLimit)
	if n > 0 && base < headerSize {
		fs.errorf(dump.BadRecord, c.FileOffset(), "its memory begins at %#x, within the file's header", base)
		return nil, fs.done()
	}
	out := make([]dump.Range, 0, n)
	clip := clipper{f: &f.input, stream: fs.stream}
	for range n {
		r := dump.Range{VA: c.U64(), Size: c.U64(), Off: int64(min(base, math.MaxInt64))}
		base = saturatingAdd(base, r.Size)
		if r = clip.clip(r); r.Size > 0 {
			out = append(out, r)
		}
	}
	fs.add(c.Err())
	clip.report(fs)
	return out, fs.done()
}

// clipper cuts ranges down to what the file holds and adds up what it lacks: a
// file cut short would otherwise give one error a range.
type clipper struct {
	f         *input
	stream    string
	ranges    int
	missing   uint64
	first     int64
	misplaced int // ranges that claim to lie within the header
}

func (c *clipper) clip(r dump.Range) dump.Range {
	if r.Off < headerSize {
		// Full-memory dumps give thread stacks the offset 0: the bytes are in
		// Memory64List. The header is never memory.
		if r.Off != 0 && r.Size != 0 {
			c.misplaced++
		}
		r.Size = 0
		return r
	}
	have := uint64(max(c.f.size-r.Off, 0))
	if r.Size <= have {
		return r
	}
	if c.ranges == 0 {
		c.first = r.Off
	}
	c.ranges++
	c.missing = saturatingAdd(c.missing, r.Size-have)
	r.Size = have
	return r
}

func (c *clipper) report(fs *faults) {
	if c.misplaced > 0 {
		fs.errorf(dump.BadRecord, -1, "%d ranges of memory claim to lie within the file's header", c.misplaced)
	}
	if c.ranges > 0 {
		fs.add(&dump.Error{Code: dump.Truncated, Stream: c.stream, Offset: c.first, Size: int64(min(c.missing, math.MaxInt64)),
			Msg: fmt.Sprintf("%d bytes of memory in %d ranges lie beyond the end of the file (%#x bytes)", c.missing, c.ranges, c.f.size)})
	}
}

// Memory implements dump.Source: what the thread stacks, MemoryList and
// Memory64List hold. Where they overlap, the record that names its own file
// offset wins over Memory64List, whose offsets depend on every range before.
func (f *File) Memory() dump.Memory { return f.memoryRanges() }

func (f *File) memoryRanges() *dump.FileMemory {
	m, _ := f.memory.get(f, (*File).decodeMemory)
	return m
}

func (f *File) decodeMemory() (*dump.FileMemory, *dump.Error) {
	threads, _ := f.ThreadList()
	list, _ := f.MemoryList()
	list64 := f.trustedMemory64()
	all := make([]dump.Range, 0, len(threads)+len(list)+len(list64))
	fs := f.faults("ThreadList")
	clip := clipper{f: &f.input, stream: fs.stream}
	for i := range threads {
		if r := clip.clip(threads[i].Stack); r.Size > 0 {
			all = append(all, r)
		}
		if r := clip.clip(threads[i].BackingStore); r.Size > 0 {
			all = append(all, r)
		}
	}
	clip.report(fs)
	all = append(all, list...)
	return dump.NewFileMemory(f.r, append(all, list64...)), fs.done()
}

// MemoryInfoList returns the MemoryInfoList stream: what VirtualQuery said of
// each region.
func (f *File) MemoryInfoList() ([]dump.Region, error) {
	return f.regions.get(f, (*File).decodeMemoryInfoList)
}

// Regions implements dump.Source.
func (f *File) Regions() []dump.Region {
	r, _ := f.MemoryInfoList()
	return r
}

func (f *File) decodeMemoryInfoList() ([]dump.Region, *dump.Error) {
	c, fs := f.open(StreamMemoryInfoList, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, record, count := c.U32(), c.U32(), c.U64()
	n := fs.table(c, header, record, 16, memoryInfoSize-4, count, noLimit)
	out := make([]dump.Region, 0, n)
	for range n {
		next := c.Offset() + int(record)
		r := dump.Region{Base: c.U64(), AllocationBase: c.U64(), AllocProtect: c.U32()}
		c.Skip(4)
		r.Size, r.State, r.Protect, r.Type = c.U64(), c.U32(), c.U32(), c.U32()
		c.Seek(next)
		out = append(out, r)
	}
	return out, fs.done()
}
