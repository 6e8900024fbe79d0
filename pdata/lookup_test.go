package pdata

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"dumptriage/dump"
)

// info is an UNWIND_INFO of version 1 without codes.
var info = []byte{1, 0, 0, 0}

func wantCode(t *testing.T, err error, code dump.Code) {
	t.Helper()
	var e *dump.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

// wantLookup checks a lookup's answer: begin 0 means that nothing covers rva.
func wantLookup(t *testing.T, im *Image, rva, begin uint32) {
	t.Helper()
	rf, ok, err := im.Lookup(rva)
	if err != nil || ok != (begin != 0) || rf.Begin != begin {
		t.Errorf("Lookup(%#x) = %#x, %v, %v; want begin %#x", rva, rf, ok, err, begin)
	}
}

func TestLookupEdges(t *testing.T) {
	im := withTable(info,
		0x1010, 0x1020, 0x4000,
		0x1020, 0x1030, 0x4000, // adjoins
		0x1040, 0x1050, 0x4000, // a leaf may lie before
		0, 0, 0, 0, 0, 0, // padding
	).open(t)
	for _, tt := range [][2]uint32{
		{0, 0}, {0x100f, 0}, {0x1010, 0x1010}, {0x101f, 0x1010}, {0x1020, 0x1020}, {0x102f, 0x1020},
		{0x1030, 0}, {0x103f, 0}, {0x1040, 0x1040}, {0x104f, 0x1040}, {0x1050, 0}, {0xffffffff, 0},
	} {
		wantLookup(t, im, tt[0], tt[1])
	}
	if !im.HasFunctionTable() {
		t.Error("HasFunctionTable is false")
	}
}

// Every entry of a table of many blocks is found, with padding in its middle.
func TestLookupManyBlocks(t *testing.T) {
	var entries []uint32
	for i := range uint32(1000) {
		if i%100 == 37 {
			entries = append(entries, 0, 0, 0)
		}
		entries = append(entries, 0x1000+i*4, 0x1000+i*4+3, 0x4000)
	}
	im := withTable(info, entries...).open(t)
	for i := range uint32(1000) {
		wantLookup(t, im, 0x1000+i*4, 0x1000+i*4)
		wantLookup(t, im, 0x1000+i*4+3, 0) // between two
	}
	if im.table().sorted != nil {
		t.Error("a table in order was copied")
	}
}

// Linkers exist that leave the table out of order (Go programs passed through
// packers, measured): the answers must be those of the ordered table.
func TestLookupUnsorted(t *testing.T) {
	im := withTable(info,
		0x1040, 0x1050, 0x4000,
		0x1010, 0x1020, 0x4000,
		0, 0, 0,
		0x1030, 0x1040, 0x4000,
		0x1000, 0x1010, 0x4000,
	).open(t)
	for rva := uint32(0x1000); rva < 0x1060; rva++ {
		want := rva &^ 15
		if want == 0x1020 || want == 0x1050 {
			want = 0
		}
		wantLookup(t, im, rva, want)
	}
}

// An indirect entry (bit 0) is the address of another entry, whose Begin
// counts from then on.
func TestLookupIndirect(t *testing.T) {
	infos := slices.Concat(info, // 0x4000
		u32s(0x1100, 0x1200, 0x4011), // 0x4004: indirect again, to 0x4010
		u32s(0x1300, 0x1400, 0x4000), // 0x4010
		u32s(0, 0, 0x401d),           // 0x401c: indirect to itself
	)
	im := withTable(infos,
		0x1010, 0x1020, 0x4005,
		0x1020, 0x1030, 0x401d,
		0x1030, 0x1040, 0x9001, // to an RVA outside the image
	).open(t)
	rf, ok, err := im.Lookup(0x1018)
	if want := (RuntimeFunction{0x1300, 0x1400, 0x4000}); !ok || err != nil || rf != want {
		t.Errorf("got %#x, %v, %v; want %#x", rf, ok, err, want)
	}
	_, ok, err = im.Lookup(0x1028)
	if wantCode(t, err, dump.Cycle); ok {
		t.Error("a cycle of indirect entries gave an entry")
	}
	_, ok, err = im.Lookup(0x1038)
	if wantCode(t, err, dump.OutOfRange); ok {
		t.Error("an indirect entry outside the image gave an entry")
	}
	// The range is that of the entry that covers the address, wherever it leads.
	for _, rva := range []uint32{0x1018, 0x1028, 0x1038} {
		if begin, end, ok := im.Extent(rva); !ok || begin != rva&^15 || end != rva&^15+16 {
			t.Errorf("extent of %#x: %#x to %#x, %v", rva, begin, end, ok)
		}
	}
	if begin, end, ok := im.Extent(0x1040); ok || begin != 0 || end != 0 {
		t.Errorf("extent behind the table: %#x to %#x, %v", begin, end, ok)
	}
}

// chained is an UNWIND_INFO without codes that is chained to an entry.
func chained(begin, end, info uint32) []byte {
	return append([]byte{0x21, 0, 0, 0}, u32s(begin, end, info)...)
}

func TestPrimary(t *testing.T) {
	infos := slices.Concat(
		chained(0x1010, 0x1020, 0x4010), // 0x4000
		chained(0x1000, 0x1010, 0x4020), // 0x4010
		info, make([]byte, 12),          // 0x4020
		chained(0x1040, 0x1050, 0x4030), // 0x4030: to itself
		chained(0x1060, 0x1070, 0x8000), // 0x4040: info outside the image
		chained(0x1060, 0x1070, 0x4061), // 0x4050: an indirect entry at 0x4060
		u32s(0x1000, 0x1010, 0x4020),    // 0x4060
		make([]byte, 4),
		chained(0x1040, 0x1050, 0x4030), // 0x4070: to the one that is chained to itself
	)
	im := withTable(infos,
		0x1000, 0x1010, 0x4020,
		0x1010, 0x1020, 0x4010,
		0x1020, 0x1030, 0x4000,
		0x1040, 0x1050, 0x4030,
		0x1050, 0x1060, 0x4040,
		0x1070, 0x1080, 0x4050,
		0x1080, 0x1090, 0x4070,
	).open(t)
	for _, tt := range []struct {
		rva, begin uint32
		why        string
	}{
		{0x1000, 0x1000, "not chained"},
		{0x1018, 0x1000, "one link"},
		{0x1028, 0x1000, "two links"},
		{0x1048, 0x1040, "a cycle has no first entry"},
		{0x1088, 0x1080, "a chain into a cycle has none either"},
		{0x1058, 0x1060, "the last entry reached"},
		{0x1078, 0x1000, "an indirect link"},
	} {
		if begin, ok := im.FunctionStart(tt.rva); !ok || begin != tt.begin {
			t.Errorf("FunctionStart(%#x) = %#x, %v; want %#x: %s", tt.rva, begin, ok, tt.begin, tt.why)
		}
	}
	if _, ok := im.FunctionStart(0x1034); ok {
		t.Error("FunctionStart found a function where none is")
	}
}

// A directory that claims more than the image holds is clipped; one that lies
// outside gives an error; none, or another machine's, gives no answer.
func TestDirectoryClaims(t *testing.T) {
	p := withTable(info, 0x1010, 0x1020, 0x4000)
	p.dirs[3][1] = 0xffffffff
	wantLookup(t, p.open(t), 0x1018, 0x1010)

	p.dirs[3] = [2]uint32{0x00900000, 24}
	im := p.open(t)
	_, ok, err := im.Lookup(0x1018)
	if wantCode(t, err, dump.OutOfRange); ok || im.HasFunctionTable() {
		t.Error("a directory outside the image was used")
	}

	p.dirs[3] = [2]uint32{0x5000, 0}
	wantLookup(t, p.open(t), 0x1018, 0)

	p.dirs[3] = [2]uint32{0x5000, 12}
	p.machine = 0xaa64 // ARM64 entries are of 8 bytes
	im = p.open(t)
	if wantLookup(t, im, 0x1018, 0); im.HasFunctionTable() {
		t.Error("an ARM64 image has an x64 table")
	}
}

// TestLookupMissingPages takes pages of the table away: an entry in a page that
// is there is found, and where the entry may have been lost that is said.
func TestLookupMissingPages(t *testing.T) {
	const base = 0x7ff600000000
	var entries []uint32
	for i := range uint32(1200) { // 14400 bytes: four pages, entries cross their borders
		entries = append(entries, 0x1000+i*8, 0x1000+i*8+6, 0x6000)
	}
	p := newPE().add(0x1000, scnCode, make([]byte, 0x4000)).add(0x6000, scnData, info).add(0x7000, scnData, u32s(entries...))
	p.dirs[3] = [2]uint32{0x7000, 14400}
	for missing := range 1 << 4 {
		mem := mapImage(p.bytes(), base)
		for k := range 4 {
			if missing>>k&1 == 1 {
				delete(mem, base+0x7000+uint64(k)*0x1000)
			}
		}
		im, err := OpenMapped(mem, base, "holes.dll")
		if err != nil {
			t.Fatal(err)
		}
		there := func(i int) bool { // by the bytes of entry i, and no index is out of the table
			return i >= 0 && i < 1200 && missing>>(i*12>>12)&1 == 0 && missing>>((i*12+11)>>12)&1 == 0
		}
		for i := range 1200 {
			rva := 0x1000 + uint32(i)*8
			rf, ok, err := im.Lookup(rva)
			if there(i) {
				if !ok || err != nil || rf.Begin != rva {
					t.Fatalf("missing %04b: entry %d: %v %v %v", missing, i, rf, ok, err)
				}
			} else if ok || err == nil {
				t.Fatalf("missing %04b: entry %d is not there, and the answer is %v %v %v", missing, i, rf, ok, err)
			}
			// Between entry i and the next: known to be a leaf if i is there and
			// what follows it is.
			_, ok, err = im.Lookup(rva + 7)
			if known := there(i) && (there(i+1) || i == 1199); ok || (err == nil) != known {
				t.Fatalf("missing %04b: after entry %d: %v %v, known %v", missing, i, ok, err, known)
			}
		}
	}
}

// A table out of order is sorted: what of it is there is found all the same, and
// what may have been in a missing part is said not to be known.
func TestLookupMissingPagesUnordered(t *testing.T) {
	const base, n = 0x7ff600000000, 1200
	var entries []uint32
	for i := range uint32(n) {
		begin := 0x1000 + (n-1-i)*8 // the last function first
		entries = append(entries, begin, begin+6, 0x6000)
	}
	p := newPE().add(0x1000, scnCode, make([]byte, 0x4000)).add(0x6000, scnData, info).add(0x7000, scnData, u32s(entries...))
	p.dirs[3] = [2]uint32{0x7000, n * 12}
	for missing := range 1 << 4 {
		mem := mapImage(p.bytes(), base)
		for k := range 4 {
			if missing>>k&1 == 1 {
				delete(mem, base+0x7000+uint64(k)*0x1000)
			}
		}
		im, err := OpenMapped(mem, base, "turned.dll")
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			rva := 0x1000 + uint32(n-1-i)*8
			there := missing>>(i*12>>12)&1 == 0 && missing>>((i*12+11)>>12)&1 == 0
			rf, ok, err := im.Lookup(rva)
			if ok != there || (err == nil) != there || there && rf.Begin != rva {
				t.Fatalf("missing %04b: entry %d: %v %v %v", missing, i, rf, ok, err)
			}
		}
		if _, ok, err := im.Lookup(0x1007); ok || (err == nil) != (missing == 0) {
			t.Errorf("missing %04b: between functions: %v %v", missing, ok, err)
		}
	}
}

// A file that ends inside its table: behind the last entry that is there no
// address can be called a leaf.
func TestLookupTruncatedFile(t *testing.T) {
	p := withTable(info, 0x1010, 0x1020, 0x4000, 0x1020, 0x1030, 0x4000, 0x1030, 0x1040, 0x4000)
	file := p.bytes()
	const table = 0x400 + 0x3000 + 0x200
	im := openTest(t, file[:table+24+5], "cut.dll") // two entries and a part
	wantLookup(t, im, 0x1010, 0x1010)
	wantLookup(t, im, 0x102f, 0x1020)
	wantLookup(t, im, 0x100f, 0)
	_, ok, err := im.Lookup(0x1030)
	if wantCode(t, err, dump.Truncated); ok {
		t.Error("found an entry that is not in the file")
	}
	p.dirs[3][1] = 1200 // more than there is, but zeros follow up to the page's end
	wantLookup(t, p.open(t), 0x1040, 0)
}

func TestWarmLookupsDoNotAllocate(t *testing.T) {
	im := openTest(t, readTest(t, "testdata/fixture.dll"), "fixture.dll")
	rf, ok, err := im.Lookup(0x1050)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := im.UnwindInfo(rf.UnwindInfo); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		im.HasFunctionTable()
		rf, _, _ := im.Lookup(0x1050)
		_, _ = im.UnwindInfo(rf.UnwindInfo)
		im.Primary(rf)
	}); n != 0 {
		t.Errorf("%v allocations for a warm lookup", n)
	}
}

// TestErrorsSayWhere: a user must be able to look with a hex editor.
func TestErrorsSayWhere(t *testing.T) {
	im := withTable([]byte{7, 0, 0, 0}, 0x1010, 0x1020, 0x4000).open(t)
	_, err := im.UnwindInfo(0x4000)
	// The section at 0x4000 follows the headers (0x400) and the code (0x3000).
	const want = "built.dll: UNWIND_INFO: at RVA 0x4000: unwind information of unknown version 7 (at offset 0x3400)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// TestConcurrentUse is for the race detector: an image opened once serves many
// goroutines, whose first calls build its indexes.
func TestConcurrentUse(t *testing.T) {
	b := readTest(t, "testdata/fixture.dll")
	one := openTest(t, b, "fixture.dll")
	shared := openTest(t, b, "fixture.dll")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for rva := uint32(0x1000); rva < 0x1100; rva++ {
				a, okA, _ := one.Lookup(rva)
				b, okB, _ := shared.Lookup(rva)
				sa, _ := one.NearestExport(rva)
				sb, _ := shared.NearestExport(rva)
				if a != b || okA != okB || sa != sb || shared.Primary(a) != one.Primary(b) || shared.CodeView().Age != 1 || !shared.HasFunctionTable() {
					t.Errorf("%#x: %v %v, %v %v", rva, a, b, sa, sb)
				}
			}
		})
	}
	wg.Wait()
}
