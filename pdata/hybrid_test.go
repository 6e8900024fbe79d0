package pdata

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strconv"
	"testing"

	"dumptriage/dump"
)

// ecImage is testdata/arm64ec/ec.dll, which LLVM 19 compiled and linked.
func ecImage(t testing.TB) []byte { return readTest(t, "testdata/arm64ec/ec.dll") }

// arm64X makes of an ARM64EC image what an ARM64X image on disk looks like: the
// headers name ARM64, and the two function tables have changed places.
func arm64X(b []byte) []byte {
	b = bytes.Clone(b)
	nt := binary.LittleEndian.Uint32(b[0x3c:])
	binary.LittleEndian.PutUint16(b[nt+4:], machineARM64)
	directory := b[nt+24+112+8*dirException:][:8]
	var extra []byte
	for i := range b {
		if len(b)-i >= 8 && binary.LittleEndian.Uint32(b[i:]) == 0x4000 && binary.LittleEndian.Uint32(b[i+4:]) == 0x28 {
			extra = b[i : i+8]
		}
	}
	for i := range directory {
		directory[i], extra[i] = extra[i], directory[i]
	}
	return b
}

// TestCodeMap compares the code map with llvm-readobj's reading.
func TestCodeMap(t *testing.T) {
	golden := readTest(t, "testdata/arm64ec/ec.readobj.txt")
	lines := regexp.MustCompile(`0x([0-9A-F]+) - 0x([0-9A-F]+)  (\w+)`).FindAllSubmatch(golden, -1)
	if len(lines) != 2 {
		t.Fatalf("%d ranges", len(lines))
	}
	for name, b := range map[string][]byte{"ARM64EC": ecImage(t), "ARM64X": arm64X(ecImage(t))} {
		im := openTest(t, b, name)
		if !im.Hybrid() {
			t.Fatalf("%s: not hybrid", name)
		}
		for _, m := range lines {
			begin, _ := strconv.ParseUint(string(m[1]), 16, 32)
			end, _ := strconv.ParseUint(string(m[2]), 16, 32)
			want := dump.ARM64
			if string(m[3]) == "X64" {
				want = dump.AMD64
			}
			for _, rva := range []uint64{begin, (begin + end) / 2, end - 1} {
				if got := im.CodeArch(uint32(rva)); got != want {
					t.Errorf("%s: %#x is %s, want %s", name, rva, got, want)
				}
			}
		}
		if got := im.CodeArch(0x3000); got != dump.ArchOfMachine(im.Identity().Machine) {
			t.Errorf("%s: outside of all ranges: %s", name, got)
		}
	}
}

// The functions and the lengths are those that llvm-readobj --unwind says of the
// objects; the addresses are llvm-objdump's.
func TestHybridTables(t *testing.T) {
	for name, b := range map[string][]byte{"ARM64EC": ecImage(t), "ARM64X": arm64X(ecImage(t))} {
		im := openTest(t, b, name)
		for begin, length := range map[uint32]uint32{
			0x1004: 36, 0x102c: 116, 0x10a0: 40, 0x10c8: 72, // ec_leafy, ec_outer, exit and entry thunk
			0x1110: 40, // x64_inner's exit thunk
		} {
			for _, rva := range []uint32{begin, begin + length - 4} {
				fn, ok, err := im.LookupARM64(rva)
				if !ok || err != nil || fn.Begin != begin || fn.Length != length {
					t.Errorf("%s: %#x: %+v %v %v, want %#x, %d bytes", name, rva, fn, ok, err, begin, length)
				}
				if at, ok := im.FunctionStart(rva); !ok || at != begin {
					t.Errorf("%s: %#x begins at %#x", name, rva, at)
				}
			}
			if _, ok, _ := im.Lookup(begin); ok {
				t.Errorf("%s: %#x has an x64 entry", name, begin)
			}
		}
		for begin, end := range map[uint32]uint32{0x2000: 0x2015, 0x2020: 0x203f, 0x2040: 0x2055} {
			rf, ok, err := im.Lookup(end - 1)
			if !ok || err != nil || rf.Begin != begin || rf.End != end {
				t.Errorf("%s: %+v %v %v, want %#x to %#x", name, rf, ok, err, begin, end)
			}
			if _, ok, _ := im.LookupARM64(begin); ok {
				t.Errorf("%s: %#x has an ARM64 entry", name, begin)
			}
		}
	}
}

// Mapped at another base, with the base in its headers corrected or not.
func TestHybridMapped(t *testing.T) {
	const base = 0x7ff700000000
	file := openTest(t, ecImage(t), "ec.dll")
	for name, relocated := range map[string]bool{"pointer corrected": true, "as in the file": false} {
		memory := pages{}
		for rva := uint32(0); rva < file.Identity().SizeOfImage; rva += pageSize {
			page := make([]byte, pageSize)
			_, _ = file.ReadRVA(page, rva)
			memory[base+uint64(rva)] = page
		}
		if relocated { // the pointer, not the header
			binary.LittleEndian.PutUint64(memory[base+0x3000][0xc8:], base+0x3140)
		}
		im, err := OpenMapped(memory, base, name)
		if err != nil || !im.Hybrid() || im.CodeArch(0x1004) != dump.ARM64 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Metadata that cannot be is none: the image is its headers' machine's alone. Where the
// image says that it has some, that is an error that can be told.
func TestHybridRefused(t *testing.T) {
	at := func(rva int) int { // in .rdata, the section of the metadata
		im := openTest(t, ecImage(t), "ec.dll")
		return int(im.layout.offset(uint32(rva)))
	}
	for name, tc := range map[string]struct {
		change func(b []byte)
		code   dump.Code // "": no damage
	}{
		"a short load configuration":    {func(b []byte) { put32(b, at(0x3000), 0xcf) }, ""},
		"no pointer":                    {func(b []byte) { put32(b, at(0x30c8), 0, 0) }, ""},
		"a pointer outside":             {func(b []byte) { put32(b, at(0x30c8), 0x8000_0000) }, dump.OutOfRange},
		"a pointer below":               {func(b []byte) { put32(b, at(0x30c8), 0x7000_0000) }, dump.OutOfRange},
		"no version":                    {func(b []byte) { put32(b, at(0x3140), 0) }, dump.UnsupportedFormat},
		"no ranges":                     {func(b []byte) { put32(b, at(0x3148), 0) }, dump.BadCount},
		"more ranges than the file has": {func(b []byte) { put32(b, at(0x3148), 0x10000) }, dump.BadCount},
		"ranges outside":                {func(b []byte) { put32(b, at(0x3144), 0x7000_0000) }, dump.BadCount},
	} {
		b := ecImage(t)
		tc.change(b)
		im := openTest(t, b, name)
		if im.Hybrid() || im.CodeArch(0x1004) != dump.AMD64 || im.HasARM64Table() {
			t.Errorf("%s: taken for an image of two machines", name)
		}
		damage := im.Damage()
		if (len(damage) == 0) != (tc.code == "") || len(damage) > 0 && (damage[0].Code != tc.code || damage[0].File != name || damage[0].Offset < 0 || damage[0].Size <= 0) {
			t.Errorf("%s: the damage is %v, want %q", name, damage, tc.code)
		}
	}
	if im := openTest(t, ecImage(t), "ec.dll"); len(im.Damage()) > 0 {
		t.Errorf("a sound image has damage %v", im.Damage())
	}
}

// TestCodeMapOverlap: of ranges that lie on each other neither is believed for what both
// hold; the table that knows the code decides. By TestHybridTables 0x102c is in the table
// of ARM64 and 0x2020 in that of x64; 0x1080 is in one function's middle, and 0x2060
// behind all.
func TestCodeMapOverlap(t *testing.T) {
	im := openTest(t, ecImage(t), "ec.dll")
	ranges := int(im.layout.offset(binary.LittleEndian.Uint32(ecImage(t)[im.layout.offset(0x3144):])))
	for name, tc := range map[string]struct {
		ranges   []uint32 // begin and kind, length
		rva      uint32
		want     dump.Arch
		disputed bool
	}{
		"ARM64's by its table":        {[]uint32{0x1000 | 1, 0x2000, 0x1000 | 2, 0x2000}, 0x102c, dump.ARM64, true},
		"x64's by its table":          {[]uint32{0x1000 | 2, 0x2000, 0x1000 | 1, 0x2000}, 0x2020, dump.AMD64, true},
		"in no table":                 {[]uint32{0x1000 | 1, 0x2000, 0x1000 | 2, 0x2000}, 0x2060, dump.AMD64, true},
		"a short range in a long one": {[]uint32{0x1000 | 1, 0x2000, 0x1100 | 2, 0x10}, 0x1080, dump.ARM64, false},
		"behind the short one":        {[]uint32{0x1000 | 1, 0x2000, 0x1100 | 2, 0x10}, 0x2020, dump.ARM64, false},
		"of one machine":              {[]uint32{0x1000 | 1, 0x1000, 0x1800, 0x100}, 0x2020, dump.AMD64, false},
	} {
		b := ecImage(t)
		put32(b, ranges, tc.ranges...)
		im := openTest(t, b, name)
		if got := im.CodeArch(tc.rva); got != tc.want || im.CodeDisputed(tc.rva) != tc.disputed {
			t.Errorf("%s: %s, disputed %v", name, got, im.CodeDisputed(tc.rva))
		}
		damaged := name != "of one machine"
		if d := im.Damage(); damaged != (len(d) == 1 && d[0].Code == dump.BadRecord) {
			t.Errorf("%s: the damage is %v", name, d)
		}
	}
}

// farLayout has headers that lie beyond where headers may.
type farLayout struct {
	layout
	far bool
}

func (l *farLayout) read(p []byte, rva uint32) (int, error) {
	if rva == 0x3c {
		return copy(p, []byte{0, 0, 0x20, 0}), nil
	}
	l.far = l.far || rva > maxHeaderOffset
	return len(p), nil
}

// TestImageBaseBound: where the header says that it goes on is checked before it is read.
func TestImageBaseBound(t *testing.T) {
	l := &farLayout{}
	if base := (&Image{layout: l}).imageBase(); base != 0 || l.far {
		t.Errorf("the base is %#x, read far away: %v", base, l.far)
	}
}

func put32(b []byte, at int, v ...uint32) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[at+4*i:], x)
	}
}
