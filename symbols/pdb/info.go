package pdb

import (
	"encoding/binary"
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Info is the identity of a PDB.
type Info struct {
	GUID    [16]byte // in file order, as a module's RSDS record has it
	Age     uint32   // the age that an image's RSDS record must have
	InfoAge uint32   // the age in the PDB's own information stream
	Stamp   uint32   // signature: usually seconds since 1970
	Version uint32   // of the information stream: 20000404 is VC 7.0

	Machine    uint16 // IMAGE_FILE_MACHINE_*, 0 when there is no DBI stream
	Stripped   bool   // private symbols and types were removed (/PDBSTRIPPED)
	FastLink   bool   // /DEBUG:FASTLINK: private symbols are in the object files
	Increments bool   // made by incremental linking
	HasDBI     bool   // false for a PDB of types alone (/Zi compiler output)
}

// Feature signatures at the end of the information stream.
const (
	featureVC110      = 20091201
	featureVC140      = 20140508
	featureNoTypeSame = 0x4D544F4E
	featureMinimal    = 0x494E494D // /DEBUG:FASTLINK
)

const streamInfo = 1

// readInfo reads the information stream: identity, named streams, features.
func (f *File) readInfo() error {
	s, err := f.msf.Stream(streamInfo)
	if err != nil {
		return err
	}
	c, err := s.cursor(0, s.size, "PDB info")
	if err != nil {
		return err
	}
	f.info.Version, f.info.Stamp, f.info.InfoAge = c.U32(), c.U32(), c.U32()
	copy(f.info.GUID[:], c.Bytes(16))
	if err := c.Err(); err != nil {
		return err
	}
	f.info.Age = f.info.InfoAge // until the DBI stream says otherwise
	f.named = readNamedStreams(c)
	for c.Err() == nil && c.Left() >= 4 {
		switch c.U32() {
		case featureMinimal:
			f.info.FastLink = true
		case featureVC110:
			return nil // the last: nothing follows it
		}
	}
	f.note(c.Err())
	return nil
}

// readNamedStreams reads the serialized hash table from names to stream numbers:
// the names' bytes, then size, capacity, two bit vectors, and pairs of (offset of
// the name, stream) for each bucket in use.
func readNamedStreams(c *cursor.Cursor) map[string]int {
	names := c.Bytes(int(min(c.U32(), 1<<30)))
	used := c.U32()
	c.U32() // capacity
	for range 2 {
		words, err := c.Count(uint64(c.U32()), 4)
		if err != nil {
			c.Fail(dump.BadCount, "bit vector of named streams is larger than the stream")
			return nil
		}
		c.Skip(words * 4)
	}
	n, err := c.Count(uint64(used), 8)
	if err != nil {
		c.Fail(dump.BadCount, "claims %d named streams, room for %d", used, n)
	}
	out := map[string]int{}
	for range n {
		off, stream := c.U32(), c.U32()
		if c.Err() == nil && int64(off) < int64(len(names)) && stream < maxStreams {
			out[cursor.CString(names[off:])] = int(stream)
		}
	}
	return out
}

// NamedStreams returns the names of the named streams, sorted.
func (f *File) NamedStreams() []string {
	var out []string
	for name := range f.named {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// NamedStream opens a stream by name, such as "/names" or "srcsrv".
func (f *File) NamedStream(name string) (*Stream, error) {
	i, ok := f.named[name]
	if !ok {
		return nil, dump.Errorf(dump.OutOfRange, "PDB info", "no stream is named %q", name)
	}
	return f.msf.Stream(i)
}

// Matches returns nil when the PDB belongs to the image with that debug
// identity, else a *dump.Error that says how they differ.
func (f *File) Matches(cv dump.CodeView) error {
	switch {
	case cv.Signature != "RSDS":
		return &dump.Error{Code: dump.Mismatch, File: f.name, Offset: -1, Size: -1, Msg: "the image has no RSDS record to compare with"}
	case cv.GUID != f.info.GUID:
		return &dump.Error{Code: dump.Mismatch, File: f.name, Stream: "PDB info", Offset: -1, Size: -1,
			Msg: fmt.Sprintf("its GUID is %s, the image wants %s", GUIDString(f.info.GUID), GUIDString(cv.GUID))}
	case cv.Age != f.info.Age:
		return &dump.Error{Code: dump.Mismatch, File: f.name, Stream: "DBI", Offset: -1, Size: -1,
			Msg: fmt.Sprintf("its age is %d, the image wants %d", f.info.Age, cv.Age)}
	}
	return nil
}

// GUIDString formats a GUID in file order as Windows writes it, in upper case
// and without braces.
func GUIDString(g [16]byte) string {
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", binary.LittleEndian.Uint32(g[:]), binary.LittleEndian.Uint16(g[4:]), binary.LittleEndian.Uint16(g[6:]), g[8:10], g[10:])
}
