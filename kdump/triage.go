package kdump

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// triageLayout says how TRIAGE_DUMP32 and TRIAGE_DUMP64 and their parts differ.
type triageLayout struct {
	stream                     string
	size                       int
	topOfStack, dataPage       int // pointers, data page followed by offset and size
	kdbg, blocks               int // offset and size or count
	driver                     driverLayout
	unloadedHead               int // bytes before the first entry
	unloadedSize               int
	unloadedName               int
	unloadedStart, unloadedEnd int
}

type driverLayout struct{ size, base, imageSize, checkSum, timeStamp int }

var triage64 = triageLayout{
	stream: "TRIAGE_DUMP64", size: 0x80,
	topOfStack: 0x48, dataPage: 0x60, kdbg: 0x70, blocks: 0x78,
	driver:       driverLayout{size: 0x90, base: 0x38, imageSize: 0x48, checkSum: 0x80, timeStamp: 0x88},
	unloadedHead: 8, unloadedSize: 0x38, unloadedName: 0x10, unloadedStart: 0x28, unloadedEnd: 0x30,
}

// triage32 is not verified on a real file.
var triage32 = triageLayout{
	stream: "TRIAGE_DUMP32", size: 0x68,
	topOfStack: 0x48, dataPage: 0x4c, kdbg: 0x58, blocks: 0x60,
	driver:       driverLayout{size: 0x4c, base: 0x1c, imageSize: 0x24, checkSum: 0x44, timeStamp: 0x48},
	unloadedHead: 4, unloadedSize: 0x28, unloadedName: 8, unloadedStart: 0x20, unloadedEnd: 0x24,
}

// span is an offset and a size in the file; offset 0 means not present.
type span struct{ off, size uint32 }

// triage is the decoded TRIAGE_DUMP header. All offsets are file offsets.
type triage struct {
	servicePack  uint32
	sizeOfDump   uint32
	validOffset  uint32
	mm           uint32
	unloaded     uint32
	prcb         uint32
	process      uint32
	thread       uint32
	callStack    span
	drivers      span // size is the count
	strings      span
	brokenDriver uint32
	options      uint32
	topOfStack   uint64
	dataPageVA   uint64
	dataPage     span
	kdbg         span
	blocks       span // size is the count
}

func (l *triageLayout) parse(c *cursor.Cursor, ptr int) (*triage, error) {
	t := &triage{servicePack: c.U32(), sizeOfDump: c.U32(), validOffset: c.U32()}
	c.Skip(8) // ContextOffset, ExceptionOffset: always the header's
	t.mm, t.unloaded, t.prcb, t.process, t.thread = c.U32(), c.U32(), c.U32(), c.U32(), c.U32()
	t.callStack = readSpan(c)
	t.drivers, t.strings = readSpan(c), readSpan(c)
	t.brokenDriver, t.options = c.U32(), c.U32()
	t.topOfStack = c.Pointer(ptr)
	c.Seek(l.dataPage)
	t.dataPageVA, t.dataPage = c.Pointer(ptr), readSpan(c)
	c.Seek(l.kdbg)
	t.kdbg = readSpan(c)
	c.Seek(l.blocks)
	t.blocks = readSpan(c)
	return t, c.Err()
}

func readSpan(c *cursor.Cursor) span { return span{c.U32(), c.U32()} }

const (
	blockStream = "TRIAGE_DATA_BLOCK"
	blockSize   = 16 // TRIAGE_DATA_BLOCK: address u64, file offset u32, size u32
	// maxBlocks is far beyond what fits into the few megabytes that the kernel
	// gives a triage dump.
	maxBlocks = 1 << 20
	validMark = 0x44475254 // "TRGD"
)

// openTriage reads the triage header, the block table and KDBG and lays out
// memory. It never fails: what is missing becomes damage.
func (f *File) openTriage() {
	l := f.hdr.triage
	t, err := l.parse(cursor.At(f.r, f.size, int64(f.hdr.size), int64(l.size), l.stream), f.hdr.ptr)
	f.tri = t
	if err != nil {
		f.damageErr(err)
		f.tri = nil
		return
	}
	f.checkEnd()
	f.readBlocks()
	f.live = f.isLive()
	f.readKDBG()
	f.layMemory()
}

// checkEnd looks for the mark that the writer sets when it is done.
func (f *File) checkEnd() {
	t := f.tri
	c := cursor.At(f.r, f.size, int64(t.validOffset), 4, f.hdr.triage.stream)
	if c.U32() == validMark && c.Err() == nil {
		return
	}
	code, msg := dump.BadRecord, "the end mark TRGD is not where the header says: the dump was not finished or is damaged"
	if int64(t.validOffset)+4 > f.size {
		code = dump.Truncated
		msg = fmt.Sprintf("the dump is %#x bytes long, beyond the end of the file (%#x bytes): it is cut short", t.sizeOfDump, f.size)
	}
	f.damage(&dump.Error{Code: code, Stream: f.hdr.triage.stream, Offset: int64(t.validOffset), Size: 4, Msg: msg})
}

// readBlocks decodes the data block table in file order. Blocks are cut to what
// the file holds.
func (f *File) readBlocks() {
	t := f.tri
	if t.blocks.off == 0 || t.blocks.size == 0 {
		return
	}
	want := int64(min(t.blocks.size, maxBlocks))
	if t.blocks.size > maxBlocks {
		f.damage(dump.Errorf(dump.Limit, blockStream, "%d blocks, only the first %d are read", t.blocks.size, maxBlocks))
	}
	c := cursor.At(f.r, f.size, int64(t.blocks.off), want*blockSize, blockStream)
	n, err := c.Count(uint64(want), blockSize)
	f.damageErr(err)
	f.blocks = make([]dump.Range, 0, n)
	short := 0
	for range n {
		va, off, size := c.U64(), int64(c.U32()), int64(c.U32())
		if f.hdr.ptr == 4 {
			va &= 0xffffffff
		}
		if off+size > f.size {
			short++
			size = max(0, f.size-off)
		}
		f.blocks = append(f.blocks, dump.Range{VA: va, Size: uint64(size), Off: off})
	}
	if short > 0 {
		f.damage(dump.Errorf(dump.Truncated, blockStream, "%d of %d blocks run beyond the end of the file", short, n))
	}
}

func (f *File) readKDBG() {
	t := f.tri
	if t.kdbg.off == 0 {
		f.damage(dump.Errorf(dump.BadRecord, kdbgStream, "the dump has none: threads cannot be identified"))
		return
	}
	c := cursor.At(f.r, f.size, int64(t.kdbg.off), int64(min(t.kdbg.size, kdbgMaximum)), kdbgStream)
	k, err := parseKDBG(c, f.hdr.ptr)
	if err != nil {
		f.damage(err)
		return
	}
	k.addOldLayout(f.hdr)
	f.kd = k
}

// Section is one part of the file.
type Section struct {
	Name         string
	Offset, Size int64
	Count        int // records in it, -1 where that has no meaning
}

// Sections lists the parts of the file in the order of their offsets in the
// header. Offsets and sizes are as the file claims them.
func (f *File) Sections() []Section {
	s := []Section{{headerStream, 0, int64(f.hdr.size), -1}}
	t := f.tri
	if f.full != nil {
		return f.addBlobs(append(s, f.full.phys.sections(f.hdr)...))
	}
	if t == nil {
		return s
	}
	add := func(name string, off uint32, size int64, count int) {
		if off != 0 {
			s = append(s, Section{name, int64(off), size, count})
		}
	}
	k := f.kd
	if k == nil {
		k = &kdbg{}
	}
	l := f.hdr.triage
	add(l.stream, uint32(f.hdr.size), int64(l.size), -1)
	add("Mm", t.mm, mmSize, -1)
	add("UnloadedDrivers", t.unloaded, int64(l.unloadedHead+l.unloadedSize*len(f.UnloadedModules())), len(f.UnloadedModules()))
	add("KPRCB", t.prcb, int64(k.prcb.size), -1)
	add("EPROCESS", t.process, int64(k.process.size), -1)
	add("ETHREAD", t.thread, int64(k.thread.size), -1)
	add("CallStack", t.callStack.off, int64(t.callStack.size), -1)
	add("DriverList", t.drivers.off, int64(t.drivers.size)*int64(l.driver.size), int(t.drivers.size))
	add("StringPool", t.strings.off, int64(t.strings.size), -1)
	add("DataPage", t.dataPage.off, int64(t.dataPage.size), -1)
	add(kdbgStream, t.kdbg.off, int64(t.kdbg.size), -1)
	add("DataBlocks", t.blocks.off, int64(t.blocks.size)*blockSize, int(t.blocks.size))
	return f.addBlobs(s)
}

// addBlobs adds the part that holds secondary data.
func (f *File) addBlobs(s []Section) []Section {
	if b := f.Blobs(); len(b) > 0 {
		s = append(s, Section{"SecondaryData", f.blobStart, f.size - f.blobStart, len(b)})
	}
	return s
}

// Block is a data block of a triage dump: Size bytes at file offset Offset are those of
// memory at VA. Whole says that its size tells what it is: a processor block, process,
// thread, CONTEXT or list of statuses.
type Block struct {
	VA           uint64
	Offset, Size int64
	Whole        bool
}

// Blocks lists the data blocks in file order, cut to the file's end.
func (f *File) Blocks() []Block {
	whole := map[uint64]bool{uint64(threadcontext.Size(f.hdr.arch)): true}
	if k := f.kd; k != nil {
		for _, size := range []int{k.prcb.size, k.process.size, k.thread.size} {
			whole[uint64(size)] = true
		}
	}
	out := make([]Block, len(f.blocks))
	status := uint64(len(f.ThreadStatus())+1) * 4
	for i, b := range f.blocks {
		out[i] = Block{b.VA, b.Off, int64(b.Size), whole[b.Size] || f.live && b.Size == status}
	}
	return out
}
