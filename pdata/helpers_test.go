package pdata

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dumptriage/dump"
)

// openTest opens a file image, failing the test when it cannot.
func openTest(t testing.TB, b []byte, name string) *Image {
	t.Helper()
	im, err := OpenFile(bytes.NewReader(b), int64(len(b)), name)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func readTest(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// moduleImages returns the folder of real images that the saferwall/pe module
// carries for its own tests. They are there wherever the module is.
var moduleImages = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/saferwall/pe").Output()
	if err != nil {
		return ""
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "test")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
})

func needModuleImages(t testing.TB) string {
	t.Helper()
	dir := moduleImages()
	if dir == "" {
		t.Skip("the test images of github.com/saferwall/pe are not at hand")
	}
	return dir
}

// pages is a memory of 4 KiB pages; those that are not in the map are missing.
type pages map[uint64][]byte

func (p pages) ReadAt(b []byte, va uint64) (int, error) {
	done := 0
	for done < len(b) {
		at := va + uint64(done)
		page, ok := p[at&^0xfff]
		if !ok {
			return done, &dump.MemoryError{VA: at, Size: len(b) - done}
		}
		done += copy(b[done:], page[at&0xfff:])
	}
	return done, nil
}

// mapImage lays a file out in memory as the Windows loader does, by reading
// the headers with fixed offsets and not with the code under test. The base in
// the mapped header is patched as the loader patches it.
func mapImage(file []byte, base uint64) pages {
	u32 := func(off uint32) uint32 {
		return uint32(file[off]) | uint32(file[off+1])<<8 | uint32(file[off+2])<<16 | uint32(file[off+3])<<24
	}
	nt := u32(0x3c)
	size, headers := u32(nt+24+56), u32(nt+24+60)
	flat := make([]byte, (size+0xfff)&^0xfff)
	copy(flat, file[:headers])
	table := nt + 24 + u32(nt+20)&0xffff
	for i := range u32(nt+4) >> 16 {
		s := table + i*40
		virtual, va, raw, off := u32(s+8), u32(s+12), u32(s+16), u32(s+20)
		if off != 0 {
			n := min(raw, (virtual+0xfff)&^0xfff, uint32(len(file))-off)
			copy(flat[va:], file[off:off+n])
		}
	}
	if file[nt+24] == 0x0b && file[nt+25] == 0x02 {
		for i := range 8 {
			flat[nt+24+24+uint32(i)] = byte(base >> (8 * i))
		}
	}
	mem := pages{}
	for off := 0; off < len(flat); off += 0x1000 {
		mem[base+uint64(off)] = flat[off : off+0x1000]
	}
	return mem
}
