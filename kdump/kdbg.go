package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// kdbg is KDDEBUGGER_DATA64: where the kernel's own structures keep what a
// debugger needs. Pointers are 64-bit on every architecture and sign-extended on
// x86; the offsets are 16- or 32-bit. An offset of 0 means not known.
type kdbg struct {
	kernBase       uint64
	modules        uint64 // PsLoadedModuleList
	processHead    uint64
	cidTable       uint64 // address of the pointer PspCidTable
	callUserMode   uint64 // KiCallUserMode
	resources      uint64 // ExpSystemResourcesList
	typeObject     uint64 // address of the pointer ObpTypeObjectType
	unloaded       uint64 // address of the pointer MmUnloadedDrivers
	timeIncrement  uint64 // address of KeTimeIncrement
	processorBlock uint64
	ntBuildLab     uint64

	thread struct {
		nextProcessor, teb, kernelStack, initialStack, apcProcess, state int
		stackLimit, stackBase, waitReason, irps                          int
		size                                                             int
	}
	process struct {
		peb, parent, dirBase, size int
	}
	prcb struct {
		currentThread, mhz, cpuType, vendor, number, context, idleThread, size int
		contained                                                              int // within KPCR
		dpcStack, isrStack                                                     int
		state                                                                  int // ProcessorState.ContextFrame
	}
}

const (
	kdbgTag     = 0x4742444b // "KDBG"
	kdbgMinimum = 0x290      // that of Windows XP, which has no offsets
	kdbgMaximum = 0x800
	kdbgStream  = "KDDEBUGGER_DATA64"
)

// parseKDBG decodes the block by its own Size; fields past it stay unknown.
func parseKDBG(c *cursor.Cursor, ptr int) (*kdbg, *dump.Error) {
	c.Seek(0x10)
	tag, size := c.U32(), c.U32()
	bad := func(msg string) *dump.Error {
		return &dump.Error{Code: dump.BadRecord, Stream: kdbgStream, Offset: c.FileOffset(), Size: -1, Msg: msg}
	}
	switch {
	case c.Err() != nil:
		return nil, &dump.Error{Code: dump.Truncated, Stream: kdbgStream, Offset: c.FileOffset(), Size: -1, Msg: "too short to be read"}
	case tag != kdbgTag:
		return nil, bad("does not carry the tag KDBG")
	case size < kdbgMinimum || size > kdbgMaximum || int(size) > c.Len():
		return nil, bad("its size " + hex(uint64(size)) + " is not believable")
	}
	c.Seek(0)
	r := &record{b: c.Bytes(int(size)), ptr: 8}
	k := &kdbg{
		kernBase:       r.address(0x18, ptr),
		modules:        r.address(0x48, ptr),
		processHead:    r.address(0x50, ptr),
		cidTable:       r.address(0x58, ptr),
		callUserMode:   r.address(0x38, ptr),
		resources:      r.address(0x60, ptr),
		typeObject:     r.address(0xa0, ptr),
		timeIncrement:  r.address(0x78, ptr),
		unloaded:       r.address(0x220, ptr),
		ntBuildLab:     r.address(0x208, ptr),
		processorBlock: r.address(0x218, ptr),
	}
	t := &k.thread
	t.nextProcessor, t.teb, t.kernelStack = r.off16(0x298), r.off16(0x29a), r.off16(0x29c)
	t.initialStack, t.apcProcess, t.state = r.off16(0x29e), r.off16(0x2a0), r.off16(0x2a2)
	t.size = r.off16(0x2c0)
	t.stackLimit, t.stackBase, t.waitReason = r.off32(0x340), r.off32(0x344), r.off16(0x35c)
	t.irps = r.off32(0x34c)
	p := &k.process
	p.size, p.peb, p.parent, p.dirBase = r.off16(0x2a8), r.off16(0x2aa), r.off16(0x2ac), r.off16(0x2ae)
	c8 := &k.prcb
	c8.size, c8.currentThread, c8.mhz, c8.cpuType = r.off16(0x2b0), r.off16(0x2b4), r.off16(0x2b6), r.off16(0x2b8)
	c8.vendor, c8.number, c8.contained = r.off16(0x2ba), r.off16(0x2be), r.off16(0x2e6)
	c8.context, c8.idleThread = r.off16(0x338), r.off16(0x350)
	c8.dpcStack, c8.isrStack = r.off16(0x354), r.off16(0x356)
	c8.state = r.off16(0x2bc)
	return k, nil
}

// addOldLayout adds the offsets that the block of Windows XP does not have, from the
// public symbols of its last service pack for x86.
func (k *kdbg) addOldLayout(h *header) {
	const windowsXP = 2600
	if h.arch != dump.X86 || h.build != windowsXP || k.thread.size != 0 {
		return
	}
	t := &k.thread
	t.initialStack, t.stackLimit, t.teb, t.kernelStack, t.state = 0x18, 0x1c, 0x20, 0x28, 0x2d
	t.apcProcess, t.waitReason, t.nextProcessor, t.stackBase = 0x44, 0x5b, 0x12b, 0x168
	t.irps, t.size = 0x210, 0x258
	k.process.dirBase, k.process.parent, k.process.peb, k.process.size = 0x18, 0x14c, 0x1b0, 0x260
	c := &k.prcb
	c.currentThread, c.idleThread, c.number, c.cpuType, c.state = 4, 0xc, 0x10, 0x18, 0x1c
	c.dpcStack, c.vendor, c.mhz, c.size, c.contained = 0x868, 0x900, 0x910, 0xc50, 0x120
}

func (r *record) address(off, ptr int) uint64 {
	v, _ := r.uint(off, 8)
	if ptr == 4 {
		v &= 0xffffffff
	}
	return v
}

func (r *record) off16(off int) int { v, _ := r.uint(off, 2); return int(v) }

// off32 reads a 32-bit offset; one that no structure is large enough for is not
// known.
func (r *record) off32(off int) int {
	v, _ := r.uint(off, 4)
	if v > maxStructure {
		return 0
	}
	return int(v)
}
