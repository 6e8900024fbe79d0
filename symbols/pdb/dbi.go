package pdb

import (
	"math"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	streamDBI     = 3
	dbiHeaderSize = 64
	noStream      = 0xFFFF
)

// Bits of the DBI header's flags.
const (
	dbiIncremental = 1 << 0
	dbiStripped    = 1 << 1
)

// Streams of the optional debug header, by index.
const (
	debugFPO = iota
	debugException
	debugFixup
	debugOmapToSource
	debugOmapFromSource
	debugSections
	debugTokenRIDMap
	debugXdata
	debugPdata
	debugNewFPO
	debugSectionsOriginal
	debugStreams
)

// part is a range of a stream.
type part struct{ off, size int64 }

// dbiHeader is what the DBI stream says about the rest of the file.
type dbiHeader struct {
	s          *Stream
	globals    uint16
	publics    uint16
	symRecords uint16
	modules    part
	contribs   part
	debug      [debugStreams]uint16
}

// readDBI reads the DBI header, the optional debug header and the section
// headers. A PDB without DBI stream is one of types alone.
func (f *File) readDBI() error {
	for i := range f.dbi.debug {
		f.dbi.debug[i] = noStream
	}
	f.dbi.globals, f.dbi.publics, f.dbi.symRecords = noStream, noStream, noStream
	if size, ok := f.msf.StreamSize(streamDBI); !ok || size == 0 {
		return nil
	}
	s, err := f.msf.Stream(streamDBI)
	if err != nil {
		f.note(err)
		return nil
	}
	c, err := s.cursor(0, min(dbiHeaderSize, s.size), "DBI")
	if err != nil {
		f.note(err)
		return nil
	}
	f.dbi.s = s
	f.note(f.parseDBI(c))
	f.readSections()
	return nil
}

func (f *File) parseDBI(c *cursor.Cursor) error {
	d := &f.dbi
	signature, _, age := c.U32(), c.U32(), c.U32()
	globals, _, publics, _, symRecords, _ := c.U16(), c.U16(), c.U16(), c.U16(), c.U16(), c.U16()
	var sizes [5]uint32 // modules, contributions, section map, sources, type servers
	for i := range sizes {
		sizes[i] = c.U32()
	}
	c.U32()
	debugSize, ecSize := c.U32(), c.U32()
	flags, machine := c.U16(), c.U16()
	c.U32()
	if err := c.Err(); err != nil {
		return err
	}
	if signature != math.MaxUint32 {
		return dump.Errorf(dump.UnsupportedFormat, "DBI", "is of a version older than VC 4.1, which is not read")
	}
	d.globals, d.publics, d.symRecords = globals, publics, symRecords
	f.info.HasDBI, f.info.Age, f.info.Machine = true, age, machine
	f.info.Stripped = flags&dbiStripped != 0
	f.info.Increments = flags&dbiIncremental != 0
	at := int64(dbiHeaderSize)
	next := func(n uint32) part {
		p := part{at, min(int64(n), max(d.s.size-at, 0))}
		if p.size < int64(n) {
			f.note(dump.Errorf(dump.Truncated, "DBI", "a part at %#x claims %d bytes, %d are left", at, n, p.size))
		}
		at += p.size
		return p
	}
	d.modules, d.contribs = next(sizes[0]), next(sizes[1])
	for _, n := range append(sizes[2:], ecSize) {
		next(n)
	}
	return f.parseDebugHeader(next(debugSize))
}

func (f *File) parseDebugHeader(p part) error {
	c, err := f.dbi.s.cursor(p.off, p.size, "DBI debug header")
	if err != nil {
		return err
	}
	for i := 0; i < debugStreams && c.Left() >= 2; i++ {
		f.dbi.debug[i] = c.U16()
	}
	return nil
}

// debugStream opens a stream of the optional debug header, nil when there is
// none.
func (f *File) debugStream(i int) *Stream {
	n := f.dbi.debug[i]
	if n == noStream {
		return nil
	}
	s, err := f.msf.Stream(int(n))
	if err != nil {
		f.note(err)
		return nil
	}
	return s
}
