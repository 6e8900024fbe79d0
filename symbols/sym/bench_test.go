package sym

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/internal/input"
)

// benchSize is the size of the file that is made: large symbol files are usual.
const benchSize = 500 << 20

// writeLarge makes a symbol file of functions with twenty lines each.
func writeLarge(tb testing.TB, size int64) (file string, funcs uint32) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "large.sym")
	out, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	b := []byte("MODULE windows x86_64 0 large.pdb\n")
	for i := range 20000 {
		b = fmt.Appendf(b, "FILE %d c:\\src\\component\\file%d.cpp\n", i, i)
	}
	var written int64
	for ; written < size; funcs++ {
		b = fmt.Appendf(b, "FUNC %x 400 0 component::Class%d::method(std::basic_string<char,std::char_traits<char> > const &)\n", funcs*0x400, funcs)
		for line := range uint32(20) {
			b = fmt.Appendf(b, "%x 30 %d %d\n", funcs*0x400+line*0x30, 100+line, funcs%20000)
		}
		if len(b) > 1<<20 {
			n, err := out.Write(b)
			if err != nil {
				tb.Fatal(err)
			}
			written += int64(n)
			b = b[:0]
		}
	}
	if _, err := out.Write(b); err != nil {
		tb.Fatal(err)
	}
	return file, funcs
}

func BenchmarkIndex(b *testing.B) {
	file, _ := writeLarge(b, benchSize)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for b.Loop() {
		if f := openFile(b, file); len(f.load().funcs) == 0 {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	file, funcs := writeLarge(b, benchSize/10)
	f := openFile(b, file)
	f.load()
	rng := rand.New(rand.NewPCG(1, 2))
	b.Run("any", func(b *testing.B) {
		for b.Loop() {
			if loc, ok := f.Lookup(rng.Uint32N(funcs * 0x400)); !ok || loc.Function == "" {
				b.Fatal("no name")
			}
		}
	})
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			f.Lookup(0x1234)
		}
	})
}

// openFile opens a file as the store of symbols does.
func openFile(tb testing.TB, file string) *File {
	tb.Helper()
	r, err := input.Open(file, input.Options{Want: func(string) bool { return true }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	f, err := Open(r, r.Size(), file)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}
