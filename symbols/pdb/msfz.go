package pdb

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// The compressed container of recent Visual Studio, as Microsoft's "MSFZ Container
// Specification" (in the repository of pdb-rs) describes it: the same streams, cut
// into fragments that lie in the file as they are or in compressed chunks.

const (
	magicMSFZ = "Microsoft MSFZ Container\r\n\x1aALD\x00\x00"

	msfzHeader   = 80
	msfzChunk    = 20
	msfzFragment = 12

	compressionNone    = 0
	compressionZstd    = 1
	compressionDeflate = 2

	// What is unpacked must stand in a relation to what is there, so that a few bytes
	// do not become gigabytes. Real files shrink to a tenth at most; the bound is wider,
	// for streams of zeros shrink more.
	maxMSFZRatio = 64
	maxMSFZSmall = 16 << 20 // that any file may unfold to
	maxMSFZChunk = 256 << 20
	maxMSFZDir   = 256 << 20
	// Bytes of unpacked chunks that are kept. A larger chunk is kept alone, until
	// another one is needed: who reads it in pieces must not unpack it for each.
	maxMSFZCached = 16 << 20
)

// chunk is a part of the file that was compressed at once.
type chunk struct {
	off         int64
	compression uint32
	size        int64
	unpacked    int64
	start       int64 // of what it unfolds to, in all chunks put one behind the other
}

// fragment is a part of a stream.
type fragment struct {
	at     int64 // in the stream
	size   int64
	off    int64 // in the file, or in all chunks put one behind the other
	packed bool
}

// msfz is an open compressed container.
type msfz struct {
	r       io.ReaderAt
	size    int64
	chunks  []chunk
	streams [][]fragment // by number

	mu     sync.Mutex
	zstd   *zstd.Decoder
	kept   map[int][]byte
	weight int64
}

func openMSFZ(r io.ReaderAt, size int64) (*MSF, error) {
	c := cursor.At(r, size, 32, msfzHeader-32, "MSFZ")
	version, dirAt, chunksAt, streams := c.U64(), c.U64(), c.U64(), c.U32()
	dir := chunk{compression: c.U32(), size: int64(c.U32()), unpacked: int64(c.U32())}
	count, tableSize := c.U32(), int64(c.U32())
	if c.Err() != nil {
		return nil, c.Err()
	}
	if version != 0 {
		return nil, dump.Errorf(dump.UnsupportedFormat, "MSFZ", "is of version %d; 0 is known", version)
	}
	if int64(count)*msfzChunk > tableSize || chunksAt > uint64(size) || dirAt > uint64(size) {
		return nil, dump.Errorf(dump.BadCount, "MSFZ", "%d chunks in a table of %d bytes at %#x, the directory at %#x", count, tableSize, chunksAt, dirAt)
	}
	z := &msfz{r: r, size: size, kept: map[int][]byte{}}
	m := &MSF{r: r, size: size, zip: z, opened: map[int]*Stream{}, refused: map[int]error{}}
	if err := z.readChunks(int64(chunksAt), count); err != nil {
		return nil, err
	}
	dir.off = int64(dirAt)
	if dir.unpacked > maxMSFZDir || dir.unpacked > dir.size*maxMSFZRatio+maxMSFZSmall {
		return nil, dump.Errorf(dump.Limit, "MSFZ directory", "claims to unfold to %d bytes", dir.unpacked)
	}
	b, err := z.unpack(&dir)
	if err != nil {
		return nil, err
	}
	return m, z.readDirectory(m, b, streams)
}

func (z *msfz) readChunks(off int64, count uint32) error {
	c := cursor.At(z.r, z.size, off, int64(count)*msfzChunk, "MSFZ chunks")
	n, err := c.Count(uint64(count), msfzChunk)
	if err != nil {
		return err
	}
	z.chunks = make([]chunk, n)
	total, packed := int64(0), int64(0)
	for i := range z.chunks {
		at, compression, size, unpacked := c.U64(), c.U32(), int64(c.U32()), int64(c.U32())
		if at > uint64(z.size) || size > z.size-int64(at) {
			return &dump.Error{Code: dump.Truncated, Stream: "MSFZ chunks", Offset: z.size, Size: -1, Msg: fmt.Sprintf("chunk %d of %d bytes at %#x ends beyond the end of the file", i, size, at)}
		}
		if packed += size; packed > z.size { // each would be read again
			return dump.Errorf(dump.Limit, "MSFZ chunks", "%d chunks claim more bytes than the %d of the file", i+1, z.size)
		}
		z.chunks[i] = chunk{int64(at), compression, size, unpacked, total}
		total += unpacked
		if unpacked > maxMSFZChunk || total > z.size*maxMSFZRatio+maxMSFZSmall {
			return dump.Errorf(dump.Limit, "MSFZ chunks", "the file of %d bytes claims to unfold to more than %d", z.size, total)
		}
	}
	return c.Err()
}

// readDirectory reads the fragments of each stream.
func (z *msfz) readDirectory(m *MSF, b []byte, streams uint32) error {
	c := cursor.New(b, "MSFZ directory", -1)
	n, err := c.Count(uint64(streams), 4)
	if err != nil {
		return err
	}
	n = min(n, maxStreams)
	m.sizes, z.streams = make([]uint32, n), make([][]fragment, n)
	total := int64(0)
	for i := range m.sizes {
		size, err := z.readStream(c, i)
		if err != nil {
			return err
		}
		if m.sizes[i] = size; size != nilStream {
			total += int64(size)
		}
		if total > z.size*maxMSFZRatio+maxMSFZSmall { // as if each had bytes of its own, which those of real files have
			return dump.Errorf(dump.Limit, "MSFZ directory", "the streams of a file of %d bytes claim more than %d", z.size, total)
		}
	}
	return c.Err()
}

func (z *msfz) readStream(c *cursor.Cursor, i int) (uint32, error) {
	total := int64(0)
	for {
		size := c.U32()
		switch {
		case c.Err() != nil:
			return 0, c.Err()
		case size == 0:
			return uint32(total), nil
		case size == nilStream && total == 0:
			return nilStream, nil
		}
		f, err := z.fragment(int64(size), c.U64())
		if err != nil {
			return 0, err
		}
		f.at = total
		if total += f.size; total >= nilStream {
			return 0, dump.Errorf(dump.Limit, "MSFZ directory", "stream %d has more than 4 GiB", i)
		}
		z.streams[i] = append(z.streams[i], f)
	}
}

// fragment checks the place of one fragment.
func (z *msfz) fragment(size int64, location uint64) (fragment, error) {
	if location>>63 == 0 {
		off := int64(location & (1<<48 - 1))
		if off > z.size || size > z.size-off {
			return fragment{}, &dump.Error{Code: dump.Truncated, Stream: "MSFZ directory", Offset: z.size, Size: -1,
				Msg: fmt.Sprintf("a fragment of %d bytes at %#x ends beyond the end of the file", size, off)}
		}
		return fragment{size: size, off: off}, nil
	}
	first, in := location>>32&(1<<31-1), int64(location&(1<<32-1))
	if first >= uint64(len(z.chunks)) {
		return fragment{}, dump.Errorf(dump.OutOfRange, "MSFZ directory", "a fragment in chunk %d of %d", first, len(z.chunks))
	}
	last := z.chunks[len(z.chunks)-1]
	off := z.chunks[first].start + in
	if size > last.start+last.unpacked-off {
		return fragment{}, dump.Errorf(dump.OutOfRange, "MSFZ directory", "a fragment of %d bytes at %#x of chunk %d ends beyond the chunks", size, in, first)
	}
	return fragment{size: size, off: off, packed: true}, nil
}

// msfzStream is one stream.
type msfzStream struct {
	z         *msfz
	name      string
	fragments []fragment
}

// ReadAt reads what lies in the stream; the caller keeps to its size.
func (s msfzStream) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(s.fragments), func(i int) bool { return s.fragments[i].at+s.fragments[i].size > off })
	done := 0
	for ; done < len(p) && i < len(s.fragments); i++ {
		f := &s.fragments[i]
		in := off + int64(done) - f.at
		part := p[done : done+int(min(int64(len(p)-done), f.size-in))]
		var n int
		var err error
		if f.packed {
			n, err = s.z.readPacked(part, f.off+in)
		} else {
			n, err = s.z.r.ReadAt(part, f.off+in)
		}
		done += n
		if n < len(part) {
			return done, readFailed(s.name, f.off+in, len(part), err)
		}
	}
	return done, nil
}

func readFailed(stream string, off int64, size int, err error) error {
	if e, ok := errors.AsType[*dump.Error](err); ok {
		return e
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &dump.Error{Code: dump.Truncated, Stream: stream, Offset: off, Size: int64(size), Msg: "the file ends inside the stream"}
	}
	return &dump.Error{Code: dump.IO, Stream: stream, Offset: off, Size: int64(size), Msg: "cannot be read", Err: err}
}

// readPacked reads from the chunks put one behind the other.
func (z *msfz) readPacked(p []byte, off int64) (int, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	i := sort.Search(len(z.chunks), func(i int) bool { return z.chunks[i].start+z.chunks[i].unpacked > off })
	done := 0
	for ; done < len(p) && i < len(z.chunks); i++ {
		b, err := z.chunk(i)
		if err != nil {
			return done, err
		}
		c := cursor.New(b, "MSFZ chunk", -1)
		c.Seek(int(off + int64(done) - z.chunks[i].start))
		done += copy(p[done:], c.Bytes(c.Left()))
	}
	return done, nil
}

// chunk unpacks a chunk, or takes it from those kept.
func (z *msfz) chunk(i int) ([]byte, error) {
	if b, ok := z.kept[i]; ok {
		return b, nil
	}
	b, err := z.unpack(&z.chunks[i])
	if err != nil {
		return nil, err
	}
	if z.weight += int64(len(b)); z.weight > maxMSFZCached {
		clear(z.kept)
		z.weight = int64(len(b))
	}
	z.kept[i] = b
	return b, nil
}

// unpack gives exactly the bytes that a chunk claims, or an error.
func (z *msfz) unpack(k *chunk) (out []byte, err error) {
	c := cursor.At(z.r, z.size, k.off, k.size, "MSFZ chunk")
	b := c.Bytes(int(k.size))
	if c.Err() != nil {
		return nil, c.Err()
	}
	switch k.compression {
	case compressionNone:
		out = b
	case compressionZstd:
		out, err = z.unzstd(b, int(k.unpacked))
	case compressionDeflate:
		out, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), k.unpacked+1))
	default:
		return nil, dump.Errorf(dump.UnsupportedFormat, "MSFZ chunk", "compression %d is not known", k.compression)
	}
	if err == nil && int64(len(out)) != k.unpacked {
		err = fmt.Errorf("unfolds to %d bytes, not %d", len(out), k.unpacked)
	}
	if err != nil {
		return nil, &dump.Error{Code: dump.BadRecord, Stream: "MSFZ chunk", Offset: k.off, Size: k.size, Msg: "cannot be unpacked", Err: err}
	}
	return out, nil
}

func (z *msfz) unzstd(b []byte, size int) ([]byte, error) {
	if z.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
		z.zstd = d
	}
	return z.zstd.DecodeAll(b, make([]byte, 0, size))
}
