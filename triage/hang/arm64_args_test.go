package hang

import (
	"encoding/hex"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// armAnalysis has memory with a few words: 0x5030 holds 0x77, 0x5038 holds 0x99 and
// behind it -2 in 32 bits.
func armAnalysis() *analysis {
	m := memory32{0x5030: 0x77, 0x5034: 0, 0x5038: 0x99, 0x503c: 0xfffffffe}
	return &analysis{inc: incident(), space: triage.NewView(m, nil, nil)}
}

func armBytes(t testing.TB, code string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Values before a call, in code that LLVM assembled; the call is bl and its bytes the
// last four. The frame's registers are x19 0x1111, x20 with its upper half in use,
// x29 0x5040 and sp 0x5000.
func TestArgumentsARM64(t *testing.T) {
	regs := dump.Registers{Arch: dump.ARM64}
	regs.Set(19, 0x1111)
	regs.Set(20, 0x7ff600003333)
	regs.Set(dump.ARM64FP, 0x5040)
	regs.Set(dump.ARM64SP, 0x5000)
	for _, c := range []struct {
		asm, code string
		reg       int
		want      uint64
		ok        bool
	}{
		{"mov x0, x19", "e00313aa 10000094", 0, 0x1111, true},
		{"mov w0, w20", "e003142a 10000094", 0, 0x3333, true},
		{"add x0, x19, #0x10", "60420091 10000094", 0, 0x1121, true},
		{"sub x1, x19, #0x11", "614600d1 10000094", 1, 0x1100, true},
		{"add x0, sp, #0x30", "e0c30091 10000094", 0, 0x5030, true},
		{"mov x0, sp", "e0030091 10000094", 0, 0x5000, true},
		{"movz w1, #0x1c4", "81388052 10000094", 1, 0x1c4, true},
		{"mov x0, #-1", "00008092 10000094", 0, 0xffffffffffffffff, true},
		{"mov w0, #-1", "00008012 10000094", 0, 0xffffffff, true},
		{"movz x0, #0x1234; movk x0, #0xabcd, lsl #16", "804682d2 a079b5f2 10000094", 0, 0xabcd1234, true},
		{"mov x2, xzr", "e2031faa 10000094", 2, 0x0, true},
		{"ldr x1, [sp, #0x30]", "e11b40f9 10000094", 1, 0x77, true},
		{"ldr w1, [sp, #0x38]", "e13b40b9 10000094", 1, 0x99, true},
		{"ldr x1, [sp, #0x40]", "e12340f9 10000094", 1, 0x0, false},
		{"ldp x0, x1, [sp, #0x30]", "e00743a9 10000094", 1, 0xfffffffe00000099, true},
		{"ldur x1, [x29, #-0x10]", "a1035ff8 10000094", 1, 0x77, true},
		{"ldrsw x1, [sp, #0x3c]", "e13f80b9 10000094", 1, 0xfffffffffffffffe, true},
		{"adrp x0, 0x3000; add x0, x0, #0x28", "000000f0 00a00091 10000094", 0, 0x140004028, true},
		{"adr x0, #0x20", "00010010 10000094", 0, 0x140001020, true},
		{"mov x8, x19; mov x0, x8", "e80313aa e00308aa 10000094", 0, 0x1111, true},
		{"mov x0, x19; mov x19, x8", "e00313aa f30308aa 10000094", 0, 0x0, false},
		{"mov x19, x8; mov x0, x19", "f30308aa e00313aa 10000094", 0, 0x1111, true},
		{"mov x0, x19; bl #0x100", "e00313aa 40000094 10000094", 0, 0x0, false},
		{"mov x0, x19; blr x8", "e00313aa 00013fd6 10000094", 0, 0x0, false},
		{"cmp x0, #0; mov x1, x19", "1f0000f1 e10313aa 10000094", 1, 0x1111, true},
		{"csel x0, x19, x20, eq", "6002949a 10000094", 0, 0x0, false},
		{"add x0, x19, x20", "6002148b 10000094", 0, 0x0, false},
		{"ldr x0, [x18, #0x60]", "403240f9 10000094", 0, 0x0, false},
		{"cbz x1, #8; mov x0, x19", "410000b4 e00313aa 10000094", 0, 0x0, false},
		{"cbz x1, #-8; mov x0, x19", "c1ffffb4 e00313aa 10000094", 0, 0x1111, true},
		{"b.eq #8; mov x0, x19", "40000054 e00313aa 10000094", 0, 0x0, false},
		{"tbz w1, #3, #8; mov x0, x19", "41001836 e00313aa 10000094", 0, 0x0, false},
		{"mov x0, x19; b #4", "e00313aa 01000014 10000094", 0, 0x0, false},
		{"nop", "1f2003d5 10000094", 3, 0x0, false},
		{"mov x0, x19; ldaxr x0, [x8]", "e00313aa 00fd5fc8 10000094", 0, 0x0, false},
		{"mov x0, x19; ldr x0, [x8, x9]", "e00313aa 006969f8 10000094", 0, 0x0, false},
		{"mov x0, x19; fmov x0, d1", "e00313aa 2000669e 10000094", 0, 0x0, false},
		{"mov x0, x19; swpal x1, x0, [x8]", "e00313aa 0081e1f8 10000094", 0, 0x0, false},
		{"mov x0, x19; str x0, [sp, #8]; stp x0, x1, [sp, #0x10]", "e00313aa e00700f9 e00701a9 10000094", 0, 0x1111, true},
		{"mov x0, x19; str d0, [sp, #8]; ldr d0, [sp, #8]", "e00313aa e00700fd e00740fd 10000094", 0, 0x1111, true},
		{"mov x0, x19; ldr x9, [x0], #8", "e00313aa 098440f8 10000094", 0, 0x1119, true},
		{"mov x0, x19; ldr x9, [x0, #0x18]!", "e00313aa 098c41f8 10000094", 0, 0x1129, true},
		{"ldr x0, [sp, #0x30]!", "e00f43f8 10000094", 0, 0x0, false},
		{"stp x29, x30, [sp, #-0x20]!; ldr x1, [sp, #0x30]", "fd7bbea9 e11b40f9 10000094", 1, 0x77, true},
		{"mov x0, x19; mrs x0, tpidr_el0", "e00313aa 40d03bd5 10000094", 0, 0x0, false},
		{"mov x0, x19; pacibsp", "e00313aa 7f2303d5 10000094", 0, 0x1111, true},
		{"mov x17, x19; mov x0, x17", "f10313aa e00311aa 10000094", 0, 0x1111, true},
		{"mov x17, x19; pacia1716; mov x0, x17", "f10313aa 1f2103d5 e00311aa 10000094", 0, 0x0, false},
		{"mov x0, x19; svc #0", "e00313aa 010000d4 10000094", 0, 0x0, false},
		{"mov x0, x19; umov w0, v1.s[0]", "e00313aa 203c040e 10000094", 0, 0x0, false},
		{"ldrb w0, [sp, #0x30]", "e0c34039 10000094", 0, 0x0, false},
		{"mov x0, x19; uxtw x0, w8", "e00313aa 007d40d3 10000094", 0, 0x0, false},
		{"no call", "e00313aa", 0, 0, false},
		{"half an instruction", "e00313aa 1000", 0, 0, false},
		{"nothing", "", 0, 0, false},
	} {
		var got uint64
		ok := false
		if s := siteInARM64(armBytes(t, c.code), siteStart); s != nil {
			e := armEvaluation{a: armAnalysis(), h: half("ntdll!f", "app!g"), regs: []dump.Registers{{}, regs}, frame: 1, site: s, depth: 1}
			got, ok = e.register(len(s.code), c.reg, maxSteps)
		}
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %#x %v, want %#x %v", c.asm, got, ok, c.want, c.ok)
		}
	}
}

// A function that passes its own argument on: the value is in its caller's code, if
// that called the function.
func TestPassedArgumentARM64(t *testing.T) {
	const inner, outer = 0x9000, 0xa000
	code := map[string]string{
		"inner": "ff4300d1 10000094",          // sub sp, sp, #0x10; bl
		"outer": "208580d2 01fcff97",          // mov x0, #0x429; bl, to siteStart-0xff8
		"thunk": "900000b0 101240f9 00021fd6", // adrp x16; ldr x16, [x16, #0x20]; br x16
	}
	site := func(name string, start uint64) *armSite { return siteInARM64(armBytes(t, code[name]), start) }
	for what, c := range map[string]struct {
		start  uint64 // of the inner function
		target uint64 // of the outer one's call
		thunk  bool
		ok     bool
	}{
		"the call is to it":          {0x140002000, 0x140002000, false, true},
		"the call is to another":     {0x140002000, 0x140002100, false, false},
		"the call is to a thunk":     {0x140002000, 0x140002100, true, true},
		"the call is by a register":  {0x140002000, 0, false, true},
		"it is the start of nothing": {0, 0, false, true},
	} {
		a := armAnalysis()
		m := memory32{}
		if c.thunk {
			b := armBytes(t, code["thunk"])
			for i := range 3 {
				m[uint32(c.target)+uint32(4*i)] = armWord(b, i)
			}
		}
		a.space = triage.NewView(high{m}, nil, nil)
		in, out := site("inner", siteStart), site("outer", siteStart)
		in.start, out.target = c.start, c.target
		h := half("ntdll!f", "app!inner", "app!outer")
		h.Registers.Arch = dump.ARM64
		h.Frames[1].IP, h.Frames[2].IP = inner, outer
		a.armSites = map[siteKey]*armSite{{a.space, inner}: in, {a.space, outer}: out}
		v, _, ok := a.argument(h, make([]dump.Registers, 3), 0, 0)
		if ok != c.ok || ok && v != 0x429 {
			t.Errorf("%s: %#x %v", what, v, ok)
		}
	}
	a := armAnalysis()
	h := half("ntdll!f", "app!g")
	h.Registers.Arch = dump.ARM64
	if _, _, ok := a.argument(h, make([]dump.Registers, 2), 0, 8); ok {
		t.Error("a ninth argument is in no register")
	}
}

// high is memory at 0x100000000 and above.
type high struct{ memory32 }

func (h high) ReadAt(p []byte, va uint64) (int, error) { return h.memory32.ReadAt(p, va&0xffffffff) }

func FuzzCallSiteARM64(f *testing.F) {
	f.Add([]byte("\xe0\x03\x13\xaa\x10\x00\x00\x94"), uint8(0))
	f.Add([]byte("\xe1\x1b\x40\xf9\xff\xff\xff\x54\x10\x00\x00\x94"), uint8(1))
	f.Fuzz(func(t *testing.T, code []byte, reg uint8) {
		s := siteInARM64(code[:min(len(code), 1<<12)], siteStart)
		if s == nil {
			return
		}
		e := armEvaluation{a: armAnalysis(), h: half("ntdll!f", "app!g"), regs: make([]dump.Registers, 2), frame: 1, site: s, depth: 1}
		e.register(len(s.code), int(reg&31), maxSteps)
	})
}
