package pdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/saferwall/pe"

	"dumptriage/dump"
)

// TestFixtureIdentity compares with the header fields in fixture.readobj.txt.
func TestFixtureIdentity(t *testing.T) {
	b := readTest(t, "testdata/fixture.dll")
	golden := readTest(t, "testdata/fixture.readobj.txt")
	stamp := bytes.Index(golden, []byte("TimeDateStamp: "))
	line, _, _ := bytes.Cut(golden[stamp:], []byte("\n"))
	m := hexInParens.FindSubmatch(line)
	im := openTest(t, b, "fixture.dll")
	id := im.Identity()
	if id.Machine != 0x8664 || id.SizeOfImage != 32768 || id.CheckSum != 0 {
		t.Errorf("identity %+v", id)
	}
	if want := "(0x" + id.Key()[:8] + ")"; want != "("+string(m[1])+")" {
		t.Errorf("time stamp %s, readobj says %s", want, m[1])
	}
	if read, err := ReadIdentity(bytes.NewReader(b), int64(len(b))); err != nil || read != id {
		t.Errorf("ReadIdentity = %+v, %v; OpenFile says %+v", read, err, id)
	}
}

// The time stamp has always eight digits, in upper case; the size as few as it
// needs, in lower case.
func TestKey(t *testing.T) {
	for want, id := range map[string]Identity{
		"542D574232000":  {TimeDateStamp: 0x542d5742, SizeOfImage: 0x32000},
		"0B3FB7C31f5000": {TimeDateStamp: 0x0b3fb7c3, SizeOfImage: 0x1f5000},
	} {
		if got := id.Key(); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

// TestHeadersAgree reads the headers of real images in both ways, and through
// the library's own Parse over the whole file.
func TestHeadersAgree(t *testing.T) {
	dir := needModuleImages(t)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		b := readTest(t, filepath.Join(dir, f.Name()))
		r, size := bytes.NewReader(b), int64(len(b))
		lib, err := pe.NewBytes(b, &pe.Options{Fast: true, Logger: silent})
		if err != nil || filepath.Ext(f.Name()) == ".7z" || lib.Parse() != nil {
			if _, err := OpenFile(r, size, f.Name()); err == nil {
				t.Errorf("%s: opened what the library refuses", f.Name())
			}
			continue
		}
		seen++
		file, err := readHeaders(r, size, fileNT)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		own, err := readHeaders(r, size, parseNT)
		if err != nil || own.ntHeaders != file.ntHeaders {
			t.Errorf("%s: own parser says %+v, %v; library %+v", f.Name(), own.ntHeaders, err, file.ntHeaders)
		}
		if id, err := ReadIdentity(r, size); err != nil || id != file.id {
			t.Errorf("%s: ReadIdentity = %+v, %v, want %+v", f.Name(), id, err, file.id)
		}
		if len(file.table) != len(lib.Sections) {
			t.Errorf("%s: %d sections, library %d", f.Name(), len(file.table), len(lib.Sections))
			continue
		}
		for _, s := range lib.Sections { // the library has sorted them
			found := false
			for _, o := range file.table {
				found = found || o == sectionHeader{s.Header.VirtualSize, s.Header.VirtualAddress, s.Header.SizeOfRawData, s.Header.PointerToRawData, s.Header.Characteristics}
			}
			if !found {
				t.Errorf("%s: section %+v not found", f.Name(), s.Header)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d images compared", seen)
	}
}

// TestLibraryLosesSections shows why the section table is not left to the
// library: with nothing but the headers at hand it stops at a section beyond
// 256 MiB. If this fails, the library has changed and headers_file.go can be
// simpler.
func TestLibraryLosesSections(t *testing.T) {
	b := newPE().add(0x1000, scnCode, info).add(0x10001000, scnData, info).add(0x10002000, scnData, info).bytes()
	f, err := pe.NewBytes(b[:0x400], &pe.Options{Fast: true, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Parse(); err != nil || len(f.Sections) != 1 {
		t.Errorf("the library finds %d sections, %v", len(f.Sections), err)
	}
	if im := openTest(t, b, "large.dll"); len(im.h.table) != 3 {
		t.Errorf("found %d sections, want 3", len(im.h.table))
	}
}

// An image that was saved out of memory has the base it was loaded at.
func TestUnalignedBase(t *testing.T) {
	p := newPE().add(0x1000, scnCode, info)
	p.base = 0xfffff8047a3f1000
	if id := p.open(t).Identity(); id != (Identity{0x8664, 0x5f000001, 0x2000, 0xc0ffee}) {
		t.Errorf("identity %+v", id)
	}
}

func TestMachines(t *testing.T) {
	for _, tt := range []struct {
		machine uint16
		pe32    bool
		arch    dump.Arch
	}{{0x8664, false, dump.AMD64}, {0xaa64, false, dump.ARM64}, {0x14c, true, dump.X86}} {
		p := newPE().add(0x1000, scnCode, []byte{0xc3})
		p.machine, p.pe32, p.base = tt.machine, tt.pe32, 0x400000
		for _, im := range []*Image{p.open(t), mustMap(t, p.bytes(), 0x10000)} {
			if id := im.Identity(); dump.ArchOfMachine(id.Machine) != tt.arch || id.SizeOfImage != 0x2000 || id.CheckSum != 0xc0ffee || id.TimeDateStamp != 0x5f000001 {
				t.Errorf("%v: %+v", tt.arch, id)
			}
			if !im.Executable(0x1000) || im.Executable(0x2000) || im.Executable(0xfff) {
				t.Errorf("%v: wrong executable sections", tt.arch)
			}
		}
	}
}

func mustMap(t testing.TB, file []byte, base uint64) *Image {
	t.Helper()
	im, err := OpenMapped(mapImage(file, base), base, "mapped")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// Directories beyond NumberOfRvaAndSizes are not directories.
func TestDirectoryCount(t *testing.T) {
	p := withTable(info, 0x1010, 0x1020, 0x4000)
	for n, want := range map[uint32]bool{3: false, 4: true, 16: true, 0xffffffff: true} {
		p.numDirs = n
		if got := p.open(t).HasFunctionTable(); got != want {
			t.Errorf("NumberOfRvaAndSizes %d: file has table %v", n, got)
		}
		if got := mustMap(t, p.bytes(), 0x10000).HasFunctionTable(); got != want {
			t.Errorf("NumberOfRvaAndSizes %d: mapped image has table %v", n, got)
		}
	}
}

// An image of which a dump holds the first page alone tells of a table that
// cannot be read; that is not the same as having none.
func TestLacksFunctionTable(t *testing.T) {
	for machine, want := range map[uint16]bool{0x8664: true, 0xaa64: true, 0x14c: false} {
		p := withTable(info, 0x1010, 0x1020, 0x4000)
		p.machine = machine
		mem := mapImage(p.bytes(), 0x10000)
		whole, err := OpenMapped(mem, 0x10000, "whole")
		if err != nil {
			t.Fatal(err)
		}
		first, err := OpenMapped(firstPage{mem, 0x10000}, 0x10000, "first page")
		if err != nil {
			t.Fatal(err)
		}
		if whole.LacksFunctionTable() || first.LacksFunctionTable() != want {
			t.Errorf("machine %#x: whole %v, first page %v", machine, whole.LacksFunctionTable(), first.LacksFunctionTable())
		}
		p.dirs[3] = [2]uint32{}
		if p.open(t).LacksFunctionTable() {
			t.Errorf("machine %#x: an image without a directory lacks it", machine)
		}
	}
}

// firstPage is memory of which only the page at base is there.
type firstPage struct {
	dump.Memory
	base uint64
}

func (m firstPage) ReadAt(p []byte, va uint64) (int, error) {
	n := 0
	if va >= m.base && va < m.base+pageSize {
		n = int(min(uint64(len(p)), m.base+pageSize-va))
		if n, err := m.Memory.ReadAt(p[:n], va); err != nil || n == len(p) {
			return n, err
		}
	}
	return n, &dump.MemoryError{VA: va + uint64(n), Size: len(p) - n}
}

// An optional header with room for three directories: what follows is the
// section table, here with a name that would make a fine fourth directory.
func TestDirectoriesEndWithTheOptionalHeader(t *testing.T) {
	file := withTable(info, 0x1010, 0x1020, 0x4000).bytes()
	const table = 0x80 + 24 + 112 + 8*16
	sections := bytes.Clone(file[table : table+3*40])
	copy(sections, u32s(0x5000, 12))
	copy(file[0x80+24+112+8*3:], sections)
	binary.LittleEndian.PutUint16(file[0x80+20:], 112+8*3)
	for _, im := range []*Image{openTest(t, file, "x.dll"), mustMap(t, file, 0x10000)} {
		if im.HasFunctionTable() || !im.Executable(0x1000) {
			t.Error("a section header was read as a directory")
		}
	}
}

func TestNotAnImage(t *testing.T) {
	le := binary.LittleEndian
	good := newPE().add(0x1000, scnCode, info).bytes()
	edit := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	for _, tt := range []struct {
		name string
		in   []byte
		code dump.Code
	}{
		{"empty", nil, dump.Truncated},
		{"an archive", []byte("PK\x03\x04 and so on, long enough to hold a DOS header, were it one at all."), dump.UnsupportedFormat},
		{"only MZ", []byte("MZ"), dump.Truncated},
		{"e_lfanew 0", edit(func(b []byte) { le.PutUint32(b[0x3c:], 0) }), dump.BadRecord},
		{"e_lfanew far", edit(func(b []byte) { le.PutUint32(b[0x3c:], 0xfffffff0) }), dump.BadRecord},
		{"e_lfanew behind the end", edit(func(b []byte) { le.PutUint32(b[0x3c:], 0x10000) }), dump.OutOfRange},
		{"NE", edit(func(b []byte) { copy(b[0x80:], "NE\x00\x00") }), dump.UnsupportedFormat},
		{"ROM magic", edit(func(b []byte) { le.PutUint16(b[0x98:], 0x107) }), dump.UnsupportedFormat},
		{"no sections", edit(func(b []byte) { le.PutUint16(b[0x86:], 0) }), dump.BadRecord},
		{"65535 sections", edit(func(b []byte) { le.PutUint16(b[0x86:], 0xffff) }), dump.Limit},
		{"more sections than bytes", edit(func(b []byte) { le.PutUint16(b[0x86:], 1000) }), dump.BadCount},
		{"cut in the optional header", good[:0xa0], dump.Truncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenFile(bytes.NewReader(tt.in), int64(len(tt.in)), "bad.dll")
			var e *dump.Error
			if !errors.As(err, &e) || e.Code != tt.code || e.File != "bad.dll" {
				t.Errorf("error %v, want code %s", err, tt.code)
			}
		})
	}
}

// ReadIdentity may not need more than two reads, and no more than 1 KiB each.
func TestReadIdentityReads(t *testing.T) {
	near := newPE().add(0x1000, scnCode, info).bytes()
	far := make([]byte, 0x3000)
	copy(far, near[:0x80])
	copy(far[0x2000:], near[0x80:0x400])
	binary.LittleEndian.PutUint32(far[0x3c:], 0x2000)
	for _, tt := range []struct {
		b     []byte
		reads int
	}{{near, 1}, {far, 2}} {
		r := &countingReader{r: bytes.NewReader(tt.b)}
		id, err := ReadIdentity(r, int64(len(tt.b)))
		if err != nil || id.TimeDateStamp != 0x5f000001 || id.CheckSum != 0xc0ffee || r.reads != tt.reads || r.most > 1024 {
			t.Errorf("%+v, %v: %d reads of at most %d bytes, want %d", id, err, r.reads, r.most, tt.reads)
		}
	}
}

type countingReader struct {
	r           *bytes.Reader
	reads, most int
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	c.most = max(c.most, len(p))
	return c.r.ReadAt(p, off)
}
