package pdb

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// The writer below shares nothing with the reader: it lays out the bytes that
// the format's documentation describes.

type writer struct{ bytes.Buffer }

func (w *writer) u8(v ...uint8) *writer { w.Write(v); return w }
func (w *writer) u16(v ...uint16) *writer {
	for _, x := range v {
		w.Write(binary.LittleEndian.AppendUint16(nil, x))
	}
	return w
}
func (w *writer) u32(v ...uint32) *writer {
	for _, x := range v {
		w.Write(binary.LittleEndian.AppendUint32(nil, x))
	}
	return w
}
func (w *writer) str(s string) *writer { w.WriteString(s); w.WriteByte(0); return w }
func (w *writer) align() *writer {
	for w.Len()%4 != 0 {
		w.WriteByte(0)
	}
	return w
}
func (w *writer) raw(b []byte) *writer { w.Write(b); return w }

// bytesOf returns what was written.
func bytesOf(f func(w *writer)) []byte {
	w := &writer{}
	f(w)
	return w.Bytes()
}

const testBlock = 512

// buildMSF writes streams one after the other from block 3 on: block 0 is the
// superblock, 1 and 2 the free block maps. The directory and its block map
// follow the streams.
func buildMSF(streams [][]byte) []byte {
	var blocks [][]byte
	add := func(b []byte) []uint32 {
		var at []uint32
		for len(b) > 0 {
			n := min(len(b), testBlock)
			block := make([]byte, testBlock)
			copy(block, b[:n])
			blocks = append(blocks, block)
			at = append(at, uint32(len(blocks)-1))
			b = b[n:]
		}
		return at
	}
	add(make([]byte, 3*testBlock))
	dir := &writer{}
	dir.u32(uint32(len(streams)))
	var lists []uint32
	for _, s := range streams {
		dir.u32(uint32(len(s)))
		lists = append(lists, add(s)...)
	}
	dir.u32(lists...)
	dirBlocks := add(dir.Bytes())
	mapBlock := add(bytesOf(func(w *writer) { w.u32(dirBlocks...) }))[0]
	super := &writer{}
	super.WriteString(magicMSF7)
	super.u32(testBlock, 1, uint32(len(blocks)), uint32(dir.Len()), 0, mapBlock)
	copy(blocks[0], super.Bytes())
	return bytes.Join(blocks, nil)
}

// image describes a PDB for build: one section .text at 0x1000 and one module.
type image struct {
	features []uint32
	flags    uint16
	symbols  []byte // records, without the signature
	c13      []byte
	names    []string // after the empty name at offset 0
	publics  []testPublic
	debug    map[int][]byte // streams of the optional debug header
	contribs [][2]uint32    // offset and size in .text
	ids      [][]byte       // IPI records
}

type testPublic struct {
	offset uint32
	name   string
	flags  uint32
}

// symbol writes a symbol record.
func symbol(kind uint16, body func(w *writer)) []byte {
	b := bytesOf(body)
	for (len(b)+4)%4 != 0 {
		b = append(b, 0)
	}
	return bytesOf(func(w *writer) { w.u16(uint16(len(b)+2), kind).raw(b) })
}

// Numbers of the streams that build writes.
const (
	testNames = iota + 5
	testModule
	testSections
	testPublics
	testRecords
	testDebug // and further
)

func build(im image) []byte {
	streams := make([][]byte, testDebug)
	streams[streamInfo] = im.info()
	streams[streamTPI] = types(nil)
	streams[streamIPI] = types(im.ids)
	streams[testNames] = im.nameTable()
	streams[testModule] = bytesOf(func(w *writer) { w.u32(4).raw(im.symbols).raw(im.c13) })
	streams[testSections] = section(".text", 0x1000, 0x2000)
	streams[testPublics], streams[testRecords] = im.publicStreams()
	debug := make([]uint16, 11)
	for i := range debug {
		debug[i] = 0xFFFF
	}
	debug[5] = testSections
	for i := range debug {
		if b, ok := im.debug[i]; ok {
			debug[i] = uint16(len(streams))
			streams = append(streams, b)
		}
	}
	streams[streamDBI] = im.dbi(debug)
	return buildMSF(streams)
}

func (im *image) info() []byte {
	return bytesOf(func(w *writer) {
		w.u32(20000404, 0x5F000000, 1)
		w.raw([]byte("0123456789abcdef"))
		w.u32(7).str("/names")     // one name
		w.u32(1, 1, 1, 1, 0, 0, 5) // one entry, capacity 1, present {1}, deleted {}, name at 0, stream 5
		w.u32(im.features...)
	})
}

func types(records [][]byte) []byte {
	body := bytes.Join(records, nil)
	return bytesOf(func(w *writer) {
		w.u32(20040203, 56, 0x1000, 0x1000+uint32(len(records)), uint32(len(body)))
		w.u16(0xFFFF, 0xFFFF).u32(4, 0x1000, 0, 0, 0, 0, 0, 0)
		w.raw(body)
	})
}

func section(name string, rva, size uint32) []byte {
	return bytesOf(func(w *writer) {
		w.raw([]byte((name + "\x00\x00\x00\x00\x00\x00\x00\x00")[:8]))
		w.u32(size, rva, size, 0x400, 0, 0, 0, 0x60000020)
	})
}

func (im *image) nameTable() []byte {
	body := bytesOf(func(w *writer) {
		w.u8(0)
		for _, n := range im.names {
			w.str(n)
		}
	})
	return bytesOf(func(w *writer) { w.u32(0xEFFEEFFE, 1, uint32(len(body))).raw(body) })
}

// publicStreams writes the publics in the order given, which is to be that of
// their addresses.
func (im *image) publicStreams() (publics, records []byte) {
	var order []uint32
	for _, p := range im.publics {
		order = append(order, uint32(len(records)))
		records = append(records, symbol(0x110E, func(w *writer) { w.u32(p.flags, p.offset).u16(1).str(p.name) })...)
	}
	publics = bytesOf(func(w *writer) {
		w.u32(0, uint32(4*len(order)), 0, 0, 0, 0, 0).u32(order...)
	})
	return publics, records
}

func (im *image) dbi(debug []uint16) []byte {
	module := bytesOf(func(w *writer) {
		w.u32(0).raw(make([]byte, 28)).u16(0, testModule)
		w.u32(4+uint32(len(im.symbols)), 0, uint32(len(im.c13))).u16(0, 0).u32(0, 0, 0)
		w.str("a.obj").str("a.lib").align()
	})
	contribs := bytesOf(func(w *writer) {
		w.u32(0xEFFE0000 + 19970605)
		for _, c := range im.contribs {
			w.u16(1, 0).u32(c[0], c[1], 0x60000020).u16(0, 0).u32(0, 0)
		}
	})
	return bytesOf(func(w *writer) {
		w.u32(0xFFFFFFFF, 19990903, 3)
		w.u16(0xFFFF, 0, testPublics, 0, testRecords, 0)
		w.u32(uint32(len(module)), uint32(len(contribs)), 0, 0, 0, 0, uint32(2*len(debug)), 0)
		w.u16(im.flags, 0x8664).u32(0)
		w.raw(module).raw(contribs).u16(debug...)
	})
}

// proc writes S_GPROC32 (0x1110) and its end; inner records may be nil.
func proc(offset, size uint32, name string, inner []byte) []byte {
	p := symbol(0x1110, func(w *writer) { w.u32(0, 0, 0, size, 0, size, 0, offset).u16(1).u8(0).str(name) })
	return append(append(p, inner...), symbol(0x0006, func(*writer) {})...)
}

// lineRows writes a lines subsection for code of one file: pairs of offset and line.
func lineRows(offset, size, file uint32, rows ...[2]uint32) []byte {
	body := bytesOf(func(w *writer) {
		w.u32(offset).u16(1, 0).u32(size)
		w.u32(file, uint32(len(rows)), uint32(12+8*len(rows)))
		for _, r := range rows {
			w.u32(r[0], r[1]|1<<31)
		}
	})
	return subsection(0xF2, body)
}

func subsection(kind uint32, body []byte) []byte {
	return bytesOf(func(w *writer) { w.u32(kind, uint32(len(body))).raw(body).align() })
}

// checksum writes an entry without checksum bytes: eight bytes with padding.
func checksum(names ...uint32) []byte {
	return subsection(0xF4, bytesOf(func(w *writer) {
		for _, n := range names {
			w.u32(n).u8(0, 0, 0, 0)
		}
	}))
}

func openBuilt(t *testing.T, im image) *File {
	t.Helper()
	return openBytes(t, build(im), "built.pdb")
}

func lookup(t *testing.T, f *File, rva uint32) Location {
	t.Helper()
	loc, _ := f.Lookup(rva)
	return loc
}
