package pdata

import (
	"encoding/binary"
	"testing"
)

// peSection is a section of a hand-built image.
type peSection struct {
	va, virtual uint32
	data        []byte
	flags       uint32
}

const (
	scnCode = 0x60000020 // CNT_CODE | MEM_EXECUTE | MEM_READ
	scnData = 0x40000040 // CNT_INITIALIZED_DATA | MEM_READ
)

// peBuilder writes a small PE image field by field, with offsets from the
// public PE description and none of the code under test.
type peBuilder struct {
	machine   uint16
	pe32      bool
	stamp     uint32
	size      uint32 // SizeOfImage; 0 for the end of the last section
	alignment uint32 // SectionAlignment; 0 for 0x1000
	base      uint64
	dirs      [16][2]uint32
	numDirs   uint32
	sections  []peSection
}

func newPE() *peBuilder {
	return &peBuilder{machine: 0x8664, stamp: 0x5f000001, base: 0x180000000, numDirs: 16}
}

func (p *peBuilder) add(va uint32, flags uint32, data []byte) *peBuilder {
	p.sections = append(p.sections, peSection{va: va, virtual: uint32(len(data)), data: data, flags: flags})
	return p
}

func (p *peBuilder) bytes() []byte {
	const nt = 0x80
	b := make([]byte, 0x400)
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], nt)
	copy(b[nt:], "PE\x00\x00")
	fixed, magic := 112, uint16(0x20b)
	if p.pe32 {
		fixed, magic = 96, 0x10b
	}
	le.PutUint16(b[nt+4:], p.machine)
	le.PutUint16(b[nt+6:], uint16(len(p.sections)))
	le.PutUint32(b[nt+8:], p.stamp)
	le.PutUint16(b[nt+20:], uint16(fixed+16*8))
	opt := b[nt+24:]
	le.PutUint16(opt, magic)
	if p.pe32 {
		le.PutUint32(opt[28:], uint32(p.base))
	} else {
		le.PutUint64(opt[24:], p.base)
	}
	alignment := p.alignment
	if alignment == 0 {
		alignment = 0x1000
	}
	le.PutUint32(opt[32:], alignment)
	le.PutUint32(opt[36:], 0x200)
	end := uint32(0x1000)
	for _, s := range p.sections {
		end = max(end, (s.va+max(s.virtual, 1)+0xfff)&^0xfff)
	}
	if p.size != 0 {
		end = p.size
	}
	le.PutUint32(opt[56:], end)
	le.PutUint32(opt[60:], 0x400)
	le.PutUint32(opt[64:], 0xc0ffee)
	le.PutUint32(opt[fixed-4:], p.numDirs)
	for i, d := range p.dirs {
		le.PutUint32(opt[fixed+8*i:], d[0])
		le.PutUint32(opt[fixed+8*i+4:], d[1])
	}
	table := opt[fixed+16*8:]
	for i, s := range p.sections {
		h := table[40*i:]
		raw := (len(s.data) + 0x1ff) &^ 0x1ff
		le.PutUint32(h[8:], s.virtual)
		le.PutUint32(h[12:], s.va)
		le.PutUint32(h[16:], uint32(raw))
		le.PutUint32(h[20:], uint32(len(b)))
		le.PutUint32(h[36:], s.flags)
		b = append(b, s.data...)
		b = append(b, make([]byte, raw-len(s.data))...)
		table = b[nt+24+fixed+16*8:]
	}
	return b
}

func (p *peBuilder) open(t testing.TB) *Image {
	t.Helper()
	return openTest(t, p.bytes(), "built.dll")
}

// u32s lays out little-endian 32-bit values.
func u32s(v ...uint32) []byte {
	var b []byte
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// withTable builds an x64 image with an exception directory of these entries
// at 0x5000 and unwind infos at 0x4000.
func withTable(infos []byte, entries ...uint32) *peBuilder {
	p := newPE().add(0x1000, scnCode, make([]byte, 0x3000)).add(0x4000, scnData, append(infos, make([]byte, 64)...)).add(0x5000, scnData, u32s(entries...))
	p.dirs[3] = [2]uint32{0x5000, uint32(4 * len(entries))}
	return p
}
