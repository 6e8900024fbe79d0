package unwind

import (
	"testing"

	"dumptriage/dump"
)

// What a walker remembers of code grows with what it is asked, up to a bound, and is the same
// before and after it has grown.
func TestSitesGrow(t *testing.T) {
	asked := map[uint64]int{}
	w := newWalker(&space{}, dump.AMD64, func(va uint64) (Table, uint64) { asked[va]++; return nil, 0 })
	if len(w.sites) != 1<<firstSiteBits {
		t.Errorf("begins with %d", len(w.sites))
	}
	for range 2 {
		for i := range uint64(10) {
			if s := w.site(0x1000 + i); s.addr != 0x1000+i || !s.valid {
				t.Fatalf("%+v", s)
			}
		}
	}
	if len(w.sites) != 1<<firstSiteBits {
		t.Errorf("few sites take room for %d", len(w.sites))
	}
	for i := range uint64(5000) {
		if s := w.site(0x10000 + 16*i); s.addr != 0x10000+16*i {
			t.Fatalf("site %d: %+v", i, s)
		}
	}
	if len(w.sites) != 1<<siteBits {
		t.Errorf("many sites take room for %d, want %d", len(w.sites), 1<<siteBits)
	}
	// What was found before it grew was not looked for again because it grew.
	w = newWalker(&space{}, dump.AMD64, w.find)
	clear(asked)
	w.site(0x77)
	w.growSites()
	if s := w.site(0x77); s.addr != 0x77 || asked[0x77] != 1 {
		t.Errorf("%+v, looked for %d times", s, asked[0x77])
	}
}
