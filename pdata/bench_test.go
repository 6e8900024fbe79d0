package pdata

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// bigImage is the path of a large x64 image to measure with, in the
// environment: for instance the 110 MB .node file of the npm package
// @next/swc-win32-x64-msvc. Without it mfc140u.dll (6 MB) is used.
const bigImage = "DUMPTRIAGE_BIG_IMAGE"

func benchFile(b *testing.B) (*os.File, int64) {
	path := os.Getenv(bigImage)
	if path == "" {
		path = filepath.Join(needModuleImages(b), "mfc140u.dll")
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return f, st.Size()
}

func benchImage(b *testing.B) *Image {
	f, size := benchFile(b)
	im, err := OpenFile(f, size, f.Name())
	if err != nil {
		b.Fatal(err)
	}
	return im
}

func BenchmarkOpenFile(b *testing.B) {
	f, size := benchFile(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := OpenFile(f, size, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenAndLookup(b *testing.B) {
	f, size := benchFile(b)
	b.ReportAllocs()
	for b.Loop() {
		im, err := OpenFile(f, size, "")
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := im.Lookup(0x1000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadIdentity(b *testing.B) {
	f, size := benchFile(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadIdentity(f, size); err != nil {
			b.Fatal(err)
		}
	}
}

// functions returns every n-th function of an image.
func functions(im *Image, n int) (all []RuntimeFunction) {
	t := im.table()
	t.scan(im.layout, func(i uint32, rf RuntimeFunction, _ bool) {
		if int(i)%n == 0 && rf.Begin != 0 {
			all = append(all, rf)
		}
	})
	return all
}

func BenchmarkLookupWarm(b *testing.B) {
	im := benchImage(b)
	rfs := functions(im, 1)[:8] // a loop's worth of frames
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok, err := im.Lookup(rfs[i%len(rfs)].Begin + 1); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// Addresses all over the image: most lookups read their block.
func BenchmarkLookupScattered(b *testing.B) {
	im := benchImage(b)
	rfs := functions(im, 97)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok, err := im.Lookup(rfs[i*31%len(rfs)].Begin); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkUnwindInfoWarm(b *testing.B) {
	im := benchImage(b)
	rf := functions(im, 1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := im.UnwindInfo(rf.UnwindInfo); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnwindInfoCold(b *testing.B) {
	im := benchImage(b)
	rfs := functions(im, 97)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var u UnwindInfo
		if err := im.decodeInfo(&u, rfs[i%len(rfs)].UnwindInfo); err != nil {
			b.Fatal(err)
		}
	}
}

// kernel32.dll has 1633 exports.
func BenchmarkExportIndex(b *testing.B) {
	file, err := os.ReadFile(filepath.Join(needModuleImages(b), "kernel32.dll"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		im := openTest(b, file, "kernel32.dll")
		if _, ok := im.NearestExport(0x2000); !ok {
			b.Fatal("no export")
		}
	}
}

func BenchmarkNearestExport(b *testing.B) {
	file, err := os.ReadFile(filepath.Join(needModuleImages(b), "kernel32.dll"))
	if err != nil {
		b.Fatal(err)
	}
	im, err := OpenFile(bytes.NewReader(file), int64(len(file)), "kernel32.dll")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		im.NearestExport(0x2000)
	}
}
