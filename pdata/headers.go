package pdata

import (
	"errors"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Data directory indexes (IMAGE_DIRECTORY_ENTRY_*).
const (
	dirExport    = 0
	dirException = 3
	dirDebug     = 6
	dirImports   = 12 // IMAGE_DIRECTORY_ENTRY_IAT
	numDirs      = 16

	dirLoadConfig = 10
)

const (
	headerStream = "PE headers"

	machineAMD64 = 0x8664

	fileDLL = 0x2000 // of Characteristics: a library

	magicPE32     = 0x10b
	magicPE32Plus = 0x20b

	dosHeaderSize   = 64
	coffHeaderSize  = 24 // with the "PE\0\0" signature before it
	optionalSize32  = 96 // IMAGE_OPTIONAL_HEADER32 up to its data directories
	optionalSize64  = 112
	sectionSize     = 40
	scnMemExecute   = 0x20000000
	firstHeaderRead = 1024    // holds the NT headers of any image a linker makes
	maxHeaderOffset = 1 << 20 // of e_lfanew; linkers write under 1 KiB
	maxSections     = 4096    // the loader takes 65535, linkers make under 100
	pageSize        = 4096    // unit of mapping
	sectorSize      = 0x200   // PointerToRawData is rounded down to it
)

// directory is an IMAGE_DATA_DIRECTORY.
type directory struct{ rva, size uint32 }

// sectionHeader is what is used of an IMAGE_SECTION_HEADER.
type sectionHeader struct {
	virtualSize, rva uint32
	rawSize, rawOff  uint32
	characteristics  uint32
}

// ntHeaders is what is used of IMAGE_NT_HEADERS32 or 64.
type ntHeaders struct {
	id               Identity
	sections         uint16 // as claimed
	symbolTable      bool   // there is a COFF symbol table
	optionalSize     uint16
	sectionAlignment uint32
	sizeOfHeaders    uint32
	entry            uint32 // AddressOfEntryPoint, 0 none
	library          bool   // IMAGE_FILE_DLL
	dirs             [numDirs]directory
}

// ntReader reads NT headers at off in the first bytes of an image.
type ntReader func(prefix []byte, off int64) (ntHeaders, error)

// headers is everything that opening an image reads.
type headers struct {
	ntHeaders
	table []sectionHeader
}

// locate reads the first bytes of an image and finds its NT headers.
func locate(r io.ReaderAt, size int64) (prefix *cursor.Cursor, off int64, err error) {
	c := cursor.At(r, size, 0, firstHeaderRead, headerStream)
	if m := c.U16(); c.Err() == nil && m != 0x5a4d {
		return nil, 0, &dump.Error{Code: dump.UnsupportedFormat, Stream: headerStream, Offset: 0, Size: 2, Msg: "not a PE image: no MZ signature"}
	}
	c.Skip(0x3c - 2)
	off = int64(c.U32())
	if c.Err() != nil {
		return nil, 0, c.Err()
	}
	if off < 4 || off > maxHeaderOffset {
		return nil, 0, &dump.Error{Code: dump.BadRecord, Stream: headerStream, Offset: 0x3c, Size: 4, Msg: "not a PE image: e_lfanew points nowhere"}
	}
	return c, off, nil
}

// readHeaders reads the NT headers with nt, and the section table.
func readHeaders(r io.ReaderAt, size int64, nt ntReader) (headers, error) {
	_, off, err := locate(r, size)
	if err != nil {
		return headers{}, err
	}
	c := cursor.At(r, size, 0, max(firstHeaderRead, off+coffHeaderSize+optionalSize64+8*numDirs), headerStream)
	prefix := c.Bytes(c.Len())
	if c.Err() != nil {
		return headers{}, c.Err()
	}
	h, err := nt(prefix, off)
	if err != nil {
		return headers{}, err
	}
	table, err := readSections(r, size, off+coffHeaderSize+int64(h.optionalSize), int(h.sections))
	return headers{h, table}, err
}

// parseNT reads NT headers without help: those of mapped images, and of files
// that the library refuses for reasons that do not matter here.
func parseNT(prefix []byte, off int64) (ntHeaders, error) {
	c := cursor.New(prefix, headerStream, 0)
	c.Seek(int(off))
	return parseNTCursor(c)
}

func parseNTCursor(c *cursor.Cursor) (h ntHeaders, err error) {
	if sig := c.U32(); c.Err() == nil && sig != 0x00004550 {
		c.Fail(dump.UnsupportedFormat, "not a PE image: no PE signature")
	}
	h.id.Machine = c.U16()
	h.sections = c.U16()
	h.id.TimeDateStamp = c.U32()
	h.symbolTable = c.U32() != 0
	c.Skip(4) // number of symbols
	h.optionalSize = c.U16()
	h.library = c.U16()&fileDLL != 0
	magic := c.U16()
	fixed := optionalSize64
	switch {
	case c.Err() != nil:
	case magic == magicPE32:
		fixed = optionalSize32
	case magic != magicPE32Plus:
		c.Fail(dump.UnsupportedFormat, "optional header magic %#x is neither PE32 nor PE32+", magic)
	}
	c.Skip(14) // the linker's version, sizes of code and data
	h.entry = c.U32()
	c.Skip(12) // up to ImageBase, which both forms end at offset 32
	h.sectionAlignment = c.U32()
	c.Skip(20) // FileAlignment and versions
	h.id.SizeOfImage = c.U32()
	h.sizeOfHeaders = c.U32()
	h.id.CheckSum = c.U32()
	if c.Err() != nil {
		return h, c.Err()
	}
	c.Skip(fixed - 68 - 4)
	n := directories(c.U32(), h.optionalSize, fixed)
	for i := range n {
		d := directory{c.U32(), c.U32()}
		if c.Err() == nil {
			h.dirs[i] = d
		}
	}
	return h, nil // an image without its directories still has an identity
}

// directories clamps NumberOfRvaAndSizes to what the optional header has room
// for: bytes past it are section headers.
func directories(claimed uint32, optionalSize uint16, fixed int) int {
	return int(min(claimed, numDirs, uint32(max(0, int(optionalSize)-fixed))/8))
}

func readSections(r io.ReaderAt, size, off int64, count int) ([]sectionHeader, error) {
	if count == 0 {
		return nil, &dump.Error{Code: dump.BadRecord, Stream: headerStream, Offset: off, Size: 0, Msg: "image has no sections"}
	}
	if count > maxSections {
		return nil, &dump.Error{Code: dump.Limit, Stream: headerStream, Offset: off, Size: int64(count) * sectionSize, Msg: "image has more sections than are read"}
	}
	c := cursor.At(r, size, off, int64(count)*sectionSize, headerStream)
	n, err := c.Count(uint64(count), sectionSize)
	if err != nil {
		return nil, err
	}
	table := make([]sectionHeader, n)
	for i := range table {
		c.Skip(8) // Name
		s := &table[i]
		s.virtualSize, s.rva, s.rawSize, s.rawOff = c.U32(), c.U32(), c.U32(), c.U32()
		c.Skip(12) // relocations and line numbers
		s.characteristics = c.U32()
	}
	return table, c.Err()
}

// ReadIdentity reads just the headers of a PE file: one read, or two when they
// lie behind the first KiB. It is for telling the wanted image among thousands.
func ReadIdentity(r io.ReaderAt, size int64) (Identity, error) {
	c, off, err := locate(r, size)
	if err != nil {
		return Identity{}, err
	}
	const need = coffHeaderSize + 68 // to the end of CheckSum
	if off+need > int64(c.Len()) {
		c = cursor.At(r, size, off, need, headerStream)
	} else {
		c.Seek(int(off))
	}
	h, err := parseNTCursor(c)
	return h.id, err
}

// withFile adds the name of the image to an error.
func withFile(err error, name string) error {
	var e *dump.Error
	if errors.As(err, &e) && e.File == "" {
		named := *e
		named.File = name
		return &named
	}
	return err
}
