package cab

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// FuzzCabinet holds the reader to its promises on any bytes: no panic, no
// output beyond the limit, and heads that agree with what is extracted.
func FuzzCabinet(f *testing.F) {
	f.Add(publishedCabinet())
	if b, err := os.ReadFile("testdata/gcab-mszip.cab"); err == nil {
		f.Add(b)
	}
	data := testData(9, 40000)
	for _, kind := range []uint{1, 2, 3} {
		f.Add(testCab{reserve: kind == 2, noChecksum: true, folders: []testFolder{lzxFolder(data, 15, []testBlock{{kind, 40000}}, 12000000)}, files: []testFile{{name: "a", size: 40000}}}.build())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if codeOf(err) == "" {
				t.Fatalf("not a dump.Error: %v", err)
			}
			return
		}
		const limit = 1 << 18
		heads, _ := c.Heads(8, limit)
		for i, file := range c.Files() {
			if i == 8 {
				break
			}
			var out bytes.Buffer
			n, err := c.Extract(file, &out, limit)
			if n > limit || n != int64(out.Len()) || err == nil && n != file.Size {
				t.Fatalf("%d bytes of %d, %v", n, file.Size, err)
			}
			if err == nil && heads[i] != nil && !bytes.HasPrefix(out.Bytes(), heads[i]) {
				t.Fatalf("head % x of % x", heads[i], out.Bytes()[:min(8, out.Len())])
			}
		}
	})
}

// FuzzLZX reaches the decoder past the checksums.
func FuzzLZX(f *testing.F) {
	data := testData(9, 40000)
	for _, kind := range []uint{1, 2, 3} {
		for _, p := range encodeLZX(data, 15, []testBlock{{kind, 40000}}, 12000000) {
			f.Add(p, p)
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		d := newLZX(15, 2)
		dst := make([]byte, blockSize)
		if d.decode(dst, first) == nil {
			_ = d.decode(dst, second)
		}
	})
}

// BenchmarkExtract measures unpacked bytes a second.
func BenchmarkExtract(b *testing.B) {
	data := testData(1, 1<<20)
	lzx := testCab{folders: []testFolder{lzxFolder(data, 18, []testBlock{{1, 1 << 20}}, 12000000)}, files: []testFile{{name: "a", size: 1 << 20}}}.build()
	mszip, err := os.ReadFile("testdata/gcab-mszip.cab")
	if err != nil {
		b.Fatal(err)
	}
	for name, cabinet := range map[string][]byte{"LZX": lzx, "MSZIP": mszip} {
		b.Run(name, func(b *testing.B) {
			c := open(b, cabinet)
			f := c.Files()[0]
			b.SetBytes(f.Size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Extract(f, io.Discard, f.Size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
