package kdump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"dumptriage/dump"
)

// physOf is the physical memory of a machine.
func physOf(t testing.TB, m *handBuilt) *PhysicalMemory {
	t.Helper()
	f := openBytes(t, m.bitmap(header64Bytes(5, 0, [4]uint64{})))
	if f.PhysicalMemory() == nil {
		t.Fatalf("no memory: %v", f.Damage())
	}
	return f.PhysicalMemory()
}

// want is what reading at an address must give: a word, or a state.
type want struct {
	va    uint64
	word  uint64
	state PageState
}

func checkPages(t *testing.T, s *AddressSpace, wants []want) {
	t.Helper()
	for _, w := range wants {
		for range 2 { // the second time from the caches
			v, err := dump.ReadUint64(s, w.va)
			var pe *PageError
			errors.As(err, &pe)
			switch {
			case w.state < PageDemandZero && (err != nil || v != w.word):
				t.Errorf("%s: %#x holds %#x, %v; want %#x", s.Mode(), w.va, v, err, w.word)
			case w.state >= PageDemandZero && (pe == nil || pe.State != w.state):
				t.Errorf("%s: %#x: %v, want %v", s.Mode(), w.va, err, w.state)
			}
		}
		if pa, state := s.Translate(w.va); state != w.state {
			t.Errorf("%s: %#x translates to %#x, %v; want %v", s.Mode(), w.va, pa, state, w.state)
		}
	}
}

// amd64Machine maps by hand, for 4 or 5 levels of tables.
func amd64Machine(levels int) (m *handBuilt, root uint64, wants []want) {
	m = newMachine()
	m.levels = levels
	root = m.page()
	mark := func(pa, word uint64) uint64 { m.pages[pa>>12] = markedPage(word); return pa }
	const va = 0xfffff78000000000
	data := mark(m.page(), 0x11)
	// Valid; with no-execute (63), a software bit (52) and global (8) around it.
	m.setEntry(m.pte(root, va), data|0x8010000000000163)
	// Large page of 2 MiB at 0x40000000 with PAT (bit 12): only one page is kept.
	pde := (m.pte(root, va+0x200000) &^ 0xfff) // the table just made; its entry is replaced
	delete(m.pages, pde>>12)
	pd := func(at uint64) uint64 { return dirEntry(m, root, at, 2) }
	m.setEntry(pd(va+0x200000), 0x40000000|1<<12|0xe3)
	mark(0x40003000, 0x22)
	// 1 GiB page at 0x80000000, PAT too.
	m.setEntry(dirEntry(m, root, va+0x40000000, 3), 0x80000000|1<<12|0xe3)
	mark(0x92345000, 0x33)
	// Transition: bit 11, not 10; plain with the swizzle bit, masked without.
	tr := mark(m.page(), 0x44)
	m.setEntry(m.pte(root, va+0x1000), tr|1<<11|1<<4|4<<5)
	m.setEntry(m.pte(root, va+0x2000), tr|1<<11|1<<45|4<<5)
	m.setEntry(m.pte(root, va+0xb000), tr|1<<11|1<<42|4<<5) // masked at another bit
	// Prototype: bits 16 up are the address of a prototype PTE.
	const protos = 0xffff8a0012340000
	shared := mark(m.page(), 0x55)
	m.write(root, protos, make([]byte, 64))
	for i, p := range []uint64{shared | 0x121, shared | 1<<11 | 1<<4, 0, 0x123<<32 | 4<<5, 0xdeadbeef0<<16 | 1<<10, shared | 0x121 | 1<<62} {
		m.u64(root, protos+uint64(8*i), p)
		m.setEntry(m.pte(root, va+0x3000+uint64(i)<<12), (protos+uint64(8*i))<<16|1<<10|1<<4)
	}
	m.setEntry(m.pte(root, va+0x10000), uint64(protos&0xffffffffffff)<<16^1<<45|1<<10) // masked
	m.setEntry(m.pte(root, va+0x9000), 0xffffffff0000<<16|1<<10|4<<5)                  // only the VADs know
	m.setEntry(m.pte(root, va+0x11000), uint64(0xffffffff0000)<<16^1<<45|1<<10|4<<5)   // the same, masked
	m.setEntry(m.pte(root, va+0x12000), 0x10<<5|1<<4)                                  // committed no longer
	m.setEntry(m.pte(root, va+0xa000), 0x8a7700000000<<16|1<<10|1<<4)                  // no such prototype PTE
	m.setEntry(m.pte(root, va+0xc000), 4<<5|1<<45)                                     // protection alone: demand zero
	m.setEntry(m.pte(root, va+0xd000), 0x7777<<32|2<<12|4<<5)                          // page file 2
	m.setEntry(m.pte(root, va+0xe000), 0x7fff000|0x63)                                 // not in the dump
	m.setEntry(dirEntry(m, root, va+0x600000, 2), 0x6666000|0x63)                      // a table that is not
	m.setEntry(dirEntry(m, root, va+0x800000, 2), 0x99<<32|4<<5)                       // a table in the page file
	m.setEntry(root+0x1ed*8, root|0x63)                                                // maps itself
	// Tables in transition, of a trimmed process: the last one plain, one above it masked, one that is gone.
	trimmed := m.page()
	m.setEntry(trimmed+5*8, data|0x63)
	m.setEntry(trimmed+6*8, tr|1<<11|1<<4|4<<5)
	m.setEntry(dirEntry(m, root, va+0xa00000, 2), trimmed|1<<11|1<<4|4<<5)
	m.setEntry(dirEntry(m, root, va+0xc00000, 2), 0x7777000|1<<11|1<<4|4<<5)
	above := m.page()
	m.setEntry(above, trimmed|0x63)
	m.setEntry(dirEntry(m, root, va+0x80000000, 3), above|1<<11|1<<45|4<<5)
	return m, root, []want{
		{va + 0xa05000, 0x11, PageValid}, {va + 0xa06000, 0x44, PageTransition}, {va + 0xa07000, 0, PageInvalid},
		{va + 0xc00000, 0, PageTableMissing}, {va + 0x80005000, 0x11, PageValid}, {va + 0x80200000, 0, PageInvalid},
		{va, 0x11, PageValid},
		{va + 0x200000 + 0x3008, 0x22, PageValid},
		{va + 0x40000000 + 0x12345010, 0x33, PageValid},
		{va + 0x1000, 0x44, PageTransition}, {va + 0x2000, 0x44, PageTransition}, {va + 0xb000, 0x44, PageTransition},
		{va + 0x3000, 0x55, PagePrototype}, {va + 0x4000, 0x55, PagePrototype},
		{va + 0x5000, 0, PageReserved}, {va + 0x6000, 0, PagePagedOut}, {va + 0x7000, 0, PageMappedFile}, {va + 0x8000, 0x55, PagePrototype},
		{va + 0x10000, 0x55, PagePrototype},
		{va + 0x9000, 0, PageMappedFile}, {va + 0x11000, 0, PageMappedFile}, {va + 0xa000, 0, PageTableMissing}, {va + 0x12000, 0, PageReserved},
		{va + 0xc000, 0, PageDemandZero}, {va + 0xd000, 0, PagePagedOut},
		{va + 0xf000, 0, PageInvalid}, {va + 0x400000, 0, PageInvalid},
		{va + 0x600000, 0, PageTableMissing}, {va + 0x800000, 0, PagePagedOut},
		{0x0123456789abcdef &^ 7, 0, PageNonCanonical},
	}
}

// dirEntry returns the physical address of va's entry of a level, making the
// tables above it.
func dirEntry(m *handBuilt, root, va uint64, level int) uint64 {
	table := root
	for l := m.levels; l > level; l-- {
		at := table + va>>(12+9*(l-1))&0x1ff*8
		if m.entry(at) == 0 {
			m.setEntry(at, m.page()|0x27)
		}
		table = m.entry(at) & 0x000ffffffffff000
	}
	return table + va>>(12+9*(level-1))&0x1ff*8
}

func TestPagingAMD64(t *testing.T) {
	for _, levels := range []int{4, 5} {
		m, root, wants := amd64Machine(levels)
		s := newAddressSpace(physOf(t, m), pagingAMD64{levels}, root|0x002, nil) // with a PCID
		checkPages(t, s, wants)
		if levels == 4 {
			continue
		}
		far := uint64(0xff12345678900000) // an address that four levels cannot reach
		m.write(root, far, markedPage(0x66))
		checkPages(t, newAddressSpace(physOf(t, m), pagingAMD64{5}, root, nil), []want{{far, 0x66, PageValid}})
		checkPages(t, newAddressSpace(physOf(t, m), pagingAMD64{4}, root, nil), []want{{far, 0, PageNonCanonical}})
	}
}

// TestNotInDump: the page is mapped and was left out; Translate knows where it
// would be.
func TestNotInDump(t *testing.T) {
	m, root, _ := amd64Machine(4)
	s := newAddressSpace(physOf(t, m), pagingAMD64{4}, root, nil)
	const va = 0xfffff7800000e123
	_, err := dump.ReadUint64(s, va)
	if pageStateOf(err) != PageNotInDump {
		t.Errorf("%v", err)
	}
	if pa, state := s.Translate(va); pa != 0x7fff123 || state != PageNotInDump {
		t.Errorf("%#x, %v", pa, state)
	}
}

// TestAcrossPages reads over two pages that are apart in memory, and counts what
// it got before one that is missing.
func TestAcrossPages(t *testing.T) {
	m := newMachine()
	root := m.page()
	m.write(root, 0x7ff600000000, markedPage(1))
	m.page()
	m.write(root, 0x7ff600001000, markedPage(2))
	s := newAddressSpace(physOf(t, m), pagingAMD64{4}, root, nil)
	b := make([]byte, 0x3000)
	n, err := s.ReadAt(b, 0x7ff600000800)
	var me *dump.MemoryError
	if n != 0x1800 || !errors.As(err, &me) || me.VA != 0x7ff600002000 || pageStateOf(err) != PageInvalid {
		t.Errorf("%#x bytes, %v", n, err)
	}
	if !bytes.Equal(b[0x7f8:0x808], []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("at the border % x", b[0x7f8:0x808])
	}
	if n, err := s.ReadAt(b[:16], ^uint64(0)-7); n != 0 || err == nil {
		t.Errorf("at the end of the address space: %d, %v", n, err)
	}
}

// TestPagingX86 has two levels of 4-byte entries with a large page, and PAE.
func TestPagingX86(t *testing.T) {
	m := newMachine()
	root, table, data := m.page(), m.page(), m.page()
	set32 := func(pa, v uint64) { binary.LittleEndian.PutUint32(m.pages[pa>>12][pa&0xfff:], uint32(v)) }
	m.pages[data>>12] = markedPage(0x11)
	set32(root+0x80400000>>22*4, table|0x63)
	set32(table+0x123*4, data|0x63)
	set32(table+0x124*4, data|1<<11)
	set32(table+0x125*4, 0x80)
	set32(table+0x126*4, 0x5000|0x80)
	m.pages[0x1234] = markedPage(0x22)
	set32(root+0x81000000>>22*4, 0x1000000|1<<7|0x63) // 4 MiB
	m.pages[0x312345] = markedPage(0x77)
	set32(root+0x82000000>>22*4, 0x12000000|3<<13|1<<7|0x63) // 4 MiB at 0x312000000, its bits from 32 up in 13 and 14
	set32(root+0x83000000>>22*4, table|1<<11|4<<5)           // its table is in transition
	s := newAddressSpace(physOf(t, m), pagingX86{}, root, nil)
	checkPages(t, s, []want{
		{0x83123000, 0x11, PageValid},
		{0x82345000, 0x77, PageValid},
		{0x80523000, 0x11, PageValid}, {0x80524000, 0x11, PageTransition}, {0x80525000, 0, PageDemandZero}, {0x80526000, 0, PagePagedOut},
		{0x80527000, 0, PageInvalid}, {0x81234000, 0x22, PageValid}, {0x90000000, 0, PageInvalid}, {0x1_00000000, 0, PageNonCanonical},
	})

	m = newMachine()
	pdpt, dir, table, data := m.page()|0x20, m.page(), m.page(), m.page() // PDPT at a multiple of 32
	m.pages[data>>12] = markedPage(0x33)
	m.setEntry(pdpt+2*8, dir|1)
	m.setEntry(dir+2*8, table|0x63) // 0x80400000
	m.setEntry(dir+3*8, table|1<<11|1<<4|4<<5)
	m.setEntry(table+0x123*8, data|0x8000000000000063)
	const proto = 0x80523ff0 // in the page of data: its last words
	m.setEntry(table+0x124*8, proto<<32|1<<10)
	shared := m.page()
	m.pages[shared>>12] = markedPage(0x44)
	m.setEntry(data+0xff0, shared|1)
	m.setEntry(dir+8*8, 0x40000000|1<<7|0x63)
	m.pages[0x40123] = markedPage(0x55)
	s = newAddressSpace(physOf(t, m), pagingX86{pae: true}, pdpt, nil)
	checkPages(t, s, []want{
		{0x80723000, 0x33, PageValid}, {0x80523000, 0x33, PageValid}, {0x80524000, 0x44, PagePrototype}, {0x81123000, 0x55, PageValid}, {0x80525000, 0, PageInvalid}, {0xc0000000, 0, PageInvalid},
	})
}

// TestPagingARM64: table and page descriptors have bits 0 and 1 set, blocks bit 0
// alone; 0x403 is what a valid page of normal memory looks like.
func TestPagingARM64(t *testing.T) {
	m := newMachine()
	root, l1, l2, l3, data := m.page(), m.page(), m.page(), m.page(), m.page()
	m.pages[data>>12] = markedPage(0x11)
	m.pages[0x40003] = markedPage(0x22)
	m.pages[0x80001] = markedPage(0x33)
	const va = 0xfffff80000000000 // index 0x1f0 of the top table
	m.setEntry(root+0x1f0*8, l1|3)
	m.setEntry(l1, l2|3)
	m.setEntry(l1+8, 0x80000000|1) // block of 1 GiB
	m.setEntry(l2, l3|3)
	m.setEntry(l2+8, 0x40000000|1)   // block of 2 MiB
	m.setEntry(l2+16, l3|1<<11|4<<1) // a table in transition
	m.setEntry(l3, data|0x0060000000000403)
	m.setEntry(l3+8, data|1) // no form of a page
	wants := []want{
		{va, 0x11, PageValid}, {va + 0x400000, 0x11, PageValid}, {va + 0x203000, 0x22, PageValid}, {va + 0x40001000, 0x33, PageValid},
		{va + 0x1000, 0, PageInvalid}, {va + 0x2000, 0, PageInvalid}, {0x1000, 0, PageInvalid},
	}
	checkPages(t, newAddressSpace(physOf(t, m), pagingARM64{}, root, nil), wants)
	// A process's own tables translate the lower half, the system's the upper.
	user := m.page()
	ul1, ul2, ul3 := m.page(), m.page(), m.page()
	m.setEntry(user, ul1|3)
	m.setEntry(ul1, ul2|3)
	m.setEntry(ul2, ul3|3)
	m.setEntry(ul3+8, data|0x403)
	phys := physOf(t, m)
	system := newAddressSpace(phys, pagingARM64{}, root, nil)
	checkPages(t, newAddressSpace(phys, pagingARM64{}, user, system), []want{{va, 0x11, PageValid}, {0x1000, 0x11, PageValid}, {0, 0, PageInvalid}})
	// TTBR1's own table counts from its beginning.
	m.setEntry(root+0xf0*8, l1|3)
	m.setEntry(root+0x1f0*8, 0)
	checkPages(t, newAddressSpace(physOf(t, m), pagingARM64{short: true}, root, nil), wants[:4])
}

// TestSoftwareARM64: protection in bits 1 to 5, the paging file in bits 6 to 9, the
// kinds as on x64; no bit is a mask, so that bit 45 of a transition entry belongs to
// the frame's number.
func TestSoftwareARM64(t *testing.T) {
	m := newMachine()
	root, l1, l2, l3, data := m.page(), m.page(), m.page(), m.page(), m.page()
	m.pages[data>>12] = markedPage(0x11)
	m.setEntry(root+0x1f0*8, l1|3)
	m.setEntry(l1, l2|3)
	m.setEntry(l2, l3|3)
	const va, readWrite = 0xfffff80000000000, 4 << 1
	for i, e := range []uint64{
		data | 1<<11 | readWrite, 1<<45 | data | 1<<11 | readWrite, data | 0x403, readWrite, 0x10 << 1, 0x777<<32 | 3<<6 | readWrite,
		(va&0xffffffffffff+6*8+0x100000)<<16 | 1<<10 | readWrite, 0xffffffff0000<<16 | 1<<10 | readWrite, (va&0xffffffffffff+0x5000)<<16 | 1<<10 | readWrite,
	} {
		m.setEntry(l3+8*uint64(i), e)
	}
	protos := m.page()
	m.setEntry(l3+0x100*8, protos|0x403) // at va+0x100000
	m.setEntry(protos+6*8, data|1<<11|readWrite)
	s := newAddressSpace(physOf(t, m), pagingARM64{}, root, nil)
	checkPages(t, s, []want{
		{va, 0x11, PageTransition}, {va + 0x1000, 0, PageNotInDump}, {va + 0x2000, 0x11, PageValid}, {va + 0x3000, 0, PageDemandZero},
		{va + 0x4000, 0, PageReserved}, {va + 0x5000, 0, PagePagedOut}, {va + 0x6000, 0x11, PagePrototype}, {va + 0x7000, 0, PageMappedFile},
		{va + 0x8000, 0, PageTableMissing},
	})
	if p := s.Page(va + 0x5000); p.PageFile == nil || *p.PageFile != (PageFilePlace{3, 0x777000}) {
		t.Errorf("%+v", p.PageFile)
	}
}

// BenchmarkTranslate reads one word of each of 200,000 pages, most of which the
// cache of pages has lost again but whose tables it knows.
func BenchmarkTranslate(b *testing.B) {
	s := benchSpace(b)
	var buf [8]byte
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := s.ReadAt(buf[:], 0x7ff600000000+uint64(i%20000)<<12); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpages/s")
}

// BenchmarkTranslateWarm reads pages that the cache of pages knows.
func BenchmarkTranslateWarm(b *testing.B) {
	s := benchSpace(b)
	var buf [8]byte
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := s.ReadAt(buf[:], 0x7ff600000000+uint64(i%512)<<12); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpages/s")
}

func benchSpace(b *testing.B) *AddressSpace {
	m := newMachine()
	root := m.page()
	for i := range uint64(20000) {
		m.write(root, 0x7ff600000000+i<<12, []byte{1})
	}
	return newAddressSpace(physOf(b, m), pagingAMD64{4}, root, nil)
}

func FuzzTranslate(f *testing.F) {
	m, root, wants := amd64Machine(4)
	file := m.bitmap(header64Bytes(5, 0, [4]uint64{}))
	for _, w := range wants {
		f.Add(w.va, uint64(0x63), uint8(0))
	}
	f.Fuzz(func(t *testing.T, va, entry uint64, mode uint8) {
		b := bytes.Clone(file)
		d, err := Open(bytes.NewReader(b), int64(len(b)), "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		phys := d.PhysicalMemory()
		off, _ := phys.pages.locate(root >> 12)
		binary.LittleEndian.PutUint64(b[off+int64(va>>39&0x1ff*8):], entry)
		walkers := []pageWalker{pagingAMD64{4}, pagingAMD64{5}, pagingX86{}, pagingX86{pae: true}, pagingARM64{}, pagingARM64{short: true}}
		s := newAddressSpace(phys, walkers[int(mode)%len(walkers)], root, nil)
		var buf [0x1800]byte
		n, err := s.ReadAt(buf[:], va)
		if n < len(buf) && err == nil || n == len(buf) && err != nil {
			t.Errorf("%d bytes and %v", n, err)
		}
	})
}

// TestMaskedEntries: what speculation is kept from by a mask must be undone only
// where there is a mask. A machine of 64 GB has pages whose numbers have high bits
// of their own, and dumps of kernel memory leave most of them out.
func TestMaskedEntries(t *testing.T) {
	m := newMachine()
	root := m.page()
	m.pages[0xf00000] = markedPage(0x99) // at 60 GB
	const va, protos, other = 0xfffff78000000000, 0xffff8a0012340000, 0xffff8a0012340000 ^ 1<<29
	near, far := m.page(), m.page()
	m.pages[near>>12], m.pages[far>>12] = markedPage(0x11), markedPage(0x22)
	const transition, prototype, protection = 1 << 11, 1 << 10, 4 << 5
	m.setEntry(m.pte(root, va), near|1<<35|transition|protection)               // a page at 32 GB, left out
	m.setEntry(m.pte(root, va+0x1000), near|1<<35|1<<45|transition|protection)  // the same, masked
	m.setEntry(m.pte(root, va+0x2000), near|1<<40|transition|protection)        // masked at a bit that no page has
	m.setEntry(m.pte(root, va+0x3000), 0xf00000000|1<<45|transition|protection) // the page at 60 GB
	// Prototype PTEs at an address and at the one that the mask turns it into.
	low := func(va uint64) uint64 { return va << 16 }
	m.u64(root, protos, near|0x121)
	m.u64(root, other, far|0x121)
	m.u64(root, other+0x10000, far|0x121)
	m.setEntry(m.pte(root, va+0x4000), low(other)|prototype)          // masked: protos is meant
	m.setEntry(m.pte(root, va+0x5000), low(other)|prototype|1<<4)     // as it stands
	m.setEntry(m.pte(root, va+0x6000), low(protos+0x10000)|prototype) // bit 45 clear: no mask, and nothing there
	phys := physOf(t, m)
	wants := []want{
		{va, 0, PageNotInDump}, {va + 0x1000, 0, PageNotInDump}, {va + 0x2000, 0x11, PageTransition}, {va + 0x3000, 0x99, PageTransition},
		{va + 0x4000, 0x11, PagePrototype}, {va + 0x5000, 0x22, PagePrototype}, {va + 0x6000, 0, PageTableMissing},
	}
	check := func(wants []want) {
		s := newAddressSpace(phys, pagingAMD64{4}, root, nil)
		for _, w := range wants {
			v, err := dump.ReadUint64(s, w.va)
			if readable := w.state < PageDemandZero; readable && (err != nil || v != w.word) || !readable && pageStateOf(err) != w.state {
				t.Errorf("masked %v: %#x holds %#x, %v; want %#x, %v", phys.masked, w.va, v, err, w.word, w.state)
			}
		}
	}
	if !phys.masked {
		t.Error("a build of 2020 is not known to mask")
	}
	check(wants)
	phys.masked = false // a build from before: updated or not, nobody knows
	wants[4] = want{va + 0x4000, 0, PageTableMissing}
	check(wants)
}
