package bugcheck

import (
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// ErrorRecord is a WHEA_ERROR_RECORD: a common platform error record of the UEFI
// specification, appendix N.2.
type ErrorRecord struct {
	Severity  Severity
	Revision  uint16
	Length    uint32
	Notify    string    // what reported it, "" when the GUID is not known
	Timestamp time.Time // zero when the record has none
	Sections  []ErrorSection
	Truncated bool // the dump holds less of it than its header says
}

// Severity is how bad a hardware error was.
type Severity uint32

// The severities.
const (
	Recoverable   Severity = 0
	Fatal         Severity = 1
	Corrected     Severity = 2
	Informational Severity = 3
)

// ErrorSection is one section of an error record. At most one of its decoded parts
// is set.
type ErrorSection struct {
	GUID     [16]byte
	Type     string // "" when the GUID is not known
	Severity Severity
	Primary  bool
	FRU      string // text that names the part to replace, "" none

	Processor *ProcessorError
	MCA       *MachineCheck
	Memory    *MemoryError
	PCIe      *PCIeError
}

// ProcessorError is the processor generic error section (UEFI N.2.4.1). Has tells
// which fields are there.
type ProcessorError struct {
	Has                            uint64
	ProcessorType, ISA, Error, Op  uint8
	Flags, Level                   uint8
	Version, ID, Target, Requestor uint64
	Responder, IP                  uint64
}

// Bits of ProcessorError.Has.
const (
	HasProcessorError  = 1 << 2
	HasOperation       = 1 << 3
	HasLevel           = 1 << 5
	HasProcessorID     = 1 << 8
	HasTarget          = 1 << 9
	HasProcessorIP     = 1 << 12
	hasMemoryAddress   = 1 << 1
	hasMemoryNode      = 1 << 3
	hasMemoryCard      = 1 << 4
	hasMemoryModule    = 1 << 5
	hasMemoryErrorType = 1 << 14
	hasPCIePort        = 1 << 0
	hasPCIeDevice      = 1 << 3
)

// MachineCheck is WHEA_XPF_MCA_SECTION of the public ntddk.h.
type MachineCheck struct {
	Vendor    uint32 // 1 Intel, 2 AMD
	Processor uint32
	Bank      uint32
	Status    uint64 // MCi_STATUS
	Address   uint64 // when Status says that it is valid
	Misc      uint64
}

// Bits of MCi_STATUS, from the processors' manuals.
const (
	MCIValid, MCIOverflow, MCIUncorrected = 1 << 63, 1 << 62, 1 << 61
	MCIMiscValid, MCIAddressValid         = 1 << 59, 1 << 58
	MCIContextCorrupt                     = 1 << 57
)

// MemoryError is the memory error section (UEFI N.2.5).
type MemoryError struct {
	Address            uint64
	HasAddress         bool
	Node, Card, Module uint16
	HasNode, HasCard   bool
	HasModule          bool
	Type               uint8
	HasType            bool
}

// PCIeError is the PCI Express error section (UEFI N.2.7).
type PCIeError struct {
	PortType            uint32
	HasPort, HasDevice  bool
	Vendor, Device      uint16
	Class               uint32 // 24 bits
	Segment             uint16
	Bus, Slot, Function uint8
}

const (
	recordHeader  = 128
	sectionHeader = 72
	maxRecord     = 1 << 16
	maxSections   = 64
	recordStream  = "WHEA_ERROR_RECORD"
	cper          = 0x52455043 // "CPER"
	primary       = 1
)

// errorRecordAt reads the record that a parameter points to; nil when the dump does
// not hold one there.
func (j *judge) errorRecordAt(va uint64) *ErrorRecord {
	head := j.ahead(va, recordHeader)
	c := cursor.New(head, recordStream, -1)
	c.Seek(20)
	length := c.U32()
	if c.Err() != nil {
		return nil
	}
	b := j.ahead(va, int(min(length, maxRecord)))
	r, _ := ParseErrorRecord(b)
	if r != nil {
		j.present(va, len(b))
		for _, p := range usedOfRecord(b) {
			j.used(va+uint64(p[0]), p[1])
		}
	}
	return r
}

// ParseErrorRecord decodes a record that begins at b. What lies beyond b is left out
// and said in Truncated. The error, always a *dump.Error, means that it is no record.
func ParseErrorRecord(b []byte) (*ErrorRecord, error) {
	c := cursor.New(b, recordStream, -1)
	signature, revision, end, sections := c.U32(), c.U16(), c.U32(), c.U16()
	r := &ErrorRecord{Revision: revision, Severity: Severity(c.U32())}
	valid := c.U32()
	r.Length = c.U32()
	stamp := c.Bytes(8)
	c.Seek(80)
	notify := c.Bytes(16)
	c.Seek(recordHeader)
	if c.Err() != nil {
		return nil, c.Err()
	}
	if signature != cper || end != 0xffffffff {
		return nil, dump.Errorf(dump.BadRecord, recordStream, "it does not begin with CPER")
	}
	if valid&2 != 0 && len(stamp) == 8 {
		r.Timestamp = recordTime(stamp)
	}
	r.Notify = notifyTypes[[16]byte(notify)]
	r.Truncated = int(r.Length) > len(b) || sections > maxSections
	for range min(int(sections), maxSections) {
		d := c.Sub(sectionHeader)
		if c.Err() != nil {
			r.Truncated = true
			break
		}
		r.Sections = append(r.Sections, readSection(b, d, &r.Truncated))
	}
	return r, nil
}

// readSection decodes a section descriptor d and the section of b that it names.
func readSection(b []byte, d *cursor.Cursor, truncated *bool) ErrorSection {
	offset, length := d.U32(), d.U32()
	d.Seek(10)
	valid := d.U8()
	d.Seek(12)
	s := ErrorSection{Primary: d.U32()&primary != 0, GUID: [16]byte(d.Bytes(16))}
	d.Seek(48)
	s.Severity = Severity(d.U32())
	if valid&2 != 0 {
		s.FRU = readable(cursor.CString(d.Bytes(20)))
	}
	t := sectionTypes[s.GUID]
	s.Type = t.name
	c := cursor.New(b, recordStream, -1)
	c.Seek(int(offset))
	body := c.Bytes(min(int(length), maxRecord))
	if c.Err() != nil {
		*truncated = true
		return s
	}
	if t.read != nil {
		t.read(&s, cursor.New(body, recordStream, -1))
	}
	return s
}

func readProcessor(s *ErrorSection, c *cursor.Cursor) {
	p := &ProcessorError{Has: c.U64(), ProcessorType: c.U8(), ISA: c.U8(), Error: c.U8(), Op: c.U8(), Flags: c.U8(), Level: c.U8()}
	c.Skip(2)
	p.Version = c.U64()
	c.Skip(128) // the processor's brand
	p.ID, p.Target, p.Requestor, p.Responder, p.IP = c.U64(), c.U64(), c.U64(), c.U64(), c.U64()
	if c.Err() == nil {
		s.Processor = p
	}
}

func readMCA(s *ErrorSection, c *cursor.Cursor) {
	c.Skip(4)
	m := &MachineCheck{Vendor: c.U32()}
	c.Skip(8) // time stamp
	m.Processor = c.U32()
	c.Skip(16) // MCG_STATUS, instruction pointer
	m.Bank, m.Status, m.Address, m.Misc = c.U32(), c.U64(), c.U64(), c.U64()
	if c.Err() == nil {
		s.MCA = m
	}
}

func readMemory(s *ErrorSection, c *cursor.Cursor) {
	has := c.U64()
	c.Skip(8)
	m := &MemoryError{Address: c.U64()}
	c.Skip(8)
	m.Node, m.Card, m.Module = c.U16(), c.U16(), c.U16()
	c.Seek(72)
	m.Type = c.U8()
	m.HasAddress, m.HasNode, m.HasCard = has&hasMemoryAddress != 0, has&hasMemoryNode != 0, has&hasMemoryCard != 0
	m.HasModule, m.HasType = has&hasMemoryModule != 0, has&hasMemoryErrorType != 0
	if c.Err() == nil {
		s.Memory = m
	}
}

func readPCIe(s *ErrorSection, c *cursor.Cursor) {
	has := c.U64()
	p := &PCIeError{PortType: c.U32(), HasPort: has&hasPCIePort != 0, HasDevice: has&hasPCIeDevice != 0}
	c.Seek(24)
	p.Vendor, p.Device = c.U16(), c.U16()
	p.Class = uint32(c.U8()) | uint32(c.U8())<<8 | uint32(c.U8())<<16
	p.Function, p.Slot, p.Segment, p.Bus = c.U8(), c.U8(), c.U16(), c.U8()
	if c.Err() == nil {
		s.PCIe = p
	}
}

// recordTime reads a time stamp: seconds, minutes, hours, a flag, day, month, year,
// century. The UEFI specification has binary coded decimals, Windows writes plain
// numbers (WHEA_TIMESTAMP of the public ntddk.h); the century tells which. Zero when it
// is none of ours.
func recordTime(b []byte) time.Time {
	v := make([]int, len(b))
	decimal := b[7] == 0x19 || b[7] == 0x20
	for i, x := range b {
		v[i] = int(x)
		if decimal && i != 3 { // whether the time is precise
			if x>>4 > 9 || x&15 > 9 {
				return time.Time{}
			}
			v[i] = int(x>>4)*10 + int(x&15)
		}
	}
	t := time.Date(v[7]*100+v[6], time.Month(v[5]), v[4], v[2], v[1], v[0], 0, time.UTC)
	if v[7] != 19 && v[7] != 20 || v[6] > 99 || v[5] < 1 || v[5] > 12 || v[4] < 1 || t.Day() != v[4] || v[2] > 23 || v[1] > 59 || v[0] > 59 {
		return time.Time{}
	}
	return t
}

type sectionType struct {
	name string
	read func(*ErrorSection, *cursor.Cursor)
}

// guid makes a GUID's bytes as they stand in memory.
func guid(a uint32, b, c uint16, d ...byte) (g [16]byte) {
	copy(g[:], []byte{byte(a), byte(a >> 8), byte(a >> 16), byte(a >> 24), byte(b), byte(b >> 8), byte(c), byte(c >> 8)})
	copy(g[8:], d)
	return g
}

// sectionTypes and notifyTypes: GUIDs of the UEFI specification, N.2.2 and N.2.1.1,
// and of the public ntddk.h.
var sectionTypes = map[[16]byte]sectionType{
	guid(0x9876ccad, 0x47b4, 0x4bdb, 0xb6, 0x5e, 0x16, 0xf1, 0x93, 0xc4, 0xf3, 0xdb): {"processor", readProcessor},
	guid(0xdc3ea0b0, 0xa144, 0x4797, 0xb9, 0x5b, 0x53, 0xfa, 0x24, 0x2b, 0x6e, 0x1d): {"x86 or x64 processor", nil},
	guid(0xe19e3d16, 0xbc11, 0x11e4, 0x9c, 0xaa, 0xc2, 0x05, 0x1d, 0x5d, 0x46, 0xb0): {"ARM processor", nil},
	guid(0x8a1e1d01, 0x42f9, 0x4557, 0x9c, 0x33, 0x56, 0x5e, 0x5c, 0xc3, 0xf7, 0xe8): {"machine check", readMCA},
	guid(0xa5bc1114, 0x6f64, 0x4ede, 0xb8, 0x63, 0x3e, 0x83, 0xed, 0x7c, 0x83, 0xb1): {"memory", readMemory},
	guid(0xd995e954, 0xbbc1, 0x430f, 0xad, 0x91, 0xb4, 0x4d, 0xcb, 0x3c, 0x6f, 0x35): {"PCI Express", readPCIe},
	guid(0xc5753963, 0x3b84, 0x4095, 0xbf, 0x78, 0xed, 0xda, 0xd3, 0xf9, 0xc9, 0xdd): {"PCI bus", nil},
	guid(0xeb5e4685, 0xca66, 0x4769, 0xb6, 0xa2, 0x26, 0x06, 0x8b, 0x00, 0x13, 0x26): {"PCI device", nil},
	guid(0x81212a96, 0x09ed, 0x4996, 0x94, 0x71, 0x8d, 0x72, 0x9c, 0x8e, 0x69, 0xed): {"firmware", nil},
	guid(0x5b51fef7, 0xc79d, 0x4434, 0x8f, 0x1b, 0xaa, 0x62, 0xde, 0x3e, 0x2c, 0x64): {"DMA remapping", nil},
	guid(0xe71254e7, 0xc1b9, 0x4940, 0xab, 0x76, 0x90, 0x97, 0x03, 0xa4, 0x32, 0x0f): {"nonmaskable interrupt", nil},
	guid(0xe71254e9, 0xc1b9, 0x4940, 0xab, 0x76, 0x90, 0x97, 0x03, 0xa4, 0x32, 0x0f): {"error packet", nil},
	guid(0xc34832a1, 0x02c3, 0x4c52, 0xa9, 0xf1, 0x9f, 0x1d, 0x5d, 0x77, 0x23, 0xfc): {"error recovery", nil},
	guid(0xe16edb28, 0x6113, 0x4263, 0xa4, 0x1d, 0xe5, 0x3f, 0x8d, 0xe7, 0x87, 0x51): {"memory, details of the processor", nil},
	guid(0x81687003, 0xdbfd, 0x4728, 0x9f, 0xfd, 0xf0, 0x90, 0x4f, 0x97, 0x59, 0x7d): {"persistent memory", nil},
	guid(0xdd060800, 0xf6e1, 0x4204, 0xac, 0x27, 0xc4, 0xbc, 0xa9, 0x56, 0x84, 0x02): {"PCI recovery", nil},
	guid(0xec49534b, 0x30e7, 0x4358, 0x97, 0x2f, 0xec, 0xa6, 0x95, 0x8f, 0xae, 0x3b): {"PCI Express downstream port containment", nil},
	guid(0x1c15b445, 0x9b06, 0x4667, 0xac, 0x25, 0x33, 0xc0, 0x56, 0xb8, 0x88, 0x03): {"model specific registers", nil},
	guid(0x0e36c93e, 0xca15, 0x4a83, 0xba, 0x8a, 0xcb, 0xe8, 0x0f, 0x7f, 0x00, 0x17): {"corrected memory errors", nil},
	guid(0xe96eca99, 0x53e2, 0x4f52, 0x9b, 0xe7, 0xd2, 0xdb, 0xe9, 0x50, 0x8e, 0xd0): {"corrected PCI Express errors", nil},
	guid(0xf5fe48a6, 0x84ce, 0x4c1e, 0xaa, 0x64, 0x20, 0xc9, 0xa5, 0x30, 0x99, 0xf1): {"synchronous external abort", nil},
	guid(0xf2a4a152, 0x9c6d, 0x4020, 0xae, 0xcf, 0x76, 0x95, 0xb3, 0x89, 0x25, 0x1b): {"system error interrupt", nil},
	guid(0x85183a8b, 0x9c41, 0x429c, 0x93, 0x9c, 0x5c, 0x3c, 0x08, 0x7c, 0xa2, 0x80): {"firmware telemetry", nil},
	guid(0xe71254e8, 0xc1b9, 0x4940, 0xab, 0x76, 0x90, 0x97, 0x03, 0xa4, 0x32, 0x0f): {"error packet of a generic source", nil},
}

var notifyTypes = map[[16]byte]string{
	guid(0x2dce8bb1, 0xbdd7, 0x450e, 0xb9, 0xad, 0x9c, 0xf4, 0xeb, 0xd4, 0xf8, 0x90): "corrected machine check",
	guid(0x4e292f96, 0xd843, 0x4a55, 0xa8, 0xc2, 0xd4, 0x81, 0xf2, 0x7e, 0xbe, 0xee): "corrected platform error",
	guid(0xe8f56ffe, 0x919c, 0x4cc5, 0xba, 0x88, 0x65, 0xab, 0xe1, 0x49, 0x13, 0xbb): "machine check",
	guid(0xcf93c01f, 0x1a16, 0x4dfc, 0xb8, 0xbc, 0x9c, 0x4d, 0xaf, 0x67, 0xc1, 0x04): "PCI Express",
	guid(0xcc5263e8, 0x9308, 0x454a, 0x89, 0xd0, 0x34, 0x0b, 0xd3, 0x9b, 0xc9, 0x8e): "INIT",
	guid(0x5bad89ff, 0xb7e6, 0x42c9, 0x81, 0x4a, 0xcf, 0x24, 0x85, 0xd6, 0xe9, 0x8a): "nonmaskable interrupt",
	guid(0x3d61a466, 0xab40, 0x409a, 0xa6, 0x98, 0xf3, 0x62, 0xd4, 0x64, 0xb3, 0x8f): "boot",
	guid(0x919448b2, 0x3739, 0x4b7f, 0xa8, 0xf1, 0xe0, 0x06, 0x28, 0x05, 0xc2, 0xa3): "corrected machine check interrupt",
	guid(0x9a78788a, 0xbbe8, 0x11e4, 0x80, 0x9e, 0x67, 0x61, 0x1e, 0x5d, 0x46, 0xb0): "synchronous external abort",
	guid(0x5c284c81, 0xb0ae, 0x4e87, 0xa3, 0x22, 0xb0, 0x4c, 0x85, 0x62, 0x43, 0x23): "system error interrupt",
	guid(0x09a9d5ac, 0x5204, 0x4214, 0x96, 0xe5, 0x94, 0x99, 0x2e, 0x75, 0x2b, 0xcd): "platform error interrupt",
	guid(0x487565ba, 0x6494, 0x4367, 0x95, 0xca, 0x4e, 0xff, 0x89, 0x35, 0x22, 0xf6): "baseboard management controller",
	guid(0xe9d59197, 0x94ee, 0x4a4f, 0x8a, 0xd8, 0x9b, 0x7d, 0x8b, 0xd9, 0x3d, 0x2e): "system control interrupt",
	guid(0xfe84086e, 0xb557, 0x43cf, 0xac, 0x1b, 0x17, 0x98, 0x2e, 0x07, 0x84, 0x70): "external interrupt",
	guid(0x0033f803, 0x2e70, 0x4e88, 0x99, 0x2c, 0x6f, 0x26, 0xda, 0xf3, 0xdb, 0x7a): "device driver",
	guid(0x3e62a467, 0xab40, 0x409a, 0xa6, 0x98, 0xf3, 0x62, 0xd4, 0x64, 0xb3, 0x8f): "generic",
}
