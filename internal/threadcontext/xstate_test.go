package threadcontext

import (
	"os"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
)

// xstate describes what follows a CONTEXT whose flags announce CONTEXT_XSTATE:
// CONTEXT_EX at 0x4d0 (three chunks of offset from its own start and length:
// All, Legacy, XState), then the XSAVE header (mask of the components that are
// present, mask of those with room and bit 63 for the compacted format, 48
// reserved bytes), then the components. Zero fields take sensible values.
type xstate struct {
	flags           uint64
	offset          int32 // of XState from CONTEXT_EX
	length          uint32
	present, layout uint64
	before          int // bytes of components before CET_U
	ssp             uint64
}

const ssp = 0xcbc83fefc8

func withXState(x xstate) []byte {
	set := func(v *uint64, to uint64) {
		if *v == 0 {
			*v = to
		}
	}
	set(&x.flags, 0x10005f)
	set(&x.present, 1<<11)
	set(&x.layout, 1<<63|1<<11)
	set(&x.ssp, ssp)
	if x.offset == 0 {
		x.offset = 0x50
	}
	if x.length == 0 {
		x.length = uint32(0x40 + x.before + 16)
	}
	at := 0x4d0 + 0x50
	fields := append(amd64Fields(x.flags),
		field{0x4d0, 8, 0}, field{0x4d8, 8, 0},
		field{0x4e0, 4, uint64(uint32(x.offset))}, field{0x4e4, 4, uint64(x.length)},
		field{at, 8, x.present}, field{at + 8, 8, x.layout},
		field{at + 0x40 + x.before, 8, 1}, // IA32_U_CET: shadow stacks are on
		field{at + 0x48 + x.before, 8, x.ssp})
	return build(at+0x50+x.before, fields...)
}

// The shadow stack pointer is the second word of component 11, behind those
// components that the layout mask has room for.
func TestShadowStackPointer(t *testing.T) {
	const compacted, cet = 1 << 63, 1 << 11
	for _, x := range []struct {
		name string
		x    xstate
		want bool
	}{
		{"alone", xstate{}, true},
		{"behind AVX", xstate{layout: compacted | cet | 1<<2, before: 256}, true},
		{"x87 and SSE have no room of their own", xstate{layout: compacted | cet | 3}, true},
		// Sizes by the Intel SDM, volume 1, section 13.5: AVX 256, bounds 64,
		// BNDCSR 64, opmask 64, ZMM_Hi256 512, Hi16_ZMM 1024, PT 128, PKRU 8, PASID 8.
		{"behind AVX-512 and PKRU", xstate{layout: compacted | cet | 0b10_1110_0100, before: 256 + 64 + 512 + 1024 + 8}, true},
		{"behind bounds", xstate{layout: compacted | cet | 0b1_1000, before: 128}, true},
		{"behind PT and PASID", xstate{layout: compacted | cet | 1<<8 | 1<<10, before: 136}, true},
		{"later components do not matter", xstate{layout: compacted | cet | 1<<17 | 1<<18}, true},
		{"no XSTATE in the flags", xstate{flags: 0x10001f}, false},
		{"not present", xstate{present: 1 << 2}, false},
		{"no room in the layout", xstate{layout: compacted | 1<<2, before: 256}, false},
		{"standard format", xstate{layout: cet}, false},
		{"the chunk ends before it", xstate{length: 0x48}, false},
		{"the chunk ends in the header", xstate{length: 8}, false},
		{"a chunk longer than the record", xstate{length: 0xffffff}, true},
		{"an offset past the end", xstate{offset: 0x7fffffff}, false},
		{"an offset before the record", xstate{offset: -0x4d1}, false},
		{"the most negative offset", xstate{offset: -0x80000000}, false},
		{"not aligned", xstate{ssp: ssp + 4}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := mustParse(t, dump.AMD64, withXState(x.x))
			got, known := r.Get(dump.RegSSP)
			if known != x.want || known && got != ssp {
				t.Errorf("%#x, known %v", got, known)
			}
			if pc, ok := r.PC(); !ok || pc != 0x7ff7a0b2102a { // whatever the extended state is
				t.Errorf("program counter %#x, %v", pc, ok)
			}
		})
	}
	zero := withXState(xstate{})
	le.PutUint64(zero[0x568:], 0)
	if r := mustParse(t, dump.AMD64, zero); r.Known(dump.RegSSP) {
		t.Error("a shadow stack pointer of 0 is known")
	}
	full := withXState(xstate{})
	for n := 0x4d0; n < len(full); n++ {
		if r := mustParse(t, dump.AMD64, full[:n]); r.Known(dump.RegSSP) {
			t.Fatalf("known from %#x of %#x bytes", n, len(full))
		}
	}
}

// readCorpus returns a file of the collection of real dumps, or skips the test.
func readCorpus(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(corpus.Need(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCorpusXState reads CONTEXT records of real dumps by their places in the
// files. The first has a shadow stack: at 0x5bb of its CONTEXT a hex editor
// shows c8 ef 3f c8 cb 00 00 00 behind the word 1 of IA32_U_CET.
func TestCorpusXState(t *testing.T) {
	b := readCorpus(t, "user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave.dmp")
	r := mustParse(t, dump.AMD64, b[0x650:0x650+0x57f])
	if got, ok := r.Get(dump.RegSSP); !ok || got != 0xcbc83fefc8 {
		t.Errorf("shadow stack pointer %#x, %v", got, ok)
	}
	b = readCorpus(t, "user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave-x86.dmp")
	for _, at := range []int{0x169e, 0x1b19, 0x1f94} {
		record := b[at : at+0x47b]
		r := mustParse(t, dump.X86, record)
		pc, ok1 := r.PC()
		sp, ok2 := r.SP()
		if !ok1 || !ok2 || pc != uint64(le.Uint32(record[0xb8:])) || sp != uint64(le.Uint32(record[0xc4:])) || pc == 0 || sp == 0 {
			t.Errorf("at %#x: eip %#x, esp %#x", at, pc, sp)
		}
		if r.Known(dump.RegSSP) {
			t.Errorf("at %#x: a shadow stack pointer", at)
		}
	}
}

// A CONTEXT of 0x67f bytes has room for AVX in front: what 0x57f bytes hold,
// and 0x100 more.
func TestSizes(t *testing.T) {
	for size, x := range map[int]xstate{0x57f: {}, 0x67f: {layout: 1<<63 | 1<<11 | 1<<2, before: 256}} {
		b := append(withXState(x), make([]byte, size)...)[:size]
		r := mustParse(t, dump.AMD64, b)
		if got, ok := r.Get(dump.RegSSP); !ok || got != ssp {
			t.Errorf("%#x bytes: %#x, %v", size, got, ok)
		}
	}
}
