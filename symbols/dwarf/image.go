package dwarf

import (
	"io"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Limits of the headers.
const (
	maxHeaderOffset = 1 << 20 // of e_lfanew
	maxSections     = 4096
	maxSectionName  = 64
	coffHeaderSize  = 24 // with the signature
	sectionSize     = 40
	symbolSize      = 18

	scnMemExecute = 0x20000000
	machineI386   = 0x14c
)

// image is what is used of a PE file's headers.
type image struct {
	r        io.ReaderAt
	size     int64
	machine  uint16
	base     uint64 // preferred; addresses in DWARF count from 0
	sections []peSection
	symbols  int64 // offset of the COFF symbol table
	count    int64 // of its records, as far as the file goes
}

// peSection is one section header.
type peSection struct {
	name       string
	rva, vsize uint32
	off, size  int64 // in the file; size is clamped to it
	executable bool
}

func openImage(r io.ReaderAt, size int64) (*image, error) {
	const stream = "PE headers"
	c := cursor.At(r, size, 0, 64, stream)
	if m := c.U16(); c.Err() == nil && m != 0x5a4d {
		return nil, dump.Errorf(dump.UnsupportedFormat, stream, "not a PE image: no MZ signature")
	}
	c.Seek(0x3c)
	off := int64(c.U32())
	if c.Err() == nil && off > maxHeaderOffset {
		c.Fail(dump.BadRecord, "not a PE image: e_lfanew points nowhere")
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	c = cursor.At(r, size, off, coffHeaderSize+32, stream)
	if sig := c.U32(); c.Err() == nil && sig != 0x4550 {
		c.Fail(dump.UnsupportedFormat, "not a PE image: no PE signature")
	}
	im := &image{r: r, size: size, machine: c.U16()}
	sections := int(c.U16())
	c.Skip(4) // TimeDateStamp
	im.symbols, im.count = int64(c.U32()), int64(c.U32())
	optional := int64(c.U16())
	c.Skip(2) // Characteristics
	switch magic := c.U16(); magic {
	case 0x10b:
		c.Skip(26)
		im.base = uint64(c.U32())
	case 0x20b:
		c.Skip(22)
		im.base = c.U64()
	default:
		c.Fail(dump.UnsupportedFormat, "optional header magic %#x is neither PE32 nor PE32+", magic)
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	im.count = max(0, min(im.count, (size-im.symbols)/symbolSize))
	if im.symbols == 0 {
		im.count = 0
	}
	return im, im.readSections(off+coffHeaderSize+optional, min(sections, maxSections))
}

func (im *image) readSections(off int64, count int) error {
	c := cursor.At(im.r, im.size, off, int64(count)*sectionSize, "section table")
	n, err := c.Count(uint64(count), sectionSize)
	if err != nil {
		return err
	}
	im.sections = make([]peSection, n)
	for i := range im.sections {
		s := &im.sections[i]
		s.name = im.sectionName(cursor.CString(c.Bytes(8)))
		s.vsize, s.rva = c.U32(), c.U32()
		raw := int64(c.U32())
		s.off = int64(c.U32())
		c.Skip(12)
		s.executable = c.U32()&scnMemExecute != 0
		if s.vsize != 0 {
			raw = min(raw, int64(s.vsize)) // the rest is filling
		}
		if s.off != 0 {
			s.size = max(0, min(raw, im.size-s.off))
		}
	}
	return c.Err()
}

// sectionName follows a name of more than eight characters into the string table:
// "/4" is at decimal offset 4, "//AAAAAE" at that offset in base 64.
func (im *image) sectionName(name string) string {
	digits, long := strings.CutPrefix(name, "/")
	if !long {
		return name
	}
	if b64, ok := strings.CutPrefix(digits, "/"); ok {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		n := int64(0)
		for _, r := range b64 {
			n = n<<6 | int64(max(0, strings.IndexRune(alphabet, r)))
		}
		return im.longName(n, maxSectionName)
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return name
	}
	return im.longName(int64(n), maxSectionName)
}

// longName reads a name of the COFF string table, at most limit bytes of it.
func (im *image) longName(at int64, limit int64) string {
	if im.symbols == 0 || at < 4 {
		return ""
	}
	c := cursor.At(im.r, im.size, im.symbols+im.count*symbolSize+at, limit, "string table")
	return cursor.CString(c.Bytes(c.Left()))
}

// find returns the section of a name, nil when there is none.
func (im *image) find(name string) *peSection {
	for i := range im.sections {
		if im.sections[i].name == name {
			return &im.sections[i]
		}
	}
	return nil
}
