package managed

import (
	"math/rand/v2"
	"testing"
)

// nibbles writes a nibble map for methods that start at offsets and end at ends, as
// the public description of the ExecutionManager contract says: each 32 bytes have
// four bits, from the top of a word down. With constant, words that lie in a method
// as a whole hold its start.
func nibbles(size int, starts, ends []int, constant bool) []byte {
	b := make([]byte, size/8)
	for i, s := range starts {
		bucket := s / 32
		word := int(b[bucket/8*4]) | int(b[bucket/8*4+1])<<8 | int(b[bucket/8*4+2])<<16 | int(b[bucket/8*4+3])<<24
		word |= (s%32/4 + 1) << (28 - 4*(bucket%8))
		put32(b, bucket/8*4, uint32(word))
		for w := s/256 + 1; constant && (w+1)*256 <= ends[i]; w++ {
			put32(b, w*4, uint32(s&^15|s%16/4+9))
		}
	}
	return b
}

func TestNibbleMap(t *testing.T) {
	const size, base, words = 1 << 16, 0x5000_0000, 0x1000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, constant := range []bool{false, true} {
		var starts, ends []int
		for at := 8; at < size-4096; {
			n := 32 + rng.IntN(2000) // no two methods start in one bucket
			starts, ends = append(starts, at), append(ends, at+n)
			at = (at + n + 31) &^ 3
		}
		mem := memory{words: nibbles(size, starts, ends, constant)}
		m := nibbleMap{base: base, words: words, constant: constant}
		for i, s := range starts {
			for at := s; at < ends[i]; at++ {
				a := &access{mem: mem, l: &layout{pointer: 8}}
				if got, ok := m.start(a, base+uint64(at)); !ok || got != base+uint64(s) || a.err != nil {
					t.Fatalf("constant %v, %#x: %#x, %v, %v; want %#x", constant, at, got, ok, a.err, base+s)
				}
			}
		}
		a := &access{mem: mem, l: &layout{pointer: 8}}
		if got, ok := m.start(a, base+7); ok {
			t.Errorf("before the first method: %#x", got)
		}
		if got, ok := m.start(a, base-1); ok {
			t.Errorf("before the map: %#x", got)
		}
	}
}

// TestNibbleWalk: an empty linear map is walked back over for no longer than a method
// can be.
func TestNibbleWalk(t *testing.T) {
	mem := &counted{}
	m := nibbleMap{base: 0, words: 1 << 40}
	if _, ok := m.start(&access{mem: mem, l: &layout{pointer: 8}}, 1<<36); ok || mem.reads > maxMethod/codePerWord+2 {
		t.Errorf("%v after %d reads", ok, mem.reads)
	}
}

// counted is memory of zeros.
type counted struct{ reads int }

func (c *counted) ReadAt(p []byte, va uint64) (int, error) {
	c.reads++
	clear(p)
	return len(p), nil
}
