package kdump

import "testing"

// A bitmap lies whole behind its header and before the first page, which is in the
// file: of 17 pages it takes three bytes.
func TestBitmapHeadFits(t *testing.T) {
	const size = 0x10000
	for name, c := range map[string]struct {
		h    bitmapHead
		want bool
	}{
		"ends where the pages begin":        {bitmapHead{off: 0x2038, bits: 17, firstPage: 0x203b}, true},
		"room before the pages":             {bitmapHead{off: 0x2038, bits: 17, firstPage: 0x4000}, true},
		"reaches a byte into the pages":     {bitmapHead{off: 0x2038, bits: 17, firstPage: 0x203a}, false},
		"pages before the bitmap":           {bitmapHead{off: 0x2038, bits: 17, firstPage: 0x1000}, false},
		"no page is in the file":            {bitmapHead{off: 0x2038, bits: 17, firstPage: size}, true},
		"pages behind the file":             {bitmapHead{off: 0x2038, bits: 17, firstPage: size + 1}, false},
		"of no pages":                       {bitmapHead{off: 0x2038, firstPage: 0x4000}, false},
		"a claim of all pages that are not": {bitmapHead{off: 0x2038, bits: 1 << 63, firstPage: 0x4000}, false},
	} {
		if got := c.h.fits(size); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for bits, want := range map[uint64]bool{maxBits: true, maxBits + 1: false} {
		h := bitmapHead{bits: bits, firstPage: 1 << 40}
		if got := h.fits(1 << 41); got != want {
			t.Errorf("%#x bits in a file that has room for them: %v", bits, got)
		}
	}
}
