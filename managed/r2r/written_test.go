package r2r

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/pdata"
)

// written is a ReadyToRun image put together by hand from the public format: one section
// that lies in the file as in memory.
type written struct {
	machine uint16
	major   uint16
	body    []byte // at RVA base
	core    [][3]uint32
	header  uint32 // RVA of the ReadyToRun header
	meta    []byte // the image's own metadata
	export  string // when set, an export with this name has the header, and there is no CLR header
}

const base = 0x1000

func newImage() *written {
	return &written{machine: 0x8664, major: 16, body: make([]byte, 0x200)} // room for the CLR header and code
}

func le(size int, v ...uint32) (b []byte) {
	for _, n := range v {
		b = append(b, binary.LittleEndian.AppendUint32(nil, n)[:size]...)
	}
	return b
}

// put adds bytes and returns their RVA.
func (w *written) put(b []byte) uint32 {
	w.body = append(w.body, make([]byte, -len(w.body)&3)...)
	rva := base + uint32(len(w.body))
	w.body = append(w.body, b...)
	return rva
}

// section adds a section of the image.
func (w *written) section(kind uint32, b []byte) {
	w.core = append(w.core, [3]uint32{kind, w.put(b), uint32(len(b))})
}

// coreHeader writes a READYTORUN_CORE_HEADER.
func coreHeader(flags uint32, sections [][3]uint32) []byte {
	b := le(4, flags, uint32(len(sections)))
	for _, s := range sections {
		b = append(b, le(4, s[:]...)...)
	}
	return b
}

func (w *written) bytes() []byte {
	head := append(le(4, 0x00525452), le(2, uint32(w.major), 3)...)
	w.header = w.put(append(head, coreHeader(1, w.core)...))
	cor := make([]byte, 72)
	copy(cor, le(4, 72))
	copy(cor[8:], le(4, w.put(w.meta), uint32(len(w.meta))))
	copy(cor[64:], le(4, w.header, 0x100))
	copy(w.body, cor)

	exports := uint32(0)
	if w.export != "" {
		exports = w.exportDirectory()
	}

	const nt, fileBase = 0x80, 0x400
	out := make([]byte, fileBase)
	copy(out, "MZ")
	copy(out[0x3c:], le(4, nt))
	copy(out[nt:], "PE\x00\x00")
	copy(out[nt+4:], le(2, uint32(w.machine), 1))
	copy(out[nt+20:], le(2, 240))
	opt := out[nt+24:]
	copy(opt, le(2, 0x20b))
	copy(opt[24:], le(4, 0x80000000, 1, 0x1000, 0x200))
	size := uint32(len(w.body)+0xfff) &^ 0xfff
	copy(opt[56:], le(4, base+size, fileBase))
	copy(opt[108:], le(4, 16))
	if exports != 0 {
		copy(opt[112:], le(4, exports, 0x80))
	} else {
		copy(opt[112+14*8:], le(4, base, 72))
	}
	copy(opt[240+8:], le(4, size, base, uint32(len(w.body)), fileBase))
	copy(opt[240+36:], le(4, 0x60000020))
	return append(out, w.body...)
}

// exportDirectory writes an IMAGE_EXPORT_DIRECTORY with one name.
func (w *written) exportDirectory() uint32 {
	name := w.put([]byte(w.export + "\x00"))
	address, names, ordinals := w.put(le(4, w.header)), w.put(le(4, name)), w.put(le(2, 0))
	return w.put(le(4, 0, 0, 0, name, 1, 1, 1, address, names, ordinals))
}

// references is metadata that has nothing but references to assemblies.
func references(list ...string) []byte {
	heap := []byte{0}
	var rows []byte
	for _, name := range list {
		rows = append(rows, le(2, 1, 0, 0, 0, 0, 0, 0, uint32(len(heap)), 0, 0)...) // version, flags, key, name, culture, hash
		heap = append(append(heap, name...), 0)
	}
	tables := append(append(le(4, 0), 2, 0, 0, 1), le(4, 0, 1<<(0x23-32), 0, 0, uint32(len(list)))...)
	tables = append(tables, rows...)
	out := append([]byte("BSJB\x01\x00\x01\x00\x00\x00\x00\x00\x04\x00\x00\x00v4\x00\x00\x00\x00\x02\x00"),
		le(4, 56, uint32(len(tables)))...)
	out = append(append(out, "#~\x00\x00"...), le(4, 56+uint32(len(tables)), uint32(len(heap)))...)
	out = append(out, "#Strings\x00\x00\x00\x00"...)
	return append(append(out, tables...), heap...)
}

func (w *written) open(t testing.TB) (*Image, error) {
	t.Helper()
	b := w.bytes()
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "r2r.dll")
	if err != nil {
		t.Fatal(err)
	}
	return Open(im)
}

// native writes an integer of the native format in its shortest form.
func packed(v uint32) []byte {
	switch {
	case v < 1<<7:
		return le(1, v<<1)
	case v < 1<<14:
		return le(2, v<<2|1)
	case v < 1<<21:
		return le(3, v<<3|3)
	case v < 1<<28:
		return le(4, v<<4|7)
	}
	return append([]byte{0x0f}, le(4, v)...)
}

// block writes a block of a sparse array: from 16 elements down, a node tells of its two
// halves. The lower follows it, the upper is at an offset from it.
func block(e [][]byte) []byte {
	if len(e) == 1 {
		return e[0]
	}
	lower, upper := e[:len(e)/2], e[len(e)/2:]
	var low, high []byte
	v := uint32(0)
	if some(lower) {
		low, v = block(lower), v|1
	}
	if some(upper) {
		high, v = block(upper), v|2
	}
	node := packed(v)
	for high != nil { // the offset counts the node itself
		next := packed(v | uint32(len(node)+len(low))<<2)
		if len(next) == len(node) {
			node = next
			break
		}
		node = make([]byte, len(next))
	}
	return bytes.Join([][]byte{node, low, high}, nil)
}

func some(e [][]byte) bool {
	for _, b := range e {
		if b != nil {
			return true
		}
	}
	return false
}

// sparse writes a sparse array with cells of size bytes. A block with one element says
// which, and no tree; an empty one is a node without halves that is no element's.
func sparse(cells uint32, elements map[uint32][]byte, count uint32) []byte {
	blocks := (count + 15) / 16
	var index, data []byte
	for b := range blocks {
		var e [16][]byte
		only, n := uint32(0), 0
		for i := range uint32(16) {
			if v, ok := elements[b*16+i]; ok {
				e[i], only = v, i
				n++
			}
		}
		index = append(index, le(int(cells), blocks*cells+uint32(len(data)))...)
		switch n {
		case 0:
			data = append(data, packed(16<<2)...) // no index below 16 is 16
		case 1:
			data = append(append(data, packed(only<<2)...), e[only]...)
		default:
			data = append(data, block(e[:])...)
		}
	}
	kind := map[uint32]uint32{1: 0, 2: 1, 4: 2}[cells]
	return bytes.Join([][]byte{packed(count<<2 | kind), index, data}, nil)
}

// hashed writes a hash table of two buckets with cells of 2 bytes: every entry is in the
// second. The data lies behind the entries.
func hashed(items ...[]byte) []byte {
	const cells = 3 * 2
	at := cells + 3*len(items) // an entry has a byte of hash and an offset of two
	out := append([]byte{1<<2 | 1}, le(2, cells, cells, uint32(at))...)
	var data []byte
	for i, item := range items {
		from := cells + 3*i + 1
		out = append(out, byte(i)) // the hash
		out = append(out, le(2, uint32(at+len(data)-from)<<2|1)...)
		data = append(data, item...)
	}
	return append(out, data...)
}

// functions writes RUNTIME_FUNCTIONs of x64, each of 0x10 bytes.
func functions(n int) (b []byte) {
	for i := range uint32(n) {
		b = append(b, le(4, base+0x80+i*0x10, base+0x80+i*0x10+0x0c, 0)...)
	}
	return b
}

// entryOf writes an entry point: without fixups, with some, and with some elsewhere.
func plain(function uint32) []byte   { return packed(function << 1) }
func fixups(function uint32) []byte  { return append(packed(function<<2|1), 0x55, 0x66) }
func farther(function uint32) []byte { return append(packed(function<<2|3), packed(9)...) }
