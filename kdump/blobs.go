package kdump

import (
	"bytes"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Blob is one record of secondary data: what drivers' bugcheck callbacks added
// to the dump.
type Blob struct {
	GUID   [16]byte // in file order
	Offset int64    // of the data
	Size   int64
}

const (
	blobMagic   = "DumpBlob"
	blobHeader  = 0x20 // size of each record's header
	blobStream  = "DumpBlob"
	maxBlobs    = 65536
	blobHeadLen = 16
)

// Blobs returns the secondary data records in file order. A record may be empty
// and its GUID zero.
func (f *File) Blobs() []Blob {
	f.blobsOnce.Do(f.readBlobs)
	return f.blobs
}

// blobsAt returns where secondary data may begin: behind what a triage dump's header
// counts, or behind the pages of a full dump. The latter is believed, not measured, so
// that they are looked for.
func (f *File) blobsAt() (start int64, ok bool) {
	switch {
	case f.tri != nil && f.tri.sizeOfDump != 0:
		start = int64(f.tri.sizeOfDump)
	case f.full != nil && f.full.phys != nil:
		start = f.findBlobs(pageOffset(f.full.phys.pages.first(), f.full.phys.Pages()))
	}
	return start, start > 0 && start < f.size
}

// blobSearch bounds what is searched behind the pages: writers align what they write to
// a page at most.
const blobSearch = 2 * pageSize

// findBlobs searches for the head of secondary data from an offset in the file on; 0
// when there is none.
func (f *File) findBlobs(from int64) int64 {
	if from >= f.size {
		return 0
	}
	c := cursor.At(f.r, f.size, from, min(blobSearch, f.size-from), blobStream)
	b := c.Bytes(int(min(blobSearch, f.size-from)))
	const align = 8
	for i := 0; i+blobHeadLen <= len(b); i += align {
		if bytes.HasPrefix(b[i:], []byte(blobMagic)) {
			return from + int64(i)
		}
	}
	return 0
}

func (f *File) readBlobs() {
	start, ok := f.blobsAt()
	if !ok {
		return
	}
	head := cursor.At(f.r, f.size, start, blobHeadLen, blobStream)
	magic, size := head.Bytes(8), head.U32()
	if !bytes.Equal(magic, []byte(blobMagic)) || head.Err() != nil {
		return
	}
	f.blobStart = start
	// Records are read one header at a time: their data may be large.
	for off := start + int64(size); off < f.size && len(f.blobs) < maxBlobs; {
		c := cursor.At(f.r, f.size, off, blobHeader, blobStream)
		if c.U32() != blobHeader {
			return // the list ends with zeros or with the file
		}
		var b Blob
		copy(b.GUID[:], c.Bytes(16))
		length, before, after := int64(c.U32()), int64(c.U32()), int64(c.U32())
		b.Offset, b.Size = off+blobHeader+before, length
		if c.Err() != nil || b.Offset+length > f.size {
			f.damage(&dump.Error{Code: dump.Truncated, Stream: blobStream, Offset: off, Size: length,
				Msg: "a record runs beyond the end of the file"})
			return
		}
		f.blobs = append(f.blobs, b)
		off = b.Offset + length + after
	}
}
