package pdb

import (
	"fmt"
	"io"
	"math"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// MSF is the container of a PDB: a file of equal blocks that hold numbered
// streams, or one whose streams are compressed.
type MSF struct {
	zip       *msfz // of a compressed container, else nil
	r         io.ReaderAt
	size      int64
	blockSize int64
	blocks    uint32 // blocks that lie in the file, at least in part
	truncated *dump.Error

	dir     []byte // the directory's bytes: count, sizes, block lists
	sizes   []uint32
	lists   []int // where each stream's block list begins in dir
	mu      sync.Mutex
	opened  map[int]*Stream
	refused map[int]error
}

// Limits of the container. Streams are numbered with 16 bits everywhere in a
// PDB; the directory may list more, which nothing can refer to.
const (
	minBlockSize = 512
	maxBlockSize = 1 << 16
	maxStreams   = 1 << 16
	superblock   = 32 // where the superblock's fields begin, after the magic
)

// nilStream is the size of a stream that does not exist.
const nilStream = 0xFFFFFFFF

// OpenMSF reads the superblock and the directory of an MSF 7.00 or MSFZ file.
// Errors are *dump.Error.
func OpenMSF(r io.ReaderAt, size int64) (*MSF, error) {
	format, err := checkFormat(r, size)
	if err != nil {
		return nil, err
	}
	if format == FormatMSFZ {
		return openMSFZ(r, size)
	}
	c := cursor.At(r, size, superblock, 6*4, "MSF")
	blockSize, _, blocks, dirBytes := c.U32(), c.U32(), c.U32(), c.U32()
	if err := c.Err(); err != nil {
		return nil, err
	}
	if blockSize < minBlockSize || blockSize > maxBlockSize || blockSize&(blockSize-1) != 0 {
		return nil, &dump.Error{Code: dump.BadRecord, Stream: "MSF", Offset: superblock, Size: 4,
			Msg: fmt.Sprintf("block size %d is not a power of two from %d to %d", blockSize, minBlockSize, maxBlockSize)}
	}
	m := &MSF{r: r, size: size, blockSize: int64(blockSize), blocks: blocks, opened: map[int]*Stream{}, refused: map[int]error{}}
	if want := int64(blocks) * m.blockSize; want > size {
		m.blocks = uint32((size + m.blockSize - 1) / m.blockSize)
		m.truncated = &dump.Error{Code: dump.Truncated, Stream: "MSF", Offset: size, Size: want - size,
			Msg: fmt.Sprintf("the file ends early: it claims %d blocks of %d bytes", blocks, blockSize)}
	}
	if err := m.readDirectory(dirBytes); err != nil {
		if m.truncated != nil {
			return nil, &dump.Error{Code: dump.Truncated, Stream: "MSF", Offset: size, Size: m.truncated.Size, Msg: m.truncated.Msg, Err: err}
		}
		return nil, err
	}
	return m, nil
}

// readDirectory follows the superblock's list of pages that list the blocks of
// the directory.
func (m *MSF) readDirectory(dirBytes uint32) error {
	const listAt = superblock + 5*4
	n := (int64(dirBytes) + m.blockSize - 1) / m.blockSize
	if n > int64(m.blocks) {
		return &dump.Error{Code: dump.BadCount, Stream: "MSF directory", Offset: superblock + 12, Size: 4,
			Msg: fmt.Sprintf("claims %d bytes, the file has %d blocks of %d", dirBytes, m.blocks, m.blockSize)}
	}
	mapBytes := n * 4
	pages := (mapBytes + m.blockSize - 1) / m.blockSize
	if listAt+pages*4 > m.blockSize {
		return &dump.Error{Code: dump.BadCount, Stream: "MSF directory", Offset: superblock + 12, Size: 4,
			Msg: fmt.Sprintf("its %d bytes need more block map pages than a superblock lists", dirBytes)}
	}
	list := cursor.At(m.r, m.size, listAt, pages*4, "MSF directory")
	pageBytes := list.Bytes(int(pages * 4))
	if err := list.Err(); err != nil {
		return err
	}
	blockMap, err := m.newStream("MSF block map", pageBytes, mapBytes)
	if err != nil {
		return err
	}
	mapped, err := blockMap.all()
	if err != nil {
		return err
	}
	dir, err := m.newStream("MSF directory", mapped, int64(dirBytes))
	if err != nil {
		return err
	}
	if m.dir, err = dir.all(); err != nil {
		return err
	}
	return m.indexDirectory()
}

// indexDirectory notes the size of each stream and where its block list begins.
func (m *MSF) indexDirectory() error {
	c := cursor.New(m.dir, "MSF directory", -1)
	n, err := c.Count(uint64(c.U32()), 4)
	if c.Err() != nil {
		return c.Err()
	}
	if err != nil {
		return err
	}
	n = min(n, maxStreams)
	total := int(cursor.New(m.dir, "", -1).U32())
	m.sizes = make([]uint32, n)
	for i := range m.sizes {
		m.sizes[i] = c.U32()
	}
	at := int64(4 + 4*total)
	m.lists = make([]int, n)
	for i, size := range m.sizes {
		m.lists[i] = int(min(at, math.MaxInt32))
		if size != nilStream {
			at += (int64(size) + m.blockSize - 1) / m.blockSize * 4
		}
	}
	return c.Err()
}

// Streams returns the number of streams.
func (m *MSF) Streams() int { return len(m.sizes) }

// BlockSize returns the size of a block in bytes, 0 of a compressed container.
func (m *MSF) BlockSize() int { return int(m.blockSize) }

// StreamSize returns the size that the directory claims for a stream, in bytes,
// and false when there is no such stream.
func (m *MSF) StreamSize(i int) (uint32, bool) {
	if i < 0 || i >= len(m.sizes) || m.sizes[i] == nilStream {
		return 0, false
	}
	return m.sizes[i], true
}

// Stream opens a stream by number. Its list of blocks is checked now: blocks
// outside the file, blocks listed twice and sizes beyond the file are refused.
func (m *MSF) Stream(i int) (*Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.opened[i]; s != nil {
		return s, nil
	}
	if err := m.refused[i]; err != nil {
		return nil, err
	}
	s, err := m.openStream(i)
	if err != nil {
		m.refused[i] = err
		return nil, err
	}
	m.opened[i] = s
	return s, nil
}

func (m *MSF) openStream(i int) (*Stream, error) {
	name := fmt.Sprintf("stream %d", i)
	size, ok := m.StreamSize(i)
	if !ok {
		return nil, dump.Errorf(dump.OutOfRange, name, "does not exist (the file has %d streams)", len(m.sizes))
	}
	if m.zip != nil {
		return &Stream{name: name, size: int64(size), r: msfzStream{m.zip, name, m.zip.streams[i]}}, nil
	}
	c := cursor.New(m.dir, "MSF directory", -1)
	c.Seek(m.lists[i])
	n := (int64(size) + m.blockSize - 1) / m.blockSize
	if n > int64(m.blocks) {
		return nil, dump.Errorf(dump.BadCount, name, "claims %d bytes, the file has %d blocks of %d", size, m.blocks, m.blockSize)
	}
	list := c.Bytes(int(n) * 4)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return m.newStream(name, list, int64(size))
}

// newStream checks a list of block numbers.
func (m *MSF) newStream(name string, list []byte, size int64) (*Stream, error) {
	seen := make([]uint64, m.blocks/64+1)
	c := cursor.New(list, name, -1)
	for k := range len(list) / 4 {
		b := c.U32()
		if b == 0 || b >= m.blocks {
			code := dump.OutOfRange
			if m.truncated != nil && b != 0 {
				code = dump.Truncated
			}
			return nil, dump.Errorf(code, name, "its block %d is block %d of the file, which has %d", k, b, m.blocks)
		}
		if seen[b/64]>>(b%64)&1 != 0 {
			return nil, dump.Errorf(dump.Cycle, name, "lists block %d twice", b)
		}
		seen[b/64] |= 1 << (b % 64)
	}
	return &Stream{name: name, size: size, r: blocks{m, name, list}}, nil
}
