package minidump

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

var _ dump.Source = (*File)(nil)

// typeFlags names the MINIDUMP_TYPE bits, without their "MiniDump" prefix.
var typeFlags = []string{"WithDataSegs", "WithFullMemory", "WithHandleData", "FilterMemory", "ScanMemory",
	"WithUnloadedModules", "WithIndirectlyReferencedMemory", "FilterModulePaths", "WithProcessThreadData",
	"WithPrivateReadWriteMemory", "WithoutOptionalData", "WithFullMemoryInfo", "WithThreadInfo", "WithCodeSegs",
	"WithoutAuxiliaryState", "WithFullAuxiliaryState", "WithPrivateWriteCopyMemory", "IgnoreInaccessibleMemory",
	"WithTokenInformation", "WithModuleHeaders", "FilterTriage", "WithAvxXStateContext", "WithIptTrace",
	"ScanInaccessiblePartialPages", "FilterWriteCombinedMemory"}

// MINIDUMP_TYPE bits that decide the kind.
const (
	typeFullMemory     = 0x2
	typeIndirectMemory = 0x40
	typePrivateMemory  = 0x200
)

// Format implements dump.Source.
func (f *File) Format() dump.Format { return dump.FormatMinidump }

// Kind says how much memory the dump holds: by the streams that are there where
// they tell, else by the flags.
func (f *File) Kind() string {
	switch {
	case f.Has(StreamMemory64List) && f.flags&typeFullMemory != 0:
		return "full memory"
	case f.flags&typePrivateMemory != 0:
		return "private memory"
	case f.flags&typeIndirectMemory != 0:
		return "stacks and referenced memory"
	case f.Has(StreamMemory64List) || f.Has(StreamMemoryList) || f.Has(StreamThreadList):
		return "stacks"
	}
	return "no memory"
}

// Flags implements dump.Source: the MINIDUMP_TYPE bits by name.
func (f *File) Flags() []string {
	var out []string
	for bit, name := range typeFlags {
		if f.flags&(1<<bit) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// BugCheck implements dump.Source; user dumps have none.
func (f *File) BugCheck() *dump.BugCheck { return nil }

// CPUs implements dump.Source; user dumps do not say.
func (f *File) CPUs() []dump.CPU { return nil }

// Process implements dump.Source.
func (f *File) Process() *dump.Process {
	p, _ := f.process.get(f, (*File).decodeProcess)
	return p
}

func (f *File) decodeProcess() (*dump.Process, *dump.Error) {
	p := &dump.Process{}
	if m, _ := f.MiscInfo(); m != nil {
		p.PID, p.HasPID = m.PID, m.HasPID
		p.Created, p.UserTime, p.KernelTime = m.Created, m.User, m.Kernel
	}
	fillProcess(p, f.memoryRanges(), f.Arch(), f.Threads(), f.Modules())
	return p, nil
}

// fillProcess takes the PEB and, as far as memory holds them, the image's base
// and the command line from it. Without a PEB the name is that of the first
// module that is a program.
func fillProcess(p *dump.Process, mem dump.Memory, arch dump.Arch, threads []dump.Thread, modules []dump.Module) {
	r := tebReader{mem: dump.NewWindow(mem), arch: arch}
	l := tebLayoutOf(arch)
	for i := range threads {
		teb := threads[i].TEB
		if self, ok := r.pointer(teb + l.self); teb == 0 || !ok || self != teb {
			continue
		}
		if p.PEB, _ = r.pointer(teb + l.peb); p.PEB != 0 {
			break
		}
	}
	p.Name = programName(modules)
	if p.PEB == 0 {
		return
	}
	if base, ok := r.pointer(p.PEB + l.pebImageBase); ok {
		for i := range modules {
			if modules[i].Base == base {
				p.Name = modules[i].Name()
			}
		}
	}
	if params, ok := r.pointer(p.PEB + l.pebParameters); ok && params != 0 {
		p.CommandLine = r.unicodeString(params + l.paramsCommandLine)
	}
}

func programName(modules []dump.Module) string {
	for i := range modules {
		if strings.HasSuffix(strings.ToLower(modules[i].Path), ".exe") {
			return modules[i].Name()
		}
	}
	return ""
}

// unicodeString reads a UNICODE_STRING: length in bytes, capacity, pointer.
// A text that memory holds only in part is not returned.
func (r *tebReader) unicodeString(va uint64) string {
	lengths, ok := r.mem.Uint32(va)
	at, ok2 := r.pointer(va + uint64(r.arch.PointerSize()))
	n := int(lengths & 0xffff)
	if !ok || !ok2 || n == 0 {
		return ""
	}
	b := make([]byte, n)
	if r.mem.Bytes(b, at) < n {
		return ""
	}
	return cursor.UTF16(b)
}

// DecodeAll decodes every stream that this package knows and returns Damage,
// which is then complete.
func (f *File) DecodeAll() []*dump.Error {
	f.System()
	f.Process()
	f.Exception()
	f.UnloadedModules()
	f.Handles()
	f.Regions()
	_, _ = f.HostModules()
	_, _ = f.HandleOperationList()
	_, _ = f.FunctionTables()
	_, _ = f.Tokens()
	_, _ = f.SystemMemory()
	_, _ = f.VMCounters()
	_, _ = f.Comments()
	_, _ = f.BreakpadInfo()
	_, _ = f.Assertion()
	_, _ = f.Crashpad()
	return f.Damage()
}
