package dump

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestFileMemoryOverlaps compares against a byte-by-byte model: every byte of
// the small address space belongs to the first listed range that covers it.
func TestFileMemoryOverlaps(t *testing.T) {
	file := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range file {
		file[i] = byte(rng.Uint32())
	}
	for round := range 2000 {
		var ranges []Range
		model := map[uint64]byte{}
		for range 1 + rng.IntN(12) {
			r := Range{VA: 0x1000 + rng.Uint64N(64), Size: rng.Uint64N(40), Off: rng.Int64N(4000)}
			ranges = append(ranges, r)
			for k := range r.Size {
				if _, taken := model[r.VA+k]; !taken {
					model[r.VA+k] = file[r.Off+int64(k)]
				}
			}
		}
		m := NewFileMemory(bytes.NewReader(file), ranges)
		for va := uint64(0x0ff0); va < 0x1080; va++ {
			var b [1]byte
			n, err := m.ReadAt(b[:], va)
			want, ok := model[va]
			if (n == 1) != ok || (err == nil) != ok || (ok && b[0] != want) {
				t.Fatalf("round %d ranges %v: byte at %#x: n=%d err=%v got %#x, want %#x present=%v", round, ranges, va, n, err, b[0], want, ok)
			}
		}
		for i, r := range m.Ranges() {
			if i > 0 && m.Ranges()[i-1].End() > r.VA {
				t.Fatalf("round %d: ranges overlap: %v", round, m.Ranges())
			}
		}
	}
}

// A read that crosses adjoining ranges is one read; a hole ends it and is named.
func TestFileMemoryCrossesRanges(t *testing.T) {
	m := NewFileMemory(bytes.NewReader([]byte("abcdefghij")), []Range{{0x2004, 4, 6}, {0x2000, 4, 0}, {0x2010, 2, 4}})
	b := make([]byte, 12)
	n, err := m.ReadAt(b, 0x2002)
	me, ok := err.(*MemoryError)
	if n != 6 || string(b[:n]) != "cdghij" || !ok || me.VA != 0x2008 || me.Size != 6 {
		t.Fatalf("n=%d %q err=%v", n, b[:n], err)
	}
}

// Ranges at the top of the address space and beyond the file must not wrap.
func TestFileMemoryEdges(t *testing.T) {
	m := NewFileMemory(bytes.NewReader(make([]byte, 16)), []Range{{^uint64(0) - 7, 8, 0}, {^uint64(0) - 1, 100, 0}, {5, ^uint64(0), 0}, {0x100, 16, 8}, {1, 4, -4}})
	b := make([]byte, 16)
	if n, err := m.ReadAt(b, ^uint64(0)-7); n != 7 || err == nil {
		t.Errorf("top of address space: n=%d err=%v", n, err)
	}
	if n, err := m.ReadAt(b, 0x100); n != 8 || err == nil {
		t.Errorf("range cut by the end of the file: n=%d err=%v", n, err)
	}
	if n, _ := m.ReadAt(b, 5); n != 0 {
		t.Errorf("wrapping range was kept")
	}
}

func BenchmarkFileMemoryFind100k(b *testing.B) {
	ranges := make([]Range, 100_000)
	for i := range ranges {
		ranges[i] = Range{VA: uint64(i) * 64, Size: 16, Off: int64(i) * 16}
	}
	m := NewFileMemory(bytes.NewReader(nil), ranges)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Find(uint64(i%100_000) * 64)
	}
}
