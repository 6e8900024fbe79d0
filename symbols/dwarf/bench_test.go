package dwarf

import (
	"os"
	"testing"
)

// BenchmarkLarge opens the image that DWARF_LARGE names and looks up 100 addresses
// that are spread over its code.
func BenchmarkLarge(b *testing.B) {
	path := os.Getenv("DWARF_LARGE")
	if path == "" {
		b.Skip("DWARF_LARGE names no file")
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(file, st.Size(), path)
		if err != nil {
			b.Fatal(err)
		}
		named := 0
		text := f.im.sections[0]
		for i := range uint32(100) {
			if loc, _ := f.Lookup(text.rva + text.vsize/100*i); loc.Line != 0 {
				named++
			}
		}
		if named < 50 {
			b.Fatalf("%d of 100 have lines: %v", named, f.Damage())
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	f := open(b, "testdata/clang-4.exe")
	b.ReportAllocs()
	for i := uint32(0); b.Loop(); i++ {
		f.Lookup(0x1000 + i%64)
	}
}
