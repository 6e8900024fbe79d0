package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/pdata"
	"dumptriage/symbols"
)

// The loader's inverted function table, which exception dispatch asks instead of
// the list of modules: images that were taken off that list, that a packer mapped
// itself, or that a damaged list of modules lacks are in it all the same. ntdll has the
// process's (KiUserInvertedFunctionTable, an export since Windows 8.1), the
// kernel its own (PsInvertedFunctionTable, not exported). The layout is that of
// public debugger extensions: a header {count, maximum, epoch, overflow} of four
// 32-bit words, then entries. It is believed only when it has the entry of the
// very image that it is in, equal to that image's headers.
const (
	invertedHeader     = 16
	invertedEntrySize  = 24
	maxInverted        = 4096 // entries; Windows makes room for 512 and 256
	maxInvertedBefore  = 16   // entries before the owner's, where the table is searched for
	maxInvertedScan    = 32 << 20
	invertedExport     = "KiUserInvertedFunctionTable"
	invertedScanChunk  = 64 << 10
	largestUnlisted    = 1 << 30
	unlistedModuleName = "unlisted_%x"
)

// invertedEntry is one entry: where an image and its function table are.
type invertedEntry struct {
	table, base     uint64
	size, tableSize uint32
}

func (e invertedEntry) end() uint64 { return e.base + uint64(e.size) }

// sound reports whether an entry can be one.
func (e invertedEntry) sound() bool {
	const page = 0xfff
	return e.base != 0 && e.base&page == 0 && e.size != 0 && e.size <= largestUnlisted && e.end() > e.base &&
		e.table >= e.base && e.table&3 == 0 && e.tableSize%tableEntrySize == 0 && e.tableSize <= e.size &&
		e.table-e.base <= uint64(e.size-e.tableSize)
}

// addUnlisted adds to the modules those that only the inverted function table
// knows, and reports whether there are any. It needs ntdll or the kernel in the
// dump's memory.
func (s *space) addUnlisted() bool {
	if s.arch != dump.AMD64 {
		return false
	}
	entries := s.invertedEntries()
	added := false
	for _, e := range entries {
		if s.overlaps(e) {
			continue
		}
		if m, im := s.unlisted(e); m != nil {
			s.mods = append(s.mods, m)
			s.images[m] = im
			added = true
		}
	}
	if added {
		s.index()
	}
	return added
}

// overlaps reports whether an entry's image lies, in whole or part, where a
// module is.
func (s *space) overlaps(e invertedEntry) bool {
	return slices.ContainsFunc(s.mods, func(m *Module) bool { return m.Base < e.end() && m.End() > e.base })
}

// unlisted makes the module of an entry, with the image in memory: by its own
// headers where they agree with the entry, else by the entry alone.
func (s *space) unlisted(e invertedEntry) (*Module, *pdata.Image) {
	name := fmt.Sprintf(unlistedModuleName, e.base)
	m := &Module{Module: &dump.Module{Base: e.base, Size: uint64(e.size), Path: name, Kernel: e.base>>63 != 0}, Unlisted: true, Image: symbols.ImageFromMemory}
	rva := uint32(e.table - e.base)
	im, err := pdata.OpenMapped(s.mem, e.base, name)
	if err == nil && im.Identity().SizeOfImage == e.size && im.HasFunctionTable() {
		if at, size := im.ExceptionDirectory(); at == rva && size == e.tableSize {
			m.TimeDateStamp, m.CheckSum, m.CodeView = im.Identity().TimeDateStamp, im.Identity().CheckSum, im.CodeView()
			m.Path = cmp.Or(im.ExportName(), m.Path)
			return m, im
		}
	}
	im, err = pdata.OpenHeaderless(s.mem, e.base, e.size, rva, e.tableSize, name)
	if err != nil {
		return nil, nil
	}
	return m, im
}

// invertedEntries reads the table of ntdll or of the kernel, sorted by base and
// without entries that cannot be or that overlap.
func (s *space) invertedEntries() []invertedEntry {
	owner, im := s.invertedOwner()
	if owner == nil {
		return nil
	}
	rva, size := im.ExceptionDirectory()
	own := invertedEntry{owner.Base + uint64(rva), owner.Base, im.Identity().SizeOfImage, size}
	entries := s.readInverted(s.invertedTable(owner, im, own), own)
	slices.SortFunc(entries, func(a, b invertedEntry) int { return cmp.Compare(a.base, b.base) })
	out := entries[:0]
	for _, e := range entries {
		if e.sound() && (len(out) == 0 || out[len(out)-1].end() <= e.base) {
			out = append(out, e)
		}
	}
	return out
}

// invertedOwner is the image whose data the table is in, when the dump's memory
// holds it: the kernel, else the 64-bit ntdll. Others are not asked for.
func (s *space) invertedOwner() (*Module, *pdata.Image) {
	for _, m := range s.mods {
		if !(m.Kernel && m.IsNT()) && !strings.EqualFold(m.Name(), "ntdll.dll") {
			continue
		}
		var magic [2]byte
		if _, _ = s.mem.ReadAt(magic[:], m.Base); string(magic[:]) != "MZ" {
			continue
		}
		if im := s.imageOf(m); im != nil && m.Image == symbols.ImageFromMemory && im.HasFunctionTable() {
			return m, im
		}
	}
	return nil, nil
}

// invertedTable finds the table's header: by the export, else by the owner's
// entry, which no other data of the image looks like. 0 when it is not there.
func (s *space) invertedTable(owner *Module, im *pdata.Image, own invertedEntry) uint64 {
	if rva, ok := exportRVA(im, invertedExport); ok {
		return owner.Base + uint64(rva)
	}
	size := min(owner.Size, maxInvertedScan)
	buf := make([]byte, invertedScanChunk+invertedEntrySize)
	for at := uint64(0); at < size; {
		want := min(uint64(len(buf)), size-at)
		n := s.peek(buf[:want], owner.Base+at)
		if va := s.invertedIn(buf[:n], owner.Base+at, own); va != 0 {
			return va
		}
		if at += invertedScanChunk; uint64(n) < want {
			at += uint64(n)&^0xfff + 0x1000 - invertedScanChunk // behind the page that is missing
		}
	}
	return 0
}

// invertedIn looks for the owner's entry in a piece of its memory, and returns
// where the header of its table is.
func (s *space) invertedIn(b []byte, va uint64, own invertedEntry) uint64 {
	c := cursor.New(b, "inverted function table", -1)
	for i := 0; i+invertedEntrySize <= len(b); i += 8 {
		// The whole entry: one of another size is not looked for in a table again.
		if c.Seek(i); own == (invertedEntry{c.U64(), c.U64(), c.U32(), c.U32()}) {
			if header := s.invertedBefore(va+uint64(i), own); header != 0 {
				s.usedFromPage(va+uint64(i), invertedEntrySize)
				return header
			}
		}
	}
	return 0
}

// invertedBefore finds the header of the table whose entry for its owner is at
// va; 0 when there is none.
func (s *space) invertedBefore(va uint64, own invertedEntry) uint64 {
	for range maxInvertedBefore {
		if va < own.base+invertedHeader {
			return 0
		}
		if header := va - invertedHeader; s.readInverted(header, own) != nil {
			return header
		}
		va -= invertedEntrySize
	}
	return 0
}

// readInverted reads the entries of the table whose header is at va; nil when
// there is no table with the owner's entry.
func (s *space) readInverted(va uint64, own invertedEntry) []invertedEntry {
	var head [invertedHeader]byte
	if n, _ := s.mem.ReadAt(head[:], va); va == 0 || n < len(head) {
		return nil
	}
	c := cursor.New(head[:], "inverted function table", -1)
	count, most := c.U32(), c.U32()
	if count == 0 || count > most || most > maxInverted {
		return nil
	}
	buf := make([]byte, count*invertedEntrySize)
	n, _ := s.mem.ReadAt(buf, va+invertedHeader)
	c = cursor.New(buf[:n], "inverted function table", -1)
	var entries []invertedEntry
	for c.Left() >= invertedEntrySize {
		entries = append(entries, invertedEntry{c.U64(), c.U64(), c.U32(), c.U32()})
	}
	if !slices.Contains(entries, own) {
		return nil
	}
	return entries
}
