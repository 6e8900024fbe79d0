package pdb

import (
	"bytes"
	"os"
	"testing"
)

// warm is a small file, and 16 addresses of it with inlines among them.
func warm(b *testing.B) (*File, []uint32) {
	f := openTestdata(b, "inline-x64.pdb")
	var rvas []uint32
	for i := range uint32(16) {
		rvas = append(rvas, 0x1000+i*16)
	}
	for _, rva := range rvas {
		if _, ok := f.Lookup(rva); !ok {
			b.Fatalf("%#x has no name", rva)
		}
	}
	return f, rvas
}

func BenchmarkLookupWarm(b *testing.B) {
	f, rvas := warm(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.Lookup(rvas[i%len(rvas)])
	}
}

func BenchmarkOpenAndLookup(b *testing.B) {
	raw := readTestdata(b, "inline-x64.pdb")
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(bytes.NewReader(raw), int64(len(raw)), "inline-x64.pdb")
		if err != nil {
			b.Fatal(err)
		}
		f.Lookup(0x1040)
	}
}

// BenchmarkLarge opens the PDB that PDB_LARGE names and looks up 100 addresses
// that are spread over its code, from the disk and warm.
func BenchmarkLarge(b *testing.B) {
	path := os.Getenv("PDB_LARGE")
	if path == "" {
		b.Skip("PDB_LARGE names no file")
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
	open := func() *File {
		f, err := Open(file, st.Size(), path)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	all := codeAddresses(open())
	var rvas []uint32
	for i := range 100 {
		rvas = append(rvas, all[i*len(all)/100])
	}
	named := 0
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f := open()
			named = 0
			for _, rva := range rvas {
				if loc, _ := f.Lookup(rva); loc.Function != "" {
					named++
				}
			}
		}
		b.ReportMetric(float64(named), "named")
	})
	b.Run("warm", func(b *testing.B) {
		f := open()
		few := rvas[:8]
		for _, rva := range few {
			f.Lookup(rva)
		}
		for i := 0; b.Loop(); i++ {
			f.Lookup(few[i%len(few)])
		}
	})
}
