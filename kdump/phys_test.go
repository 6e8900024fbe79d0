package kdump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"dumptriage/dump"
)

// markedPage is a page whose every word is its mark.
func markedPage(mark uint64) []byte {
	b := make([]byte, 0, 4096)
	for range 512 {
		b = binary.LittleEndian.AppendUint64(b, mark)
	}
	return b
}

// physicalPages are the page frames of the dumps below, in the order of the file:
// two that adjoin, a gap, one more in the same byte of a bitmap, and the ninth bit.
var physicalPages = []uint64{2, 3, 6, 9}

func addPages(m *bin) {
	for _, pfn := range physicalPages {
		m.append(markedPage(0x1000 + pfn))
	}
}

// runsDump: PHYSICAL_MEMORY_DESCRIPTOR64 at 0x88 {runs u32, pad, pages u64}, then
// runs {first, count} from 0x98 on; pages from 0x2000 on.
func runsDump(claim uint64) []byte {
	m := header64Bytes(1, 0, [4]uint64{})
	m.u32(0x88, 3)
	m.u64(0x90, claim)
	for i, v := range []uint64{2, 2, 6, 1, 9, 1} {
		m.u64(0x98+8*i, v)
	}
	addPages(m)
	return m.b
}

// bitmapDump: "SDMP" "DUMP" at 0x2000, first page at 0x20, pages at 0x28, bits at
// 0x30, bitmap at 0x38. Ten bits; the six behind them in the last byte are
// garbage, set on purpose.
func bitmapDump(dumpType uint32, claim uint64) []byte {
	m := header64Bytes(dumpType, 0, [4]uint64{})
	m.put(0x2000, []byte("SDMPDUMP"))
	m.u64(0x2020, 0x3000)
	m.u64(0x2028, claim)
	m.u64(0x2030, 10)
	m.put(0x2038, []byte{0b01001100, 0b11111110})
	m.grow(0x3000)
	addPages(m)
	return m.b
}

// rangesDump of .dump /k: metadata size at 0x10, first page at 0x18, ranges from
// 0x30 on, ended by zeros. Of /f: count of ranges u32 at 0x20, pages u64 at 0x28.
func rangesDump(dumpType uint32) []byte {
	m := header64Bytes(dumpType, 0, [4]uint64{})
	m.u32(0x2000, 0x40)
	m.put(0x2004, []byte("RDMPDUMP"))
	m.u64(0x2018, 0x3000)
	if dumpType == 0xa {
		m.u32(0x2020, 3)
		m.u64(0x2028, 4)
	}
	for i, v := range []uint64{2, 2, 6, 1, 9, 40} { // the last counts more than there is
		if i == 5 && dumpType != 0xa {
			v = 1
		}
		m.u64(0x2030+8*i, v)
	}
	m.grow(0x3000)
	addPages(m)
	return m.b
}

// oldBitmapDump has the header of before Windows 8: first page u32 at 0xc, bits
// u32 at 0x10, pages u32 at 0x14, RTL_BITMAP {bits u32, pad, buffer u64} at 0x18.
func oldBitmapDump() []byte {
	m := header64Bytes(2, 0, [4]uint64{})
	m.put(0x2000, []byte("SDMPDUMP"))
	m.u32(0x200c, 0x3000)
	m.u32(0x2010, 10)
	m.u32(0x2014, 4)
	m.u32(0x2018, 10)
	m.u64(0x2020, 0xfffffa8001234000)
	m.put(0x2028, []byte{0b01001100, 0b11111110})
	m.grow(0x3000)
	addPages(m)
	return m.b
}

// TestPhysicalLayouts reads the same four pages from every layout.
func TestPhysicalLayouts(t *testing.T) {
	for name, b := range map[string][]byte{
		"runs": runsDump(4), "bitmap 2": bitmapDump(2, 4), "old bitmap": oldBitmapDump(), "bitmap 5": bitmapDump(5, 4), "bitmap 6": bitmapDump(6, 4),
		"bitmap 7": bitmapDump(7, 4), "ranges k": rangesDump(8), "ranges ka": rangesDump(9), "ranges f": rangesDump(0xa),
	} {
		t.Run(name, func(t *testing.T) {
			f := openBytes(t, b)
			for _, d := range f.Damage() {
				if d.Stream == bitmapStream || d.Stream == runStream || d.Stream == rangeStream || d.Stream == "memory" {
					t.Errorf("damage: %v", d)
				}
			}
			m := f.PhysicalMemory()
			if m == nil {
				t.Fatal("no physical memory")
			}
			if m.Pages() != 4 {
				t.Errorf("%d pages, want 4", m.Pages())
			}
			for pfn := range uint64(24) {
				var buf [8]byte
				n, err := m.ReadAt(buf[:], pfn<<12+0xff8)
				if want := slices.Contains(physicalPages, pfn); want != (err == nil) {
					t.Errorf("page %d: %v, want present %v", pfn, err, want)
				}
				if err == nil && (n != 8 || binary.LittleEndian.Uint64(buf[:]) != 0x1000+pfn) {
					t.Errorf("page %d holds % x", pfn, buf)
				}
			}
			var runs [][2]uint64
			for r := range m.Runs() {
				runs = append(runs, [2]uint64{r.VA >> 12, r.Size >> 12})
			}
			if want := [][2]uint64{{2, 2}, {6, 1}, {9, 1}}; !slices.Equal(runs, want) {
				t.Errorf("runs %v, want %v", runs, want)
			}
		})
	}
}

// TestPhysicalAcross reads over the border of two pages, and up to where a page
// is missing.
func TestPhysicalAcross(t *testing.T) {
	m := openBytes(t, bitmapDump(5, 4)).PhysicalMemory()
	b := make([]byte, 0x2000)
	n, err := m.ReadAt(b, 0x2800)
	var me *dump.MemoryError
	if !errors.As(err, &me) || n != 0x1800 || me.VA != 0x4000 || me.Size != 0x800 {
		t.Fatalf("%d, %v: want 0x1800 bytes and the first missing at 0x4000", n, err)
	}
	if v := binary.LittleEndian.Uint64(b[0x7f8:]); v != 0x1002 {
		t.Errorf("before the border %#x", v)
	}
	if v := binary.LittleEndian.Uint64(b[0x800:]); v != 0x1003 {
		t.Errorf("behind the border %#x", v)
	}
}

// lie changes bytes of a good dump and names the damage that must be told.
type lie struct {
	name string
	base []byte
	edit func(*bin)
	code dump.Code
	part string
}

func TestLyingLayouts(t *testing.T) {
	for _, c := range []lie{
		{"pages of runs", runsDump(7), func(*bin) {}, dump.BadCount, runStream},
		{"count of runs", runsDump(4), func(m *bin) { m.u32(0x88, 1<<30) }, dump.BadCount, runStream},
		{"filler", runsDump(4), func(m *bin) { m.put(0x88, bytes.Repeat([]byte("PAGE"), 16)) }, dump.BadRecord, runStream},
		{"run beyond all memory", runsDump(4), func(m *bin) { m.u64(0x98, 1<<60) }, dump.OutOfRange, runStream},
		{"run that wraps", runsDump(4), func(m *bin) { m.u64(0xa0, ^uint64(0)) }, dump.OutOfRange, runStream},
		{"runs overlap", runsDump(4), func(m *bin) { m.u64(0xa8, 3) }, dump.BadRecord, runStream},
		{"run beyond the end", runsDump(104), func(m *bin) { m.u64(0xc0, 101) }, dump.Truncated, "memory"},
		{"present pages", bitmapDump(5, 9), func(*bin) {}, dump.BadCount, bitmapStream},
		{"first page in the bitmap", bitmapDump(5, 4), func(m *bin) { m.u64(0x2020, 0x2038) }, dump.BadRecord, bitmapStream},
		{"bits of no machine", bitmapDump(5, 4), func(m *bin) { m.u64(0x2030, 1<<62) }, dump.BadCount, bitmapStream},
		{"more bits than file", bitmapDump(5, 4), func(m *bin) { m.u64(0x2030, 1<<30); m.u64(0x2020, 1<<40) }, dump.Truncated, bitmapStream},
		{"no bits set", bitmapDump(5, 0), func(m *bin) { m.put(0x2038, []byte{0, 0}) }, dump.BadRecord, bitmapStream},
		{"negative first page", bitmapDump(5, 4), func(m *bin) { m.u64(0x2020, 1<<63) }, dump.BadRecord, bitmapStream},
		{"no signature", bitmapDump(5, 4), func(m *bin) { m.put(0x2000, []byte("XXXX")) }, dump.BadRecord, "memory"},
		{"first page in the header", rangesDump(0xa), func(m *bin) { m.u64(0x2018, 8) }, dump.BadRecord, rangeStream},
		{"count of ranges", rangesDump(0xa), func(m *bin) { m.u32(0x2020, 1<<31) }, dump.BadCount, rangeStream},
		{"range beyond all memory", rangesDump(8), func(m *bin) { m.u64(0x2040, 1<<50) }, dump.OutOfRange, rangeStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &bin{bytes.Clone(c.base)}
			c.edit(m)
			f := openBytes(t, m.b)
			if p := f.PhysicalMemory(); p != nil {
				for range p.Runs() {
				}
			}
			for _, d := range f.Damage() {
				if d.Code == c.code && d.Stream == c.part {
					return
				}
			}
			t.Errorf("no damage %s of %s among %v", c.code, c.part, f.Damage())
		})
	}
}

// TestCutPhysical opens every layout cut at many lengths: the pages that remain
// can be read and the cut is told.
func TestCutPhysical(t *testing.T) {
	for name, b := range map[string][]byte{"runs": runsDump(4), "bitmap": bitmapDump(5, 4), "ranges": rangesDump(8)} {
		for cut := 0x2000; cut < len(b); cut += 0x7f {
			f := openBytes(t, b[:cut])
			if len(f.Damage()) == 0 {
				t.Errorf("%s cut at %#x: no damage", name, cut)
			}
			if m := f.PhysicalMemory(); m != nil {
				var buf [1]byte
				whole := int64(cut) - (int64(len(b)) - 4*4096)
				_, err := m.ReadAt(buf[:], 2<<12)
				if (whole >= 1) != (err == nil) {
					t.Errorf("%s cut at %#x: first page: %v", name, cut, err)
				}
			}
		}
	}
}

// TestHeader32 reads runs of a 32-bit dump: at 0x64 {runs u32, pages u32}, then
// pairs of u32; pages from 0x1000 on.
func TestRuns32(t *testing.T) {
	m := &bin{bytes.Repeat([]byte("PAGE"), 0x1000/4)}
	m.put(0, []byte("PAGEDUMP"))
	m.u32(0x20, 0x14c)
	m.u32(0xf88, 1)
	for i, v := range []uint32{3, 4, 2, 2, 6, 1, 9, 1} {
		m.u32(0x64+4*i, v)
	}
	addPages(m)
	p := openBytes(t, m.b).PhysicalMemory()
	if p == nil || p.Pages() != 4 {
		t.Fatal("no pages")
	}
	v, err := dump.ReadUint32(p, 9<<12)
	if err != nil || v != 0x1009 {
		t.Errorf("%#x, %v", v, err)
	}
}

// TestHeaderOnly: nothing is missing from a dump that never had more.
func TestHeaderOnly(t *testing.T) {
	f := openBytes(t, header64Bytes(3, 0, [4]uint64{}).b)
	if d := f.Damage(); len(d) != 1 || !d[0].Warning || f.PhysicalMemory() != nil || f.Full() {
		t.Errorf("%v", f.Damage())
	}
}

// TestIndexIsSmall: the index of 512 GB of memory, a bitmap of 16 MB, is an
// eighth of it.
func TestIndexIsSmall(t *testing.T) {
	const bits = 1 << 27
	m := header64Bytes(5, 0, [4]uint64{})
	m.put(0x2000, []byte("SDMPDUMP"))
	m.u64(0x2020, 0x2038+bits/8)
	m.u64(0x2028, bits)
	m.u64(0x2030, bits)
	m.put(0x2038, bytes.Repeat([]byte{0xff}, bits/8))
	f := openBytes(t, m.b)
	p, ok := f.PhysicalMemory().pages.(*bitmapMap)
	if !ok || cap(p.before)*8 > bits/8/8+64 {
		t.Fatalf("index of %d bytes for a bitmap of %d", cap(p.before)*8, bits/8)
	}
	if off, ok := p.locate(bits - 1); !ok || off != 0x2038+bits/8+(bits-1)*4096 {
		t.Errorf("last page at %#x, %v", off, ok)
	}
}

func FuzzPhysical(f *testing.F) {
	for _, b := range [][]byte{runsDump(4), bitmapDump(5, 4), rangesDump(8), rangesDump(0xa)} {
		f.Add(b[0x80:0x100], b[0x2000:0x2080], uint8(b[0xf98]))
	}
	f.Fuzz(func(t *testing.T, head, table []byte, kind uint8) {
		m := header64Bytes(uint32(kind), 0, [4]uint64{})
		m.put(0x80, head[:min(len(head), 0x2c0)])
		m.append(table)
		m.grow(0x6000)
		d, err := Open(bytes.NewReader(m.b), int64(len(m.b)), "fuzz")
		if err != nil {
			return
		}
		if p := d.PhysicalMemory(); p != nil {
			n := 0
			for r := range p.Runs() {
				if n++; n > 1000 {
					break
				}
				var b [16]byte
				_, _ = p.ReadAt(b[:], r.VA+r.Size-8)
			}
		}
		d.Threads()
		d.Modules()
	})
}
