package kdump

import (
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// filler32 is what the writer fills the header with before it starts: "PAGE".
// A field that still holds it was never written.
const (
	filler32 = 0x45474150
	filler64 = 0x4547415045474150
)

// headerLayout holds the offsets in which DUMP_HEADER32 and DUMP_HEADER64
// differ.
type headerLayout struct {
	size, ptr                            int
	dirBase, pfnDatabase, modules, procs int
	machine, cpus, code, params          int
	kdbg, physical                       int
	pae                                  int // PaeEnabled, -1 none
	context, contextSize                 int
	exception                            int
	dumpType, required, systemTime       int
	comment, uptime                      int
	fields, productType, suite           int
	attributes                           int // -1: the 32-bit place is not known
	triage                               *triageLayout
}

var header64 = headerLayout{
	size: 0x2000, ptr: 8,
	dirBase: 0x10, pfnDatabase: 0x18, modules: 0x20, procs: 0x28,
	machine: 0x30, cpus: 0x34, code: 0x38, params: 0x40, kdbg: 0x80, physical: 0x88, pae: -1,
	context: 0x348, contextSize: 3000, exception: 0xf00,
	dumpType: 0xf98, required: 0xfa0, systemTime: 0xfa8,
	comment: 0xfb0, uptime: 0x1030,
	fields: 0x1038, productType: 0x1040, suite: 0x1044, attributes: 0x1050,
	triage: &triage64,
}

var header32 = headerLayout{
	size: 0x1000, ptr: 4,
	dirBase: 0x10, pfnDatabase: 0x14, modules: 0x18, procs: 0x1c,
	machine: 0x20, cpus: 0x24, code: 0x28, params: 0x2c, kdbg: 0x60, physical: 0x64, pae: 0x5c,
	context: 0x320, contextSize: 1200, exception: 0x7d0,
	dumpType: 0xf88, required: 0xfa0, systemTime: 0xfc0,
	comment: 0x820, uptime: 0xfb8,
	fields: 0xf8c, productType: 0xf94, suite: 0xf98, attributes: -1,
	triage: &triage32,
}

// optional is a header field that may not have been written.
type optional[T uint32 | uint64] struct {
	v  T
	ok bool
}

// header is the decoded DUMP_HEADER.
type header struct {
	*headerLayout
	arch         dump.Arch
	major, build uint32
	dirBase      optional[uint64]
	modules      optional[uint64]
	procs        optional[uint64]
	cpus         optional[uint32]
	code         optional[uint32]
	params       [4]uint64
	kdbg         optional[uint64]
	dumpType     uint32
	required     optional[uint64]
	systemTime   optional[uint64]
	uptime       optional[uint64]
	fields       optional[uint32]
	productType  optional[uint32]
	suite        optional[uint32]
	attributes   optional[uint32]
	comment      string
	context      []byte
	paeEnabled   bool
	exception    *ExceptionRecord
}

// parseHeader decodes the header. The error is one that leaves nothing to read.
func parseHeader(c *cursor.Cursor) (*header, *dump.Error) {
	magic := string(c.Bytes(8))
	if c.Err() != nil {
		return nil, dump.Errorf(dump.UnsupportedFormat, headerStream, "not a kernel dump: only %d bytes long", c.Len())
	}
	h := &header{}
	switch magic {
	case "PAGEDU64":
		h.headerLayout = &header64
	case "PAGEDUMP":
		h.headerLayout = &header32
	default:
		return nil, dump.Errorf(dump.UnsupportedFormat, headerStream, "not a kernel dump: begins with %q, not with PAGEDU64 or PAGEDUMP", magic)
	}
	l := h.headerLayout
	if c.Len() < l.size {
		return nil, &dump.Error{Code: dump.Truncated, Stream: headerStream, Offset: 0, Size: int64(l.size),
			Msg: "the header runs beyond the end of the file"}
	}
	if err := h.readMachine(c); err != nil {
		return nil, err
	}
	h.major, h.build = c.U32(), c.U32()
	h.readSystem(c)
	c.Seek(l.context)
	h.context = c.Bytes(l.contextSize)
	c.Seek(l.exception)
	h.exception = parseExceptionRecord(c, l.ptr)
	return h, nil
}

const headerStream = "DUMP_HEADER"

// readMachine leaves the cursor at MajorVersion.
func (h *header) readMachine(c *cursor.Cursor) *dump.Error {
	c.Seek(h.machine)
	machine := c.U32()
	c.Seek(8)
	if machine <= 0xffff {
		h.arch = dump.ArchOfMachine(uint16(machine))
	}
	switch {
	case h.ptr == 8 && (h.arch == dump.AMD64 || h.arch == dump.ARM64):
	case h.ptr == 4 && h.arch == dump.X86:
	default:
		return &dump.Error{Code: dump.UnsupportedFormat, Stream: headerStream, Offset: int64(h.machine), Size: 4,
			Msg: "kernel dumps of machine type " + hex(uint64(machine)) + " (" + h.arch.String() + ") are not read"}
	}
	return nil
}

func (h *header) readSystem(c *cursor.Cursor) {
	l := h.headerLayout
	h.dirBase = h.pointer(c, l.dirBase)
	h.modules, h.procs = h.pointer(c, l.modules), h.pointer(c, l.procs)
	h.cpus, h.code = opt32(c, l.cpus), opt32(c, l.code)
	c.Seek(l.params)
	for i := range h.params {
		h.params[i] = c.Pointer(l.ptr)
	}
	h.kdbg = h.pointer(c, l.kdbg)
	c.Seek(l.dumpType)
	h.dumpType = c.U32()
	h.required, h.systemTime, h.uptime = opt64(c, l.required), opt64(c, l.systemTime), opt64(c, l.uptime)
	h.fields, h.productType, h.suite = opt32(c, l.fields), opt32(c, l.productType), opt32(c, l.suite)
	if l.pae >= 0 {
		c.Seek(l.pae)
		h.paeEnabled = c.U8() == 1
	}
	if l.attributes >= 0 {
		h.attributes = opt32(c, l.attributes)
	}
	if v := opt32(c, l.comment); v.ok {
		c.Seek(l.comment)
		h.comment = printable(c.Bytes(128))
	}
}

func opt32(c *cursor.Cursor, off int) optional[uint32] {
	c.Seek(off)
	v := c.U32()
	return optional[uint32]{v, v != filler32}
}

func opt64(c *cursor.Cursor, off int) optional[uint64] {
	c.Seek(off)
	v := c.U64()
	return optional[uint64]{v, v != filler64}
}

func (h *header) pointer(c *cursor.Cursor, off int) optional[uint64] {
	c.Seek(off)
	v := c.Pointer(h.ptr)
	return optional[uint64]{v, v != filler64 && (h.ptr == 8 || v != filler32)}
}

// ExceptionRecord is an EXCEPTION_RECORD of the target's pointer size.
type ExceptionRecord struct {
	Code, Flags uint32
	Record      uint64 // address of a nested record, 0 none
	Address     uint64
	Parameters  []uint64 // at most 15
}

// parseExceptionRecord reads the record at the cursor; nil when it was never
// written or is cut short.
func parseExceptionRecord(c *cursor.Cursor, ptr int) *ExceptionRecord {
	e := threadcontext.ParseExceptionRecord(c, ptr)
	if c.Err() != nil || e.Code == filler32 {
		return nil
	}
	return &ExceptionRecord{e.Code, e.Flags, e.Record, e.Address, e.Parameters}
}

// filetimeEpoch is the number of 100 ns ticks from 1601 to 1970.
const filetimeEpoch = 116444736000000000

// filetime converts a FILETIME; times outside 1990 to 2200 are not believed.
func filetime(t uint64) time.Time {
	const (
		from = filetimeEpoch + 631152000*10_000_000  // 1990-01-01
		to   = filetimeEpoch + 7258118400*10_000_000 // 2200-01-01
	)
	if t < from || t > to {
		return time.Time{}
	}
	ticks := int64(t - filetimeEpoch)
	return time.Unix(ticks/10_000_000, ticks%10_000_000*100).UTC()
}
