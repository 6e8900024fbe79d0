package minidump

import (
	"fmt"
	"io"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// UserDump is an opened full user dump of the old kind (USERMODE_CRASHDUMP_HEADER,
// magic "USERDUMP" or "USERDU64"), which user-mode debuggers wrote before
// minidumps. It implements dump.Source.
//
// The fields of the header and of the records are known from public headers and
// from Ghidra's reader of the format. No real file was at hand to check against:
// places where the sources leave a choice say how it is made.
type UserDump struct {
	input
	Header UserDumpHeader

	threadList lazy[[]dump.Thread]
	moduleList lazy[[]dump.Module]
	regionList lazy[[]dump.Region]
	memory     lazy[*dump.FileMemory]
	event      lazy[*debugEvent]
	process    lazy[*dump.Process]
}

// UserDumpHeader is USERMODE_CRASHDUMP_HEADER32 or 64 with its offsets widened.
type UserDumpHeader struct {
	Is64                                   bool
	MajorVersion, MinorVersion             uint32
	MachineImageType                       uint32 // IMAGE_FILE_MACHINE_*
	Threads, Modules, MemoryRegions        uint32
	ThreadOffset, ModuleOffset, DataOffset uint64
	MemoryRegionOffset, DebugEventOffset   uint64
	ThreadStateOffset, VersionInfoOffset   uint64
}

const (
	userSignature  = 0x52455355 // "USER"
	userValid32    = 0x504d5544 // "DUMP"
	userValid64    = 0x34365544 // "DU64"
	userHeader32   = 64
	userHeader64   = 96
	userThread32   = 48 // CRASH_THREAD32: 16 bytes, TEB, seven spare pointers
	userThread64   = 80
	userRegion32   = 28 // MEMORY_BASIC_INFORMATION32
	userRegion64   = 48
	userEventSize  = 16 + 152
	stateCommitted = 0x1000
)

var _ dump.Source = (*UserDump)(nil)

// OpenUserDump reads the header of an old full user dump of size bytes. The name
// is for messages. It fails, with a *dump.Error, when there is no such header or
// when it is of a processor that is not read.
func OpenUserDump(r io.ReaderAt, size int64, name string) (*UserDump, error) {
	u := &UserDump{input: input{r: r, size: size, name: name}}
	c := cursor.At(r, size, 0, userHeader64, "header")
	signature, valid := c.U32(), c.U32()
	if c.Err() == nil && (signature != userSignature || valid != userValid32 && valid != userValid64) {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: name, Stream: "header", Offset: 0, Size: 8, Msg: "not a full user dump: the file does not begin with USERDUMP or USERDU64"}
	}
	h := &u.Header
	h.Is64 = valid == userValid64
	h.MajorVersion, h.MinorVersion, h.MachineImageType = c.U32(), c.U32(), c.U32()
	h.Threads, h.Modules, h.MemoryRegions = c.U32(), c.U32(), c.U32()
	for _, offset := range []*uint64{&h.ThreadOffset, &h.ModuleOffset, &h.DataOffset, &h.MemoryRegionOffset, &h.DebugEventOffset, &h.ThreadStateOffset, &h.VersionInfoOffset} {
		*offset = c.Pointer(h.pointerSize())
	}
	if c.Err() != nil {
		return nil, &dump.Error{Code: dump.Truncated, File: name, Stream: "header", Offset: 0, Size: userHeader32, Msg: fmt.Sprintf("the header reaches beyond the end of the file (%d bytes)", size)}
	}
	if a := u.arch(); a == dump.ArchUnknown || (a.PointerSize() == 8) != h.Is64 {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: name, Stream: "header", Offset: 16, Size: 4, Msg: fmt.Sprintf("machine type %#x is not read", h.MachineImageType)}
	}
	return u, nil
}

func (h *UserDumpHeader) pointerSize() int {
	if h.Is64 {
		return 8
	}
	return 4
}

func (u *UserDump) arch() dump.Arch {
	if u.Header.MachineImageType > 0xffff {
		return dump.ArchUnknown
	}
	return dump.ArchOfMachine(uint16(u.Header.MachineImageType))
}

// Format implements dump.Source.
func (u *UserDump) Format() dump.Format {
	if u.Header.Is64 {
		return dump.FormatUser64
	}
	return dump.FormatUser32
}

// Kind implements dump.Source.
func (u *UserDump) Kind() string { return "full memory (old format)" }

// Flags implements dump.Source; the format has none.
func (u *UserDump) Flags() []string { return nil }

// Captured implements dump.Source; the format does not say.
func (u *UserDump) Captured() time.Time { return time.Time{} }

// System implements dump.Source. The header's version numbers are left in
// Header: which of several meanings they have could not be checked.
func (u *UserDump) System() *dump.System { return &dump.System{Arch: u.arch()} }

// UnloadedModules implements dump.Source; the format has none.
func (u *UserDump) UnloadedModules() []dump.Module { return nil }

// Handles implements dump.Source; the format has none.
func (u *UserDump) Handles() []dump.Handle { return nil }

// BugCheck implements dump.Source; user dumps have none.
func (u *UserDump) BugCheck() *dump.BugCheck { return nil }

// CPUs implements dump.Source; user dumps do not say.
func (u *UserDump) CPUs() []dump.CPU { return nil }

// Memory implements dump.Source.
func (u *UserDump) Memory() dump.Memory { return u.memoryRanges() }

func (u *UserDump) memoryRanges() *dump.FileMemory {
	m, _ := decodeOnce(&u.memory, u, (*UserDump).decodeMemory)
	return m
}

// Regions implements dump.Source.
func (u *UserDump) Regions() []dump.Region {
	r, _ := decodeOnce(&u.regionList, u, (*UserDump).decodeRegions)
	return r
}

// Modules implements dump.Source. The format gives neither time stamps nor
// debug identities.
func (u *UserDump) Modules() []dump.Module {
	m, _ := decodeOnce(&u.moduleList, u, (*UserDump).decodeModules)
	return m
}

// Threads implements dump.Source.
func (u *UserDump) Threads() []dump.Thread {
	t, _ := decodeOnce(&u.threadList, u, (*UserDump).decodeThreads)
	return t
}

// Process implements dump.Source.
func (u *UserDump) Process() *dump.Process {
	p, _ := decodeOnce(&u.process, u, func(u *UserDump) (*dump.Process, *dump.Error) {
		p := &dump.Process{}
		if e := u.debugEvent(); e != nil {
			p.PID, p.HasPID = e.processID, true
		}
		fillProcess(p, u.memoryRanges(), u.arch(), u.Threads(), u.Modules())
		return p, nil
	})
	return p
}

// Exception implements dump.Source. Its registers are those of its thread.
func (u *UserDump) Exception() *dump.Exception {
	e := u.debugEvent()
	if e == nil || e.exception == nil {
		return nil
	}
	out := *e.exception
	out.Context = dump.Registers{Arch: u.arch()}
	for _, t := range u.Threads() {
		if t.ID == out.ThreadID {
			out.Context = t.Context
		}
	}
	return &out
}
