package metadata

import (
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/pdata"
)

const (
	corStream   = "CLR header"
	dirCLR      = 14 // IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR
	corSize     = 72
	maxMetadata = 1 << 28 // bytes; the largest known have some 20 MiB
)

// Directory is an RVA and a size in bytes; both 0 where there is none.
type Directory struct{ RVA, Size uint32 }

// CLRHeader is what is used of an IMAGE_COR20_HEADER (II.25.3.3).
type CLRHeader struct {
	RuntimeVersion [2]uint16 // major, minor
	MetaData       Directory
	Flags          uint32    // COMIMAGE_FLAGS_*
	EntryPoint     uint32    // token or RVA
	ManagedNative  Directory // code compiled ahead of time (ReadyToRun, NGEN)
}

// ReadCLRHeader reads the CLR header of an image. An image that has none is not a
// .NET one; the error's code is UnsupportedFormat then.
func ReadCLRHeader(im *pdata.Image) (h CLRHeader, err error) {
	rva, size := im.Directory(dirCLR)
	if rva == 0 {
		return h, dump.Errorf(dump.UnsupportedFormat, corStream, "image has no CLR header: it is not a .NET assembly")
	}
	return readCLRHeader(im, Directory{rva, size})
}

func readCLRHeader(im *pdata.Image, at Directory) (h CLRHeader, err error) {
	b := make([]byte, corSize)
	if _, err := im.ReadRVA(b, at.RVA); err != nil {
		return h, err
	}
	c := cursor.New(b, corStream, -1)
	if cb := c.U32(); cb < corSize || at.Size < corSize {
		c.Fail(dump.BadRecord, "header of %d bytes in a directory of %d", cb, at.Size)
	}
	h.RuntimeVersion = [2]uint16{c.U16(), c.U16()}
	h.MetaData = Directory{c.U32(), c.U32()}
	h.Flags, h.EntryPoint = c.U32(), c.U32()
	c.Skip(40) // resources, strong name, code manager, fixups, jumps
	h.ManagedNative = Directory{c.U32(), c.U32()}
	return h, c.Err()
}

// FindInImage opens the metadata of a .NET image, of a file or mapped in memory. An
// assembly that lies in memory as it does in its file, as those of a single-file
// program do, is opened by pdata.OpenFile over Memory first.
func FindInImage(im *pdata.Image) (*Metadata, error) {
	h, err := ReadCLRHeader(im)
	if err != nil {
		return nil, err
	}
	return openHeader(im, h)
}

// FindAt is FindInImage for an assembly within a composite image: its CLR header is at d.
func FindAt(im *pdata.Image, d Directory) (*Metadata, error) {
	h, err := readCLRHeader(im, d)
	if err != nil {
		return nil, err
	}
	return openHeader(im, h)
}

func openHeader(im *pdata.Image, h CLRHeader) (*Metadata, error) {
	if h.MetaData.RVA == 0 || h.MetaData.Size > maxMetadata {
		return nil, dump.Errorf(dump.BadRecord, corStream, "metadata of %d bytes at RVA %#x", h.MetaData.Size, h.MetaData.RVA)
	}
	return Open(InImage(im, h.MetaData), int64(h.MetaData.Size))
}

// InImage reads a directory of an image as if it were a file.
func InImage(im *pdata.Image, d Directory) io.ReaderAt { return imageReader{im, d} }

// Watched is asked by chunk.Reader.
func (r imageReader) Watched() bool { return r.im.Watched() }

type imageReader struct {
	im *pdata.Image
	d  Directory
}

func (r imageReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(r.d.Size) {
		return 0, io.EOF
	}
	whole := len(p)
	p = p[:min(int64(whole), int64(r.d.Size)-off)]
	at := int64(r.d.RVA) + off
	if at+int64(len(p)) > 1<<32 {
		return 0, dump.Errorf(dump.OutOfRange, "image", "RVA %#x lies beyond 4 GiB", at)
	}
	n, err := r.im.ReadRVA(p, uint32(at))
	if err == nil && n < whole {
		err = io.EOF
	}
	return n, err
}

// Memory reads memory from base on as if it were a file of size bytes: metadata, or an
// assembly that lies there as in its file.
func Memory(mem dump.Memory, base uint64, size int64) io.ReaderAt {
	return watchedMemory{io.NewSectionReader(memoryReader{mem, base}, 0, size), mem}
}

// watchedMemory tells chunk.Reader whether bytes read ahead would count as used.
type watchedMemory struct {
	io.ReaderAt
	mem dump.Memory
}

func (r watchedMemory) Watched() bool { return dump.WatcherOf(r.mem) != nil }

type memoryReader struct {
	mem  dump.Memory
	base uint64
}

func (r memoryReader) ReadAt(p []byte, off int64) (int, error) {
	va := r.base + uint64(off)
	if off < 0 || va < r.base {
		return 0, io.EOF
	}
	return r.mem.ReadAt(p, va)
}
