package pdb

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Section is a section header of the image.
type Section struct {
	Name            string
	RVA             uint32
	VirtualSize     uint32
	RawSize         uint32
	Characteristics uint32
}

const (
	sectionHeaderSize = 40
	maxSections       = 1 << 16 // a symbol names its section with 16 bits
)

// Sections returns the section headers of the image as it is loaded.
func (f *File) Sections() []Section { return slices.Clone(f.final) }

func (f *File) readSections() {
	f.final = f.sectionStream(debugSections)
	f.sections = f.final
	if s := f.sectionStream(debugSectionsOriginal); len(s) > 0 {
		f.sections = s
	}
	if len(f.sections) == 0 && f.info.HasDBI {
		f.note(dump.Errorf(dump.BadRecord, "DBI", "has no section headers: symbols have no addresses"))
	}
}

func (f *File) sectionStream(i int) []Section {
	s := f.debugStream(i)
	if s == nil {
		return nil
	}
	c, err := s.cursor(0, min(s.size, maxSections*sectionHeaderSize), "section headers")
	if err != nil {
		f.note(err)
		return nil
	}
	out := make([]Section, c.Left()/sectionHeaderSize)
	for i := range out {
		s := &out[i]
		s.Name = cursor.CString(c.Bytes(8))
		s.VirtualSize, s.RVA, s.RawSize = c.U32(), c.U32(), c.U32()
		c.Skip(12)
		c.U32()
		s.Characteristics = c.U32()
	}
	return out
}

// sourceRVA turns a section number (from 1) and an offset into an address of
// the image as linked. It fails for sections that do not exist, such as that of
// absolute symbols.
func (f *File) sourceRVA(section uint16, offset uint32) (uint32, bool) {
	if section == 0 || int(section) > len(f.sections) {
		return 0, false
	}
	base := f.sections[section-1].RVA
	return base + offset, base+offset >= base
}

// sectionOf turns an address of the image as linked into a section number and
// an offset.
func (f *File) sectionOf(rva uint32) (section uint16, offset uint32, ok bool) {
	for i, s := range f.sections {
		if rva >= s.RVA && rva-s.RVA < max(s.VirtualSize, s.RawSize) {
			return uint16(i + 1), rva - s.RVA, true
		}
	}
	return 0, 0, false
}
