package r2r

import (
	"os"
	"testing"

	"dumptriage/pdata"
)

// R2R_IMAGE names an image for the benchmarks.
func openLarge(b *testing.B) *Image {
	path := os.Getenv("R2R_IMAGE")
	if path == "" {
		b.Skip("R2R_IMAGE names no file")
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	im, err := pdata.OpenFile(f, st.Size(), path)
	if err != nil {
		b.Fatal(err)
	}
	r, err := Open(im)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// The first look-up in an image reads its tables.
func BenchmarkFirstLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r := openLarge(b)
		if r.Lookup(0); len(r.index.entries) == 0 || r.index.err != nil {
			b.Fatal(r.index.err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	r := openLarge(b)
	entries, err := r.Entries()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		e := entries[i*7919%len(entries)]
		if m, ok, err := r.Lookup(e.Start); !ok || m.Start != e.Start || err != nil {
			b.Fatal(m, e, err)
		}
		i++
	}
}
