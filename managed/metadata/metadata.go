package metadata

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
	"dumptriage/internal/cursor"
)

const (
	rootStream  = "metadata root"
	signature   = 0x424a5342 // "BSJB"
	maxVersion  = 255        // bytes of the version text (II.24.2.1)
	maxStreams  = 64         // a compiler writes 5 or 6
	maxNameSize = 32         // of a stream's name, with its NUL
)

// Metadata is the metadata of one module. It is safe for concurrent use.
type Metadata struct {
	in      *chunk.Reader
	tries   atomic.Int32 // rows that were tried beside missing ones
	scanned atomic.Int64 // rows that were looked through where tables are not sorted

	version string
	tables  [numTables]tableInfo
	sorted  uint64 // bit per table: its rows are in the order that II.22 wants
	widths  [256]uint8

	strings, blobs, guids span

	methods methodIndex
}

// span is where a heap or stream lies in the metadata.
type span struct{ off, size int64 }

// Open reads the header of metadata ("BSJB") of size bytes. Offsets in errors of the
// Metadata count from the start of r. R is read later, and must stay open.
func Open(r io.ReaderAt, size int64) (*Metadata, error) {
	m := &Metadata{in: chunk.New(r, size)}
	streams, err := m.readRoot()
	if err != nil {
		return nil, err
	}
	m.strings, m.blobs, m.guids = streams["#Strings"], streams["#Blob"], streams["#GUID"]
	tables, ok := streams["#~"]
	if !ok {
		tables, ok = streams["#-"]
	}
	if !ok {
		return nil, dump.Errorf(dump.BadRecord, rootStream, "has no stream of tables (#~ or #-)")
	}
	_, wide := streams["#JTD"]
	var external [numTables]uint32
	if pdb, ok := streams["#Pdb"]; ok {
		if external, err = m.readPdb(pdb); err != nil {
			return nil, err
		}
	}
	return m, m.readTables(tables, wide, external)
}

// readRoot reads the metadata root (II.24.2.1) and its stream headers. Of two
// streams with one name the first is taken: obfuscators add later ones.
func (m *Metadata) readRoot() (map[string]span, error) {
	b, missing := m.in.UpTo(0, 20+maxVersion+1+maxStreams*(8+maxNameSize), rootStream)
	c := cursor.New(b, rootStream, 0)
	if sig := c.U32(); c.Err() != nil {
		return nil, missing
	} else if sig != signature {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, Stream: rootStream, Offset: 0, Size: 4, Msg: "no BSJB signature"}
	}
	c.Skip(8) // format version, reserved
	length := c.U32()
	if length > maxVersion+1 {
		c.Fail(dump.BadRecord, "version text of %d bytes", length)
	}
	m.version = cursor.CString(c.Bytes(int(length)))
	c.Skip(2) // flags
	count := c.U16()
	if count > maxStreams {
		c.Fail(dump.Limit, "claims %d streams", count)
	}
	streams := map[string]span{}
	for range count {
		s := span{int64(c.U32()), int64(c.U32())}
		name := streamName(c)
		if c.Err() != nil {
			break
		}
		if _, twice := streams[name]; !twice {
			streams[name] = s
		}
	}
	_, compact := streams["#~"]
	_, loose := streams["#-"]
	if c.Err() != nil && !compact && !loose {
		return nil, why(c, missing)
	}
	return streams, nil
}

// why returns a cursor's error: where bytes were missing that it was to read, why they were.
func why(c *cursor.Cursor, missing error) error {
	var e *dump.Error
	if errors.As(c.Err(), &e) && e.Code == dump.Truncated && missing != nil {
		return missing
	}
	return c.Err()
}

// streamName reads a stream's name: up to a NUL, filled up to four bytes.
func streamName(c *cursor.Cursor) string {
	var name []byte
	for len(name) < maxNameSize {
		part := c.Bytes(4)
		if part == nil {
			return ""
		}
		name = append(name, part...)
		if part[3] == 0 {
			return cursor.CString(name)
		}
	}
	c.Fail(dump.BadRecord, "stream name of more than %d bytes", maxNameSize)
	return ""
}

// readPdb reads the counts of rows in the module that a Portable PDB is of: they
// decide how wide its indexes are.
func (m *Metadata) readPdb(s span) (rows [numTables]uint32, err error) {
	b, missing := m.in.UpTo(s.off, min(s.size, 32+4*numTables), "#Pdb")
	c := cursor.New(b, "#Pdb", s.off)
	c.Skip(20 + 4) // id, entry point
	readCounts(c, c.U64(), &rows)
	return rows, why(c, missing)
}

// readCounts reads a count of rows for each bit of valid.
func readCounts(c *cursor.Cursor, valid uint64, rows *[numTables]uint32) {
	for t := range numTables {
		if valid>>t&1 == 0 {
			continue
		}
		rows[t] = c.U32()
		if rows[t] > maxRID {
			c.Fail(dump.BadCount, "claims %d rows of table %#x; a token has room for %d", rows[t], t, maxRID)
		}
	}
}

// Size returns how many bytes the metadata says that it has.
func (m *Metadata) Size() int64 { return m.in.Size() }

// Version returns the version text of the root, such as "v4.0.30319": the runtime
// that the compiler wrote for, not the one that runs it.
func (m *Metadata) Version() string { return m.version }

// inside cuts a heap access to its heap: false when off is not in it.
func (s span) inside(off uint32) (left int64, ok bool) {
	left = s.size - int64(off)
	return left, left > 0
}

func outside(stream string, off int64, what string, args ...any) error {
	return &dump.Error{Code: dump.OutOfRange, Stream: stream, Offset: off, Size: -1, Msg: fmt.Sprintf(what, args...)}
}
