package pdata

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
)

// TestReadRVA reads across every kind of byte that an image file has.
func TestReadRVA(t *testing.T) {
	p := newPE().add(0x1000, scnCode, bytes.Repeat([]byte{0x11}, 0x200)).add(0x3000, scnData, bytes.Repeat([]byte{0x22}, 0x400))
	p.sections[0].virtual = 0x1800 // zeros follow the data, to the end of the page at 0x3000
	p.sections[1].virtual = 0x300  // the data goes on to the end of its page all the same
	im := p.open(t)
	for _, tt := range []struct {
		rva  uint32
		n    int
		want []byte // nil: not readable
	}{
		{0, 2, []byte("MZ")},
		{0x80, 4, []byte("PE\x00\x00")},
		{0x400, 1, nil}, // behind SizeOfHeaders
		{0x1000, 1, []byte{0x11}},
		{0x11fe, 4, []byte{0x11, 0x11, 0, 0}},
		{0x27ff, 2, []byte{0, 0}},
		{0x2fff, 2, []byte{0, 0x22}}, // goes on into the next section
		{0x33ff, 2, []byte{0x22, 0}},
		{0x3fff, 1, []byte{0}},
		{0x4000, 1, nil},
		{0xfffffffe, 4, nil},
	} {
		b := bytes.Repeat([]byte{0xee}, tt.n)
		n, err := im.ReadRVA(b, tt.rva)
		if tt.want == nil {
			if wantCode(t, err, dump.OutOfRange); n != 0 {
				t.Errorf("%#x: read %d bytes", tt.rva, n)
			}
		} else if n != tt.n || err != nil || !bytes.Equal(b, tt.want) {
			t.Errorf("%#x: %d, %v, % x; want % x", tt.rva, n, err, b, tt.want)
		}
	}
	b := make([]byte, 8)
	if n, err := im.ReadRVA(b, 0x3ffc); n != 4 || err == nil {
		t.Errorf("read across the end: %d, %v; want 4 bytes and an error", n, err)
	}
}

func TestReadRVATruncatedFile(t *testing.T) {
	file := newPE().add(0x1000, scnCode, bytes.Repeat([]byte{0x11}, 0x200)).bytes()
	im := openTest(t, file[:0x480], "cut.dll") // the section's bytes begin at 0x400
	b := make([]byte, 0x100)
	n, err := im.ReadRVA(b, 0x1000)
	if wantCode(t, err, dump.Truncated); n != 0x80 {
		t.Errorf("read %d bytes, want the 0x80 that are there", n)
	}
}

// Images with a section alignment below a page are mapped as the file is, even
// where a section header says otherwise.
func TestLowAlignment(t *testing.T) {
	p := newPE().add(0x500, scnCode, append(make([]byte, 0x100), "flat"...)) // in the file at 0x400
	p.alignment = 0x20
	b := make([]byte, 4)
	if n, err := p.open(t).ReadRVA(b, 0x500); n != 4 || err != nil || string(b) != "flat" {
		t.Errorf("%d, %v, %q", n, err, b)
	}
}

// .NET code for Linux has sections below a page apart that lie elsewhere in the file.
func TestLowAlignmentOfLinux(t *testing.T) {
	for _, machine := range []uint16{0xfd1d, 0xd11d} { // x64 and ARM64 with Linux' 0x7b79
		p := newPE().add(0x600, scnCode, append(make([]byte, 0x100), "by section"...)) // in the file at 0x400
		p.alignment, p.machine = 0x200, machine
		b := make([]byte, 10)
		if n, err := p.open(t).ReadRVA(b, 0x700); n != 10 || err != nil || string(b) != "by section" {
			t.Errorf("%#x: %d, %v, %q", machine, n, err, b)
		}
	}
}

// The loader rounds PointerToRawData down to a sector of 512 bytes.
func TestRawOffsetRoundedDown(t *testing.T) {
	file := newPE().add(0x1000, scnCode, []byte("code")).bytes()
	copy(file[0x80+24+112+128+20:], u32s(0x4ff)) // the first section's PointerToRawData
	b := make([]byte, 4)
	if n, err := openTest(t, file, "x.dll").ReadRVA(b, 0x1000); n != 4 || err != nil || string(b) != "code" {
		t.Errorf("%d, %v, %q", n, err, b)
	}
}

type failingReader struct {
	*bytes.Reader
	from int64
}

var errDisk = errors.New("disk on fire")

func (r failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= r.from {
		return 0, errDisk
	}
	return r.Reader.ReadAt(p, off)
}

func TestReadErrorIsKept(t *testing.T) {
	file := newPE().add(0x1000, scnCode, info).bytes()
	im, err := OpenFile(failingReader{bytes.NewReader(file), 0x400}, int64(len(file)), "x.dll")
	if err != nil {
		t.Fatal(err)
	}
	_, err = im.ReadRVA(make([]byte, 4), 0x1000)
	if wantCode(t, err, dump.IO); !errors.Is(err, errDisk) {
		t.Errorf("cause lost: %v", err)
	}
}

// TestMappedAgrees lays real images out in memory as the loader does: a mapped
// image must give the answers of its file.
func TestMappedAgrees(t *testing.T) {
	dir := needModuleImages(t)
	for _, name := range []string{"acpi.sys", "WdBoot.sys", "kernel32.dll", "liblzo2-2.dll", "D2D1Debug2.dll", "KernelBase.dll", "IEAdvpack.dll", "brave.exe", "pwsh.exe"} {
		t.Run(name, func(t *testing.T) {
			b := readTest(t, filepath.Join(dir, name))
			agree(t, openTest(t, b, name), mustMap(t, b, 0xfffff80412345000))
		})
	}
	t.Run("fixture.dll", func(t *testing.T) {
		b := readTest(t, "testdata/fixture.dll")
		agree(t, openTest(t, b, "fixture.dll"), mustMap(t, b, 0x7ff812340000))
	})
}

func agree(t *testing.T, file, mapped *Image) {
	t.Helper()
	if file.Identity() != mapped.Identity() || file.CodeView() != mapped.CodeView() || file.HasFunctionTable() != mapped.HasFunctionTable() {
		t.Errorf("file %+v %+v, mapped %+v %+v", file.Identity(), file.CodeView(), mapped.Identity(), mapped.CodeView())
	}
	for rva := uint32(0); rva < file.Identity().SizeOfImage; rva += 61 {
		a, okA, errA := file.Lookup(rva)
		b, okB, errB := mapped.Lookup(rva)
		if a != b || okA != okB || (errA == nil) != (errB == nil) {
			t.Fatalf("Lookup(%#x): file %v %v %v, mapped %v %v %v", rva, a, okA, errA, b, okB, errB)
		}
		if okA && file.Primary(a) != mapped.Primary(b) {
			t.Fatalf("Primary of %#x differs", rva)
		}
		sa, okA := file.NearestExport(rva)
		sb, okB := mapped.NearestExport(rva)
		if sa != sb || okA != okB || file.Executable(rva) != mapped.Executable(rva) {
			t.Fatalf("NearestExport(%#x): file %v %v, mapped %v %v", rva, sa, okA, sb, okB)
		}
	}
}

// TestMappedCorpus opens the images that real dumps hold. The dump's header is
// not read here: the corpus' image files are laid out in memory instead.
func TestMappedCorpus(t *testing.T) {
	dir := corpus.Need(t, "")
	for _, pattern := range []string{"user/A06*/*.exe", "user/A15*/*.exe", "wine/*/*.exe", "wine/winedlls/*.dll"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("no file matches %s", pattern)
		}
		for _, path := range files {
			t.Run(filepath.Base(path), func(t *testing.T) {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				im := openTest(t, b, filepath.Base(path))
				if im.h.sectionAlignment >= pageSize {
					agree(t, im, mustMap(t, b, 0x7ff700000000))
				}
				checkAll(t, im)
			})
		}
	}
}

// checkAll decodes every function of an image. Nothing in an image that a
// compiler made may be refused.
func checkAll(t *testing.T, im *Image) {
	t.Helper()
	if !im.HasFunctionTable() {
		return
	}
	tb := im.table()
	tb.scan(im.layout, func(_ uint32, rf RuntimeFunction, _ bool) {
		if rf == (RuntimeFunction{}) {
			return
		}
		if got, ok, err := im.Lookup(rf.End - 1); !ok || err != nil || got.Begin != rf.Begin {
			t.Errorf("Lookup(%#x) = %#x, %v, %v; want %#x", rf.End-1, got, ok, err, rf)
		}
		if _, err := im.UnwindInfo(rf.UnwindInfo); err != nil {
			t.Errorf("%#x: %v", rf.Begin, err)
		}
	})
}
