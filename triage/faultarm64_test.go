package triage

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"dumptriage/dump"
)

// The words are what llvm-mc assembles the text to; addresses and sizes are by hand.
func TestARM64Access(t *testing.T) {
	const base, sp, pc = 0x10000000, 0x20000000, 0x140001000
	regs := dump.Registers{Arch: dump.ARM64}
	regs.Set(8, base)
	regs.Set(9, 0xfffffffe)
	regs.SetSP(sp)
	for _, x := range []struct {
		asm  string
		word uint32
		want string // write, read or both, address, size, alignment
	}{
		{"ldr w0, [x8,#16]", 0xb9401100, "r 10000010 4 0"},
		{"ldr x0, [x8]", 0xf9400100, "r 10000000 8 0"},
		{"str x1, [x8,#-8]!", 0xf81f8d01, "w ffffff8 8 0"},
		{"ldrb w2, [x8],#1", 0x38401502, "r 10000000 1 0"},
		{"strh w2, [x8,x9,lsl #1]", 0x78297902, "w 20ffffffc 2 0"},
		{"ldr q0, [x8,w9,sxtw #4]", 0x3ce9d900, "r fffffe0 16 0"},
		{"ldrsw x3, [x8,#4]", 0xb9800503, "r 10000004 4 0"},
		{"ldur x4, [x8,#-3]", 0xf85fd104, "r ffffffd 8 0"},
		{"ldp x29, x30, [sp],#32", 0xa8c27bfd, "r 20000000 16 0"},
		{"stp q0, q1, [x8,#-32]", 0xad3f0500, "w fffffe0 32 0"},
		{"ldpsw x1, x2, [x8,#8]", 0x69410901, "r 10000008 8 0"},
		{"ldr x5, 0x140001008", 0x58000045, "r 140001008 8 0"},
		{"ldxr w6, [x8]", 0x885f7d06, "r 10000000 4 4"},
		{"stlr x6, [x8]", 0xc89ffd06, "w 10000000 8 8"},
		{"cas w1, w2, [x8]", 0x88a17d02, "rw 10000000 4 4"},
		{".inst 0x48227d04", 0x48227d04, "rw 10000000 16 16"}, // casp x2, x3, x4, x5, [x8]
		{"ldxp x2, x3, [x8]", 0xc87f0d02, "r 10000000 16 16"},
		{"ldadd w1, w2, [x8]", 0xb8210102, "rw 10000000 4 4"},
		{"casal w0, w1, [sp]", 0x88e0ffe1, "rw 20000000 4 4"},
		{"caslb w0, w1, [x8]", 0x08a0fd01, "rw 10000000 1 1"},
		{"ldaddal x0, xzr, [x8]", 0xf8e0011f, "rw 10000000 8 8"},
		{"swpah w1, w2, [x8]", 0x78a18102, "rw 10000000 2 2"},
		{"ldaprb w1, [x8]", 0x38bfc101, "r 10000000 1 1"},
		{"ldumin w1, w2, [x8]", 0xb8217102, "rw 10000000 4 4"},
		{"ldclrl x1, x2, [x8]", 0xf8611102, "rw 10000000 8 8"},
		{"ldapr x1, [x8]", 0xf8bfc101, "r 10000000 8 8"},
		{".inst 0xd9404101", 0xd9404101, "r 10000004 8 0"}, // ldapur x1, [x8,#4]
		{"ld1 {v0.16b, v1.16b}, [x8]", 0x4c40a100, "r 10000000 32 0"},
		{"st1 {v0.s}[1], [x8]", 0x0d009100, "w 10000000 4 0"},
		{"ld2r {v0.2d, v1.2d}, [x8]", 0x4d60cd00, "r 10000000 16 0"},
		{"dc zva, x8", 0xd50b7428, "w 10000000 0 0"}, // a block whose size is the processor's
		{"ldr s0, [x8,#4]", 0xbd400500, "r 10000004 4 0"},
		{"strb wzr, [x8]", 0x3900011f, "w 10000000 1 0"},
		{"ldtr w0, [x8,#4]", 0xb8404900, "r 10000004 4 0"},
		{"ldr w0, [x7]", 0xb94000e0, "r ? 4 0"}, // x7 is not known
		{"ldr w0, [x8,x7]", 0xb8676900, "r ? 4 0"},
		{".inst 0xf8200500", 0xf8200500, "r ? 8 0"}, // ldraa x0, [x8], a signed pointer
		{"dc civac, x8", 0xd50b7e28, "r 10000000 0 0"},
		{".inst 0xd50b7528", 0xd50b7528, "r 10000000 0 0"}, // ic ivau, x8
		{"dc ivac, x8", 0xd5087628, "r 10000000 0 0"},
		{".inst 0xd508711f", 0xd508711f, ""},        // ic ialluis, which has no address
		{"dc isw, x8", 0xd5087648, ""},              // a set and a way
		{".inst 0xd5087848", 0xd5087848, ""},        // at s1e0r, x8, which only translates
		{".inst 0xd50b7388", 0xd50b7388, ""},        // cfp rctx, x8, which is no address
		{".inst 0xf83fd100", 0xf83fd100, "r ? 0 0"}, // ld64b x0, [x8]
		{".inst 0xa400e000", 0xa400e000, "r ? 0 0"}, // of scalable vectors
		{"prfm pldl1keep, [x8]", 0xf9800100, ""},
		{"add x0, x1, x2", 0x8b020020, ""},
		{"b 0x140000ffc", 0x17ffffff, ""},
		{"adrp x0, 0x13fffe000", 0xb0ffffe0, ""}, // three pages back
		{"br x8", 0xd61f0100, ""},
		{"brk #0xf003", 0xd43e0060, ""},
		{"udf #0x0", 0, ""},
	} {
		code := binary.LittleEndian.AppendUint32(nil, x.word)
		in := decode(&regs, append(code, 0xcc), pc)
		if in == nil {
			t.Errorf("%s: not decoded", x.asm)
			continue
		}
		var got []string
		for _, a := range in.Accesses {
			place, kind := "?", "r"
			if a.Known {
				place = fmt.Sprintf("%x", a.Address)
			}
			if a.Write {
				kind = "w"
			}
			if a.Read {
				kind = "rw"
			}
			got = append(got, fmt.Sprintf("%s %s %d %d", kind, place, a.Size, a.Align))
		}
		if s := strings.Join(got, "; "); s != x.want {
			t.Errorf("%s: %q, want %q", x.asm, s, x.want)
		}
		if in.Text != x.asm {
			t.Errorf("%s: shown as %s", x.asm, in.Text)
		}
		if len(in.Bytes) != 4 {
			t.Errorf("%s: %d bytes", x.asm, len(in.Bytes))
		}
	}
	if in := decode(&regs, []byte{0, 1, 0x40}, pc); in != nil {
		t.Errorf("of three bytes: %+v", in)
	}
}
