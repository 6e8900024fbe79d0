package dwarf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
)

// buf writes little-endian values: the tests' own writer, which shares nothing
// with the reader.
type buf struct{ b []byte }

func (w *buf) u8(v ...uint8) *buf     { w.b = append(w.b, v...); return w }
func (w *buf) u16(v uint16) *buf      { w.b = binary.LittleEndian.AppendUint16(w.b, v); return w }
func (w *buf) u32(v uint32) *buf      { w.b = binary.LittleEndian.AppendUint32(w.b, v); return w }
func (w *buf) u64(v uint64) *buf      { w.b = binary.LittleEndian.AppendUint64(w.b, v); return w }
func (w *buf) str(s string) *buf      { w.b = append(append(w.b, s...), 0); return w }
func (w *buf) fill(n int) *buf        { w.b = append(w.b, make([]byte, n)...); return w }
func (w *buf) sized(body []byte) *buf { return w.u32(uint32(len(body))).raw(body) }
func (w *buf) raw(b []byte) *buf      { w.b = append(w.b, b...); return w }

const testBase = 0x140000000

// part is a section of a built image.
type part struct {
	name string
	data []byte
}

// build makes an image with code from 0x1000 to 0x2000 and the given sections.
func build(parts ...part) []byte {
	parts = append([]part{{".text", make([]byte, 0x1000)}}, parts...)
	var strs, data buf
	head := &buf{}
	head.raw([]byte("MZ")).fill(0x3a).u32(0x40)
	head.raw([]byte("PE\x00\x00")).u16(0x8664).u16(uint16(len(parts))).u32(0)
	const table = 0x40 + 24 + 0x70
	start := table + 40*len(parts)
	total := start
	for _, p := range parts {
		total += len(p.data)
	}
	head.u32(uint32(total)).u32(0).u16(0x70).u16(0) // the string table is behind the sections
	head.u16(0x20b).fill(22).u64(testBase).fill(0x70 - 32)
	for i, p := range parts {
		name := p.name
		if len(name) > 8 {
			at := 4 + len(strs.b)
			strs.str(name)
			name = "/" + string(rune('0'+at/100%10)) + string(rune('0'+at/10%10)) + string(rune('0'+at%10))
		}
		characteristics := uint32(0x42000040)
		if i == 0 {
			characteristics = 0x60000020
		}
		field := make([]byte, 8)
		copy(field, name)
		head.raw(field).u32(uint32(len(p.data))).u32(uint32(0x1000 * (i + 1))).u32(uint32(len(p.data))).u32(uint32(start + len(data.b))).fill(12).u32(characteristics)
		data.raw(p.data)
	}
	return head.raw(data.b).u32(uint32(len(strs.b) + 4)).raw(strs.b).b
}

// openBuilt opens a built image.
func openBuilt(b []byte) (*File, error) { return Open(bytes.NewReader(b), int64(len(b)), "built.exe") }

// unit4 is a unit of version 4 with the abbreviations at 0.
func unit4(entries []byte) []byte {
	return new(buf).sized(new(buf).u16(4).u32(0).u8(8).raw(entries).b).b
}

// testAbbrevs declares: 1 a unit with name, low_pc, high_pc (data4) and lines; 2 a
// function with name and addresses; 3 an inlined call with origin (ref4), addresses
// and call line; 4 a function with an origin (ref4) and addresses; 5 a namespace with
// a name; 6 a function with ranges (sec_offset); 7 a function with a name alone.
func testAbbrevs() []byte {
	w := new(buf)
	for _, a := range [][]uint8{
		{1, 0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17},
		{2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06},
		{3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x59, 0x0b},
		{4, 0x2e, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06},
		{5, 0x39, 1, 0x03, 0x08},
		{6, 0x2e, 1, 0x03, 0x08, 0x55, 0x17},
		{7, 0x2e, 0, 0x03, 0x08},
	} {
		w.u8(a...).u8(0, 0)
	}
	return w.u8(0).b
}

// root is the first entry of a unit that covers all code.
func root() *buf {
	return new(buf).u8(1).str("a.c").u64(testBase + 0x1000).u32(0x1000).u32(0)
}

// lines is a line program of version 4: 0x1000 line 10, 0x1010 line 13, to 0x1020.
func lines() []byte {
	head := new(buf).u8(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1).u8(0).str("a.c").u8(0, 0, 0, 0)
	program := new(buf).u8(0, 9, 2).u64(testBase+0x1000).u8(3, 9, 1).u8(2, 0x10, 3, 3, 1).u8(2, 0x10, 0, 1, 1)
	return new(buf).sized(new(buf).u16(4).sized(head.b).raw(program.b).b).b
}

// zipped is a section in the form that Go's linker compresses it to.
func zipped(b []byte, claimed uint64) []byte {
	var out bytes.Buffer
	out.WriteString("ZLIB")
	_ = binary.Write(&out, binary.BigEndian, claimed)
	z := zlib.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}
