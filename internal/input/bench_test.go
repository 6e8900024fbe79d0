package input

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkReadAt compares the mapping with system calls over a file that is
// in the system's cache.
func BenchmarkReadAt(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.dmp")
	if err := os.WriteFile(path, make([]byte, 8<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	plain, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	readers := map[string]interface {
		ReadAt([]byte, int64) (int, error)
	}{"mapped": f, "pread": plain}
	for _, size := range []struct {
		name string
		n    int
	}{{"8", 8}, {"4K", 4096}, {"64K", 64 << 10}, {"1M", 1 << 20}} {
		for _, how := range []string{"mapped", "pread"} {
			b.Run(size.name+"/"+how, func(b *testing.B) {
				p, r := make([]byte, size.n), readers[how]
				b.SetBytes(int64(size.n))
				b.ReportAllocs()
				off := int64(0)
				for b.Loop() {
					if _, err := r.ReadAt(p, off); err != nil {
						b.Fatal(err)
					}
					off = (off + int64(size.n)) & (4<<20 - 1)
				}
			})
		}
	}
}
