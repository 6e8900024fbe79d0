package pdata

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"dumptriage/dump"
)

// Image is a PE image read by RVA, from a file or from dump memory. It is safe
// for concurrent use.
type Image struct {
	name   string
	h      headers
	layout layout
	file   io.ReaderAt // nil for a mapped image
	size   int64
	code   []codeRange // executable sections, ascending

	functions     functionTable
	functionsOnce sync.Once
	firstThere    bool // the first entry of the exception directory
	firstOnce     sync.Once

	arm64     arm64Table
	arm64Once sync.Once

	chpe       *hybrid // nil in images of one machine's code
	chpeErr    error   // what is wrong with its metadata
	hybridOnce sync.Once

	infos atomic.Pointer[infoCache]

	exports     exportIndex
	exportsOnce sync.Once

	codeView     dump.CodeView
	codeViewOnce sync.Once
}

type codeRange struct{ begin, end uint32 }

// Identity is what tells one build of an image from another. Two images with
// equal TimeDateStamp and SizeOfImage are the same for a symbol store.
type Identity struct {
	Machine       uint16 // IMAGE_FILE_MACHINE_*
	TimeDateStamp uint32 // seconds since 1970, or a hash of a reproducible build
	SizeOfImage   uint32 // bytes
	CheckSum      uint32 // 0 when the linker set none
}

// Key returns the identity's directory name in a symbol store: the time stamp
// as eight upper-case hex digits, then the size in lower case.
func (id Identity) Key() string { return fmt.Sprintf("%08X%x", id.TimeDateStamp, id.SizeOfImage) }

// OpenFile opens an image in file layout. Only its headers are read now. The
// name is for error messages.
func OpenFile(r io.ReaderAt, size int64, name string) (*Image, error) {
	h, err := readHeaders(r, size, fileNT)
	if err != nil {
		return nil, withFile(err, name)
	}
	im := newImage(h, name)
	im.layout = newFileLayout(r, size, &im.h)
	im.file, im.size = r, size
	return im, nil
}

// OpenMapped opens an image as it is mapped at base in a dump's memory. Its
// header page must be there; other pages may be missing.
func OpenMapped(mem dump.Memory, base uint64, name string) (*Image, error) {
	h, err := readHeaders(headerMemory{mem, base}, math.MaxInt64, parseNT)
	if err != nil {
		return nil, withFile(err, name)
	}
	im := newImage(h, name)
	im.layout = &mappedLayout{mem, base, h.id.SizeOfImage}
	return im, nil
}

func newImage(h headers, name string) *Image {
	im := &Image{name: name, h: h}
	for _, s := range h.table {
		if s.characteristics&scnMemExecute == 0 {
			continue
		}
		size := s.virtualSize
		if size == 0 {
			size = s.rawSize
		}
		end := min(uint64(s.rva)+roundUp(uint64(size), pageSize), math.MaxUint32)
		im.code = append(im.code, codeRange{s.rva, uint32(end)})
	}
	slices.SortStableFunc(im.code, func(a, b codeRange) int { return cmp.Compare(a.begin, b.begin) })
	return im
}

// Identity returns the image's identity.
func (im *Image) Identity() Identity { return im.h.id }

// File returns what an image file is read from, and its size; false for one in
// memory.
func (im *Image) File() (r io.ReaderAt, size int64, ok bool) { return im.file, im.size, im.file != nil }

// Directory returns a data directory (IMAGE_DIRECTORY_ENTRY_*) as the headers claim it:
// its RVA and its size in bytes, zeros where there is none.
func (im *Image) Directory(i int) (rva, size uint32) {
	if i < 0 || i >= numDirs {
		return 0, 0
	}
	return im.h.dirs[i].rva, im.h.dirs[i].size
}

// HasSymbolTable reports whether the headers tell of a COFF symbol table, as those
// of images with DWARF do. It lies in the file alone.
func (im *Image) HasSymbolTable() bool { return im.h.symbolTable }

// Name returns the name that the image was opened with.
func (im *Image) Name() string { return im.name }

// ReadRVA reads len(p) bytes at an RVA and returns how many there were. Bytes
// between a section's data and its virtual size read as zero. An error, a
// *dump.Error, comes with every short read.
func (im *Image) ReadRVA(p []byte, rva uint32) (int, error) {
	n, err := im.layout.read(p, rva)
	if err != nil {
		err = withFile(err, im.name)
	}
	return n, err
}

// Executable reports whether an RVA lies in an executable section.
func (im *Image) Executable(rva uint32) bool {
	_, ok := im.codeRange(rva)
	return ok
}

func (im *Image) codeRange(rva uint32) (codeRange, bool) {
	i := sort.Search(len(im.code), func(i int) bool { return im.code[i].end > rva })
	if i < len(im.code) && im.code[i].begin <= rva {
		return im.code[i], true
	}
	return codeRange{}, false
}
