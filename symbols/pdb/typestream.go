package pdb

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	streamTPI        = 2
	streamIPI        = 4
	typeHeaderSize   = 56
	typeHeaderLeast  = 20 // up to the size of the records
	indexEntrySize   = 8
	typeChunk        = 64 << 10  // bytes read at a time when scanning
	indexEvery       = 8 << 10   // bytes between entries of an index that we make
	maxIndexBytes    = 256 << 10 // most bytes between entries of the file's index
	maxIndexIDs      = 8 << 10
	cachedTypeChunks = 64
)

// typeKind is the kind of a type record (cvinfo.h, LF_*).
type typeKind uint16

// typeStream finds type records by number. A sparse index gives a place at or
// before the record; records are walked from there.
type typeStream struct {
	s          *Stream
	begin, end uint32 // type numbers: [begin, end)
	records    part
	index      []typeIndexEntry

	mu     sync.Mutex
	chunks map[int][]byte // parts of the stream by number of index entry
}

type typeIndexEntry struct{ id, offset uint32 }

// openTypes opens the TPI or IPI stream. An empty one answers nothing.
func (f *File) openTypes(number int, what string) *typeStream {
	t := &typeStream{chunks: map[int][]byte{}}
	if size, ok := f.msf.StreamSize(number); !ok || size == 0 {
		return t
	}
	s, err := f.msf.Stream(number)
	if err != nil {
		f.note(err)
		return t
	}
	f.note(t.open(f, s, what))
	return t
}

func (t *typeStream) open(f *File, s *Stream, what string) error {
	c, err := s.cursor(0, min(s.size, typeHeaderSize), what)
	if err != nil {
		return err
	}
	c.U32() // version
	header, begin, end, size := c.U32(), c.U32(), c.U32(), c.U32()
	if err := c.Err(); err != nil {
		return err
	}
	if int64(header) < typeHeaderLeast || int64(header) > s.size || end < begin {
		return dump.Errorf(dump.BadRecord, what, "header of %d bytes, types %#x to %#x", header, begin, end)
	}
	t.s, t.begin, t.end = s, begin, end
	t.records = part{int64(header), min(int64(size), s.size-int64(header))}
	if t.records.size < int64(size) {
		f.note(dump.Errorf(dump.Truncated, what, "claims %d bytes of records, %d are there", size, t.records.size))
	}
	hash := c.U16()
	c.Skip(2 + 4 + 4 + 8)
	off, length := c.U32(), c.U32()
	if c.Err() == nil && hash != noStream {
		err = t.readIndex(f, int(hash), int64(off), int64(length))
	}
	if len(t.index) == 0 {
		t.makeIndex()
	}
	return err
}

// readIndex reads the pairs of type number and offset from the hash stream.
func (t *typeStream) readIndex(f *File, stream int, off, size int64) error {
	s, err := f.msf.Stream(stream)
	if err != nil {
		return err
	}
	c, err := s.cursor(off, size, "type index")
	if err != nil {
		return err
	}
	index := make([]typeIndexEntry, c.Left()/indexEntrySize)
	for i := range index {
		index[i] = typeIndexEntry{c.U32(), c.U32()}
		e := index[i]
		if i > 0 && (e.id <= index[i-1].id || e.offset <= index[i-1].offset) || int64(e.offset) >= t.records.size {
			return dump.Errorf(dump.BadRecord, "type index", "entry %d is not in order", i)
		}
	}
	if len(index) > 0 && (index[0].id != t.begin || index[0].offset != 0) {
		return dump.Errorf(dump.BadRecord, "type index", "does not begin at the first type")
	}
	if !t.dense(index) {
		return dump.Errorf(dump.BadRecord, "type index", "is too sparse to be used")
	}
	t.index = index
	return nil
}

// dense reports whether an index bounds the walk to a record: linkers write an
// entry every 8 KB.
func (t *typeStream) dense(index []typeIndexEntry) bool {
	id, offset := t.begin, int64(0)
	for _, e := range append(index[:len(index):len(index)], typeIndexEntry{t.end, uint32(t.records.size)}) {
		if e.id-id > maxIndexIDs || int64(e.offset)-offset > maxIndexBytes {
			return false
		}
		id, offset = e.id, int64(e.offset)
	}
	return true
}

// makeIndex walks all records where the file has no index.
func (t *typeStream) makeIndex() {
	next := uint32(0)
	t.scan(func(id uint32, off int64, _ typeKind, _ *cursor.Cursor) bool {
		if rel := uint32(off - t.records.off); rel >= next {
			t.index = append(t.index, typeIndexEntry{id, rel})
			next = rel + indexEvery
		}
		return true
	})
}

// scan calls yield for each record in order until it returns false.
func (t *typeStream) scan(yield func(id uint32, off int64, kind typeKind, body *cursor.Cursor) bool) {
	id, off := t.begin, t.records.off
	end := t.records.off + t.records.size
	for off < end && id < t.end {
		b, err := t.s.bytes(off, min(typeChunk+maxRecord, end-off))
		if err != nil {
			return
		}
		c := cursor.New(b, "types", -1)
		for c.Offset() < typeChunk && id < t.end {
			at := int64(c.Offset())
			kind, body, ok := nextType(c)
			if !ok || !yield(id, off+at, kind, body) {
				return
			}
			id++
		}
		off += int64(c.Offset())
	}
}

// nextType reads one type record and moves past it.
func nextType(c *cursor.Cursor) (typeKind, *cursor.Cursor, bool) {
	n := int(c.U16())
	if n < 2 {
		return 0, nil, false
	}
	kind := typeKind(c.U16())
	body := c.Sub(n - 2)
	return kind, body, c.Err() == nil
}

// find returns a type record by number.
func (t *typeStream) find(id uint32) (typeKind, *cursor.Cursor, bool) {
	if id < t.begin || id >= t.end || len(t.index) == 0 {
		return 0, nil, false
	}
	i := sort.Search(len(t.index), func(i int) bool { return t.index[i].id > id }) - 1
	if i < 0 {
		return 0, nil, false
	}
	b := t.chunk(i)
	if b == nil {
		return 0, nil, false
	}
	c := cursor.New(b, "types", -1)
	for at := t.index[i].id; at < id; at++ {
		n := int(c.U16())
		if n < 2 {
			return 0, nil, false
		}
		c.Skip(n)
	}
	return nextType(c)
}

// chunk returns the records from one index entry to the next, and keeps some.
func (t *typeStream) chunk(i int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, ok := t.chunks[i]; ok {
		return b
	}
	from, to := int64(t.index[i].offset), t.records.size
	if i+1 < len(t.index) {
		to = int64(t.index[i+1].offset)
	}
	b, err := t.s.bytes(t.records.off+from, to-from)
	if err != nil {
		return nil
	}
	if len(t.chunks) >= cachedTypeChunks {
		for k := range t.chunks {
			delete(t.chunks, k)
			break
		}
	}
	t.chunks[i] = b
	return b
}

// sortByHash orders an index of names.
func sortByHash(list []nameHash) {
	slices.SortFunc(list, func(a, b nameHash) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
	})
}
