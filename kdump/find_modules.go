package kdump

import (
	"cmp"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// loaderLayout holds the public offsets of the loader's structures: of the
// entries KLDR_DATA_TABLE_ENTRY and LDR_DATA_TABLE_ENTRY, which agree in these,
// of PEB, PEB_LDR_DATA and RTL_USER_PROCESS_PARAMETERS.
type loaderLayout struct {
	base, size, fullName, baseName int
	checkSum                       int // of the kernel's entries
	timeStamp                      int // of those of user mode
	ldr, inLoadOrder               int // PEB.Ldr, PEB_LDR_DATA.InLoadOrderModuleList
	parameters, commandLine        int // PEB.ProcessParameters, .CommandLine
	environment                    int // .Environment
}

func loaderOf(ptr int) loaderLayout {
	if ptr == 4 {
		return loaderLayout{0x18, 0x20, 0x24, 0x2c, 0x40, 0x44, 0xc, 0xc, 0x10, 0x40, 0x48}
	}
	return loaderLayout{0x30, 0x40, 0x48, 0x58, 0x78, 0x80, 0x18, 0x10, 0x20, 0x70, 0x80}
}

// readLoaded reads the drivers of a full dump from PsLoadedModuleList, with the
// identities of their images where their headers are in the dump.
func (f *File) readLoaded() {
	head := f.hdr.modules.v
	if f.kd != nil && kernelAddress(f.hdr.ptr, f.kd.modules) {
		head = f.kd.modules
	}
	if !kernelAddress(f.hdr.ptr, head) {
		f.damage(dump.Errorf(dump.BadRecord, "PsLoadedModuleList", "its address is not known: no drivers can be listed"))
		return
	}
	f.Processes() // whose address spaces hold the drivers of their sessions
	w := f.walkList(f.mem, head, maxLoaded, "PsLoadedModuleList")
	if w.err != nil {
		f.damage(w.err)
	}
	bad := 0
	for _, va := range w.entries {
		m, ok := f.loaderEntry(f.mem, f.hdr.ptr, va)
		if !ok || !kernelAddress(f.hdr.ptr, m.Base) {
			bad++
			continue
		}
		m.Kernel = true
		if v, err := dump.ReadUint32(f.mem, va+uint64(loaderOf(f.hdr.ptr).checkSum)); err == nil && m.CheckSum == 0 {
			m.CheckSum = v
		}
		f.modules = append(f.modules, m)
	}
	if bad > 0 {
		f.damage(dump.Errorf(dump.BadRecord, "PsLoadedModuleList", "%d of %d entries are no modules", bad, len(w.entries)))
	}
}

// loaderEntry decodes an entry of a loader's list and reads the image's headers.
func (f *File) loaderEntry(m dump.Memory, ptr int, va uint64) (dump.Module, bool) {
	const most = 0x80
	if !f.spend(moduleSteps) {
		return dump.Module{}, false
	}
	l := loaderOf(ptr)
	b := make([]byte, most)
	n, _ := m.ReadAt(b, va)
	c := cursor.New(b[:n], "LDR_DATA_TABLE_ENTRY", -1)
	mod := dump.Module{Base: fieldPointer(c, l.base, ptr), Size: uint64(field32(c, l.size))}
	if c.Err() != nil || mod.Base == 0 || mod.Base%pageSize != 0 || mod.Size == 0 {
		return mod, false
	}
	name, ok := f.readUnicode(m, ptr, va+uint64(l.fullName))
	if !ok || name == "" {
		if base, _ := f.readUnicode(m, ptr, va+uint64(l.baseName)); base != "" {
			name = base
		}
	}
	if f.watched != nil {
		f.keepPath(m, ptr, va+uint64(l.fullName), name)
		base, _ := f.readUnicode(m, ptr, va+uint64(l.baseName))
		f.keepPath(m, ptr, va+uint64(l.baseName), base)
	}
	mod.Path = name
	f.identify(m, &mod)
	return mod, true
}

// identify reads an image's TimeDateStamp, CheckSum, CodeView record and versions
// from its headers and resources in memory.
func (f *File) identify(m dump.Memory, mod *dump.Module) {
	const peStream, peMagic, dosMagic = "PE header", 0x4550, 0x5a4d
	page := make([]byte, pageSize)
	n, _ := m.ReadAt(page, mod.Base)
	c := cursor.New(page[:n], peStream, -1)
	if c.U16() != dosMagic {
		return
	}
	pe := int(field32(c, 0x3c))
	if field32(c, pe) != peMagic || c.Err() != nil {
		return
	}
	c.Seek(pe + 0x18)
	directories := 0x60 // of the optional header: PE32, then PE32+
	if c.U16() == 0x20b {
		directories = 0x70
	}
	stamp, sum := field32(c, pe+8), field32(c, pe+0x18+0x40)
	if c.Err() != nil {
		return
	}
	mod.TimeDateStamp, mod.CheckSum = stamp, sum
	const resourceDirectory, debugDirectory = 2, 6
	count := field32(c, pe+0x18+directories-4)
	directory := func(i int) (rva, size uint32) {
		at := pe + 0x18 + directories + 8*i
		if rva, size = field32(c, at), field32(c, at+4); c.Err() != nil || count <= uint32(i) {
			return 0, 0
		}
		return rva, size
	}
	if rva, size := directory(debugDirectory); rva != 0 {
		f.readDebugDirectory(m, mod, uint64(rva), size)
	}
	if rva, size := directory(resourceDirectory); rva != 0 && size != 0 {
		readVersion(m, mod, rva)
	}
}

// readDebugDirectory reads the IMAGE_DEBUG_DIRECTORYs: the CodeView record that one
// names, and whether one says that the build is reproducible.
func (f *File) readDebugDirectory(m dump.Memory, mod *dump.Module, rva uint64, size uint32) {
	const entry, most, codeViewType, reproducible = 0x1c, 16, 2, 16
	b := make([]byte, min(size/entry, most)*entry)
	n, _ := m.ReadAt(b, mod.Base+rva)
	c := cursor.New(b[:n], "debug directory", -1)
	for c.Left() >= entry {
		e := c.Sub(entry)
		switch field32(e, 0xc) {
		case codeViewType:
			if mod.CodeView.Signature == "" {
				mod.CodeView = f.codeView(m, mod, uint64(field32(e, 0x14)), field32(e, 0x10))
			}
		case reproducible:
			mod.Reproducible = true
		}
	}
}

// codeView reads a CodeView record.
func (f *File) codeView(m dump.Memory, mod *dump.Module, rva uint64, size uint32) (cv dump.CodeView) {
	const rsds, longest = 0x53445352, 0x400
	data, n := make([]byte, min(size, longest)), 0
	f.ahead(func() { n, _ = m.ReadAt(data, mod.Base+rva) })
	r := cursor.New(data[:n], "CodeView", -1)
	if rva == 0 || r.U32() != rsds {
		return cv
	}
	var guid [16]byte
	copy(guid[:], r.Bytes(len(guid)))
	age := r.U32()
	if r.Err() != nil {
		return cv
	}
	const name = 0x18
	pdb := cursor.CString(r.Bytes(r.Left()))
	folder := folderLength(pdb)
	f.usedAt(m, mod.Base+rva, name)
	f.as(UseFolder8, 0, func() { f.usedAt(m, mod.Base+rva+name, folder) })
	f.usedAt(m, mod.Base+rva+name+uint64(folder), len(pdb)-folder)
	return dump.CodeView{Signature: "RSDS", GUID: guid, Age: age, PDB: pdb}
}

// userModules reads the modules of a process from its loader's list, and those
// of its 32-bit half where it has one.
func (f *File) userModules(p *dump.Process) []dump.Module {
	if p.PEB == 0 || p.DirBase == 0 {
		return nil
	}
	m := f.processSpace(p)
	mods := f.loaderList(m, f.hdr.ptr, p.PEB)
	if p.Wow64 {
		if peb := f.peb32(m, p); peb != 0 {
			mods = append(mods, f.loaderList(m, 4, peb)...)
		}
	}
	slices.SortStableFunc(mods, func(a, b dump.Module) int { return cmp.Compare(a.Base, b.Base) })
	return slices.CompactFunc(mods, func(a, b dump.Module) bool { return a.Base == b.Base })
}

// loaderList walks PEB.Ldr's list in the order of loading. Lists of user mode are
// the process's own and need no excuse to be broken: nothing is said.
func (f *File) loaderList(m dump.Memory, ptr int, peb uint64) (out []dump.Module) {
	l := loaderOf(ptr)
	arch := dump.AMD64
	if ptr == 4 {
		arch = dump.X86
	}
	ldr, err := dump.ReadPointer(m, arch, peb+uint64(l.ldr))
	if err != nil || ldr == 0 {
		return nil
	}
	for _, va := range f.walkListOf(m, ptr, ldr+uint64(l.inLoadOrder), maxLoaded, "PEB.Ldr").entries {
		mod, ok := f.loaderEntry(m, ptr, va)
		if !ok {
			continue
		}
		if mod.TimeDateStamp == 0 { // its header is not in memory
			if v, err := dump.ReadUint32(m, va+uint64(l.timeStamp)); err == nil {
				mod.TimeDateStamp = v
			}
		}
		out = append(out, mod)
	}
	return out
}

// peb32 returns the address of a process's 32-bit PEB: EPROCESS.WoW64Process
// points to a structure that begins with it since Windows 10, and is it before.
func (f *File) peb32(m dump.Memory, p *dump.Process) uint64 {
	r := f.recordAt(p.EPROCESS, f.processSize())
	if r == nil {
		return 0
	}
	v, ok := r.pointer(f.lists().wow64)
	if ok && v != 0 && v <= 0xffffffff {
		return v
	}
	if !ok || !kernelAddress(r.ptr, v) {
		return 0
	}
	if peb, err := dump.ReadUint64(f.mem, v); err == nil && peb <= 0xffffffff {
		return peb
	}
	return 0
}

// readUnloadedList reads MmUnloadedDrivers: entries of {Name UNICODE_STRING,
// StartAddress, EndAddress, time}.
func (f *File) readUnloadedList() {
	const remembered = 50
	if f.kd == nil || !kernelAddress(f.hdr.ptr, f.kd.unloaded) {
		return
	}
	ptr := f.hdr.ptr
	array, err := dump.ReadPointer(f.mem, f.hdr.arch, f.kd.unloaded)
	if err != nil || !kernelAddress(ptr, array) {
		return
	}
	size := 4*ptr + 8
	for i := range uint64(remembered) {
		va := array + i*uint64(size)
		start, err1 := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(2*ptr))
		end, err2 := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(3*ptr))
		if err1 != nil || err2 != nil {
			return
		}
		name, _ := f.readUnicode(f.mem, ptr, va)
		f.keepPath(f.mem, ptr, va, name)
		if start == 0 || end <= start || name == "" {
			continue
		}
		m := dump.Module{Base: start, Size: end - start, Path: name, Kernel: true, Unloaded: true}
		if at, err := dump.ReadUint64(f.mem, va+uint64(4*ptr)); err == nil && at != 0 {
			m.UnloadedAt = filetime(at)
		}
		f.unloaded = append(f.unloaded, m)
	}
}
