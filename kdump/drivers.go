package kdump

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Modules implements dump.Source: the driver list, the kernel first.
func (f *File) Modules() []dump.Module {
	f.modulesOnce.Do(f.readModules)
	return f.modules
}

func (f *File) readModules() {
	if f.full != nil {
		f.readLoaded()
	} else {
		f.readDriverList()
	}
	f.byBase = make([]*dump.Module, len(f.modules))
	for i := range f.modules {
		f.byBase[i] = &f.modules[i]
	}
	slices.SortStableFunc(f.byBase, func(a, b *dump.Module) int { return cmp.Compare(a.Base, b.Base) })
	if f.full == nil {
		f.identifyListed()
	}
}

// maxIdentified bounds how many drivers in data blocks are looked at: real dumps
// have some hundreds, and a block holds the headers of one.
const maxIdentified = 1 << 14

// identifyListed reads what the headers of the drivers say that a triage dump's
// list does not, for those whose headers a data block holds.
func (f *File) identifyListed() {
	left := maxIdentified
	var seen map[uint64]bool // bases; blocks may overlap
	for _, b := range f.blocks {
		i, _ := slices.BinarySearchFunc(f.byBase, b.VA, func(m *dump.Module, va uint64) int { return cmp.Compare(m.Base, va) })
		for ; i < len(f.byBase) && f.byBase[i].Base-b.VA < b.Size; i++ {
			if left--; left < 0 {
				return
			}
			mod := f.byBase[i]
			if seen[mod.Base] {
				continue
			}
			if seen == nil {
				seen = map[uint64]bool{}
			}
			seen[mod.Base] = true
			image := *mod
			f.identify(f.mem, &image)
			if image.TimeDateStamp == mod.TimeDateStamp { // else these are another image's headers
				image.CheckSum = mod.CheckSum
				*mod = image
			}
		}
	}
}

// readDriverList reads a triage dump's list.
func (f *File) readDriverList() {
	t := f.tri
	if t == nil || t.drivers.off == 0 {
		return
	}
	l := f.hdr.triage.driver
	const stream = "DriverList"
	c := cursor.At(f.r, f.size, int64(t.drivers.off), int64(t.drivers.size)*int64(l.size), stream)
	n, err := c.Count(uint64(t.drivers.size), l.size)
	f.damageErr(err)
	pool := f.stringPool()
	bad := 0
	for range n {
		e := c.Sub(l.size)
		name := e.U32()
		m := dump.Module{Kernel: true}
		m.Base = fieldPointer(e, l.base, f.hdr.ptr)
		m.Size = uint64(field32(e, l.imageSize))
		m.CheckSum, m.TimeDateStamp = field32(e, l.checkSum), field32(e, l.timeStamp)
		if e.Err() != nil {
			break
		}
		path, ok := pool.text(name)
		if !ok {
			bad++
		}
		m.Path = path
		f.modules = append(f.modules, m)
	}
	if bad > 0 {
		f.damage(dump.Errorf(dump.OutOfRange, stream, "%d of %d drivers have no readable name", bad, n))
	}
}

func fieldPointer(c *cursor.Cursor, off, ptr int) uint64 { c.Seek(off); return c.Pointer(ptr) }
func field32(c *cursor.Cursor, off int) uint32           { c.Seek(off); return c.U32() }

// moduleAt returns the driver that holds va.
func (f *File) moduleAt(va uint64) *dump.Module {
	f.Modules()
	i := sort.Search(len(f.byBase), func(i int) bool { return f.byBase[i].Base > va })
	if i > 0 && f.byBase[i-1].Contains(va) {
		return f.byBase[i-1]
	}
	return nil
}

// kernelModule returns the kernel's own entry: the one at KDBG's KernBase, else
// the first.
func (f *File) kernelModule() *dump.Module {
	mods := f.Modules()
	if f.kd != nil {
		for i := range mods {
			if mods[i].Base == f.kd.kernBase {
				return &mods[i]
			}
		}
	}
	if len(mods) > 0 {
		return &mods[0]
	}
	return nil
}

// stringPool is the file's pool of DUMP_STRING: a length in characters and the
// UTF-16 text. Entries are named by their file offsets.
type stringPool struct {
	base  int64
	bytes []byte
	watch *watchedFile
}

// maxName bounds a name: paths of drivers have at most 32767 characters, real
// ones some dozens.
const maxName = 520

func (f *File) stringPool() stringPool {
	s := f.tri.strings
	var c *cursor.Cursor
	f.ahead(func() { c = cursor.At(f.r, f.size, int64(s.off), int64(s.size), "StringPool") })
	f.damageErr(c.Err())
	return stringPool{int64(s.off), c.Bytes(c.Len()), f.watched}
}

func (p stringPool) text(off uint32) (string, bool) {
	c := cursor.New(p.bytes, "StringPool", p.base)
	if int64(off) < p.base || int64(off)-p.base > int64(len(p.bytes)) {
		return "", false
	}
	c.Seek(int(int64(off) - p.base))
	n := c.U32()
	if n > maxName {
		return "", false
	}
	b := c.Bytes(2 * int(n))
	path := cursor.UTF16(b)
	if p.watch != nil && c.Err() == nil {
		const length = 4
		at, folder := int64(off)+length, 2*folderLength(path)
		p.watch.tell(UseStructure, 0, int64(off), length)
		p.watch.tell(UseFolder, 0, at, folder)
		p.watch.tell(UseStructure, 0, at+int64(folder), len(b)-folder)
	}
	return path, c.Err() == nil
}

// BrokenDriver returns the name of the driver that the kernel itself held
// responsible, "" when it named none.
func (f *File) BrokenDriver() string {
	if f.tri == nil || f.tri.brokenDriver == 0 {
		return ""
	}
	s, _ := f.stringPool().text(f.tri.brokenDriver)
	return s
}

// UnloadedModules implements dump.Source. Names are cut to 12 characters by the
// kernel.
func (f *File) UnloadedModules() []dump.Module {
	f.unloadedOnce.Do(f.readUnloaded)
	return f.unloaded
}

// maxUnloaded is generous: the kernel remembers 50.
const maxUnloaded = 4096

func (f *File) readUnloaded() {
	t := f.tri
	if f.full != nil {
		f.readUnloadedList()
	}
	if t == nil || t.unloaded == 0 {
		return
	}
	l := f.hdr.triage
	const stream = "UnloadedDrivers"
	var c *cursor.Cursor
	f.ahead(func() {
		c = cursor.At(f.r, f.size, int64(t.unloaded), int64(l.unloadedHead+maxUnloaded*l.unloadedSize), stream)
	})
	claimed := c.Pointer(f.hdr.ptr)
	n, err := c.Count(claimed, l.unloadedSize)
	f.damageErr(err)
	if w := f.watched; w != nil {
		w.tell(UseStructure, 0, int64(t.unloaded), l.unloadedHead+n*l.unloadedSize)
	}
	for range n {
		e := c.Sub(l.unloadedSize)
		length := int(e.U16())
		e.Seek(l.unloadedName)
		name := e.Bytes(min(length, 24))
		start, end := fieldPointer(e, l.unloadedStart, f.hdr.ptr), fieldPointer(e, l.unloadedEnd, f.hdr.ptr)
		if e.Err() != nil {
			f.damageErr(e.Err())
			return
		}
		if end < start {
			f.damage(dump.Errorf(dump.BadRecord, stream, "an entry ends at %#x before it begins at %#x", end, start))
			continue
		}
		f.unloaded = append(f.unloaded, dump.Module{Base: start, Size: end - start, Path: cursor.UTF16(name), Kernel: true, Unloaded: true})
	}
}

// mmSize is the size of the memory manager's block, version 1.
const mmSize = 0x50

// MemoryCounters returns the memory manager's block of a triage dump: its
// version and the 64-bit counters after the 8-byte head, whose names are not
// public. Nil when there is none.
func (f *File) MemoryCounters() (version uint32, counters []uint64) {
	if f.tri == nil || f.tri.mm == 0 {
		return 0, nil
	}
	c := cursor.At(f.r, f.size, int64(f.tri.mm), mmSize, "Mm")
	version, size := c.U32(), c.U32()
	for range (min(size, mmSize) - min(size, 8)) / 8 {
		if v := c.U64(); c.Err() == nil {
			counters = append(counters, v)
		}
	}
	return version, counters
}

// ntVersion returns the exact kernel version, "" when the kernel's time stamp
// and size are not in the table.
func (f *File) ntVersion() (version string, revision uint32) {
	m := f.kernelModule()
	if m == nil || m.Size > 0xffffffff {
		return "", 0
	}
	v, ok := lookupBuild(m.TimeDateStamp, uint32(m.Size))
	if !ok {
		return "", 0
	}
	return fmt.Sprintf("10.0.%d.%d", v.build, v.revision), uint32(v.revision)
}
