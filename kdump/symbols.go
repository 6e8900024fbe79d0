package kdump

import (
	"dumptriage/dump"
)

// Symbols is the debug information of a kernel. It is asked while the dump is
// opened and not kept.
type Symbols interface {
	// Size returns the size of a structure, such as "_EPROCESS", in bytes; false
	// when its layout is not known.
	Size(structure string) (int, bool)
	// Field returns the offset of a field in bytes. It may lie in a structure
	// within: "ApcState.Process".
	Field(structure, field string) (int, bool)
	// Bits returns the lowest bit of a bit field, counted from the start of the
	// structure, and how many it has.
	Bits(structure, field string) (first, width int, ok bool)
	// Symbol returns the RVA of a variable or function, such as "PspCidTable".
	Symbol(name string) (uint32, bool)
}

// Options steer how a dump is opened. The zero value is usable.
type Options struct {
	// Symbols, when set, is asked for the debug information of the kernel of a
	// dump of a whole system. It must prove by the CodeView record that what it
	// returns is of that very build; nil when there is none.
	Symbols func(nt *dump.Module) Symbols
	// Watch, when set, is told what of the file is used. The dump then serves one
	// goroutine.
	Watch Watcher
	// WatchNames makes names of processes and threads count as used.
	WatchNames bool
}

const symbolsStream = "kernel symbols"

// Ways in which the kernel's data block was found with symbols.
const (
	bySymbols        = "symbols"          // where they say it is; of offsets: by its types
	bySymbolsDecoded = "symbols, decoded" // there, encoded
	byTypes          = "types"            // not at all: types and symbols stand in for it
)

// Kernel returns the kernel's image in a dump of a whole system as the list of
// modules and the image's header name it; nil when they cannot be read.
func (f *File) Kernel() *dump.Module {
	if f.full == nil || f.kernelBase() == 0 {
		return nil
	}
	entry, err := dump.ReadPointer(f.mem, f.hdr.arch, f.hdr.modules.v)
	if err != nil {
		return nil
	}
	m, ok := f.loaderEntry(f.mem, f.hdr.ptr, entry)
	if !ok {
		return nil
	}
	m.Kernel = true
	return &m
}

// useSymbols reads what the kernel's debug information says, when there is some.
func (f *File) useSymbols(find func(nt *dump.Module) Symbols) {
	if find == nil {
		return
	}
	nt := f.Kernel()
	if nt == nil || nt.CodeView.Signature == "" {
		return
	}
	if s := find(nt); s != nil {
		f.sym = readSymbols(s, f.hdr.ptr)
		f.sym.src = s
	}
}

// kernelSymbols is what was read of Symbols.
type kernelSymbols struct {
	typeRows
	known   map[string]bool   // structures whose layout is
	address map[string]uint64 // of globals, once they were asked for
	src     Symbols           // while the dump is opened
}

// globals are the variables and functions that are asked for.
var globals = []string{
	"KdDebuggerDataBlock", "PsLoadedModuleList", "PsActiveProcessHead", "PspCidTable", "KiCallUserMode", "ExpSystemResourcesList",
	"ObpTypeObjectType", "KeTimeIncrement", "MmUnloadedDrivers", "KiProcessorBlock", "NtBuildLab",
}

// place asks for the addresses of globals, for which all public symbols are read:
// only where the data block is not at the header's address.
func (s *kernelSymbols) place(base uint64) {
	s.address = map[string]uint64{}
	for _, name := range globals {
		if rva, ok := s.src.Symbol(name); ok && rva != 0 && rva < maxKernelImage {
			s.address[name] = base + uint64(rva)
		}
	}
}

// symbolKDBG reads the kernel's data block where the symbols say that it is.
func (f *File) symbolKDBG() bool {
	if f.sym == nil {
		return false
	}
	if f.sym.place(f.kernelBase()); f.sym.address["KdDebuggerDataBlock"] == 0 {
		return false
	}
	return f.takeKDBGAt(f.sym.address["KdDebuggerDataBlock"], bySymbols, bySymbolsDecoded)
}

// typesKDBG lets types and symbols stand in for the kernel's data block, when the
// first process of the list bears them out.
func (f *File) typesKDBG() bool {
	if f.sym == nil {
		return false
	}
	f.kd = f.sym.kdbg(f.kernelBase(), f.hdr)
	if k := f.kd; f.threadSize() > 0 && f.processSize() > 0 && k.process.dirBase > 0 {
		if va := f.firstBy(f.sym.offsets.pid); va != 0 {
			f.kdbgHow = byTypes
			e := dump.Errorf(dump.BadRecord, kdbgStream,
				"not found, neither at the header's address nor in the kernel's image: the kernel's symbols say what it would")
			e.Warning = true
			f.damage(e)
			return true
		}
	}
	f.kd = nil
	return false
}

// firstBy returns the first process of the list of active processes when it is
// System by an offset of UniqueProcessId, else 0.
func (f *File) firstBy(pid int) uint64 {
	head := f.processHead()
	if head == 0 || pid == 0 {
		return 0
	}
	first, err := dump.ReadPointer(f.mem, f.hdr.arch, head)
	if err != nil {
		return 0
	}
	va := first - uint64(pid+f.hdr.ptr)
	id, err := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(pid))
	if err != nil || id != systemPID || !f.isProcessAt(va) {
		return 0
	}
	return va
}

// checkSymbols takes the types for all further reading, unless they do not
// describe what the dump holds. Of what the kernel's data block says they fill the
// gaps.
func (f *File) checkSymbols() {
	if f.sym == nil {
		return
	}
	s := f.sym
	s.src = nil
	if f.kd == nil || f.processSize() == 0 {
		return
	}
	for _, of := range []struct {
		name string
		size int
	}{{"_EPROCESS", f.kd.process.size}, {"_ETHREAD", f.kd.thread.size}} {
		if says := s.sizes[of.name]; says != 0 && says != of.size {
			f.damage(dump.Errorf(dump.Mismatch, symbolsStream, "%s has %#x bytes by them and %#x by the kernel's data block: their types are not used", of.name, says, of.size))
			return
		}
	}
	rows := s.rows(f.offsets(), f.lists(), f.waits(), f.vads())
	rows.kd = *f.kd
	from := s.blockFields()
	for i, fd := range rows.blockFields() {
		if *fd.at == 0 {
			*fd.at = *from[i].at
		}
	}
	*f.kd, f.rows = rows.kd, rows
}
