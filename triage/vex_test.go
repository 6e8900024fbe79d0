package triage

import (
	"encoding/hex"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dumptriage/dump"
)

// scaled is a scaled index as LLVM writes it; ours is written the other way around.
var scaled = regexp.MustCompile(`(r\w+)\*(\d)`)

var ptrSizes = map[string]int{"dword": 4, "qword": 8, "xmmword": 16, "ymmword": 32, "zmmword": 64}

// The moves of vectors as an assembler writes them: text, address, size, direction,
// and whether they want an aligned operand, which their names say (aps, apd, dqa,
// and the ones past the caches: Intel manual, exception types 1 and E1).
func TestVectorMoves(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	const pc = 0x140001000
	regs, values := dump.Registers{Arch: dump.AMD64}, map[string]uint64{}
	for r := dump.RAX; r <= dump.R15; r++ {
		v := 0x1_0000_0000*uint64(r+1) + 0x1008
		regs.Set(r, v)
		values[dump.AMD64.RegName(r)] = v
	}
	values["ebx"] = values["rbx"] & 0xffffffff
	moves, others, found := strings.Cut(string(text), "\n\n")
	if !found {
		t.Fatal("no blank line")
	}
	for line := range strings.Lines(moves) {
		code, want, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue // a remark
		}
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		in := decode(&regs, append(b, 0xcc, 0xcc, 0xcc), pc)
		if in == nil || len(in.Accesses) != 1 || len(in.Bytes) != len(b) {
			t.Errorf("%s: %+v", want, in)
			continue
		}
		if got := scaled.ReplaceAllString(strings.ReplaceAll(want, " {", "{"), "$2*$1"); in.Text != got {
			t.Errorf("%s: %s", want, in.Text)
		}
		a, name := in.Accesses[0], strings.Fields(want)[0]
		before, _, _ := strings.Cut(want, " ptr")
		size := ptrSizes[before[strings.LastIndex(before, " ")+1:]]
		align := 0
		if strings.Contains(name, "ap") || strings.Contains(name, "dqa") || strings.Contains(name, "movnt") {
			align = size
		}
		store := strings.Index(want, " ptr") < strings.Index(want, ",")
		if a.Size != size || a.Align != align || a.Write != store {
			t.Errorf("%s: %+v, want size %d, alignment %d, store %v", want, a, size, align, store)
		}
		address := uint64(0)
		_, operand, _ := strings.Cut(want, "[")
		operand, _, _ = strings.Cut(operand, "]")
		for _, part := range strings.Split(strings.ReplaceAll(operand, "-", "+-"), "+") {
			reg, scale, _ := strings.Cut(part, "*")
			v, isReg := values[reg]
			switch {
			case reg == "rip":
				v = pc + uint64(len(b))
			case !isReg:
				n, err := strconv.ParseInt(part, 0, 64)
				if err != nil {
					t.Fatal(want, err)
				}
				v = uint64(n)
			}
			if n, err := strconv.Atoi(scale); err == nil {
				v *= uint64(n)
			}
			address += v
		}
		if known := !strings.Contains(want, "gs:"); a.Known != known || known && a.Address != address {
			t.Errorf("%s: address %#x (%v), want %#x", want, a.Address, a.Known, address)
		}
		for n := range b { // cut short it is no instruction, or another one, and no panic
			decode(&regs, b[:n], pc)
		}
	}
	for line := range strings.Lines(others) {
		if code, what, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			b, _ := hex.DecodeString(code)
			if in := decode(&regs, b, pc); in != nil {
				t.Errorf("%s is taken for %s", what, in.Text)
			}
		}
	}
}

// The older encodings: 16 bytes have to be aligned but for some (Intel manual, the
// pages of these instructions). The bytes are LLVM's.
func TestAlignment(t *testing.T) {
	regs := dump.Registers{Arch: dump.AMD64}
	regs.Set(dump.RCX, 0x10008)
	for _, c := range []struct {
		code, text string
		align      int
	}{
		{"0f284910", "movaps xmm1, xmmword ptr [rcx+0x10]", 16},
		{"0f104910", "movups xmm1, xmmword ptr [rcx+0x10]", 0},
		{"660f104910", "movupd xmm1, xmmword ptr [rcx+0x10]", 0},
		{"f30f6f4910", "movdqu xmm1, xmmword ptr [rcx+0x10]", 0},
		{"f20ff04910", "lddqu xmm1, xmmword ptr [rcx+0x10]", 0},
		{"660f3a61491001", "pcmpestri xmm1, xmmword ptr [rcx+0x10], 0x1", 0},
		{"660f3a62491001", "pcmpistrm xmm1, xmmword ptr [rcx+0x10], 0x1", 0},
		{"0f584910", "addps xmm1, xmmword ptr [rcx+0x10]", 16},
		{"f30f584910", "addss xmm1, dword ptr [rcx+0x10]", 0},
		{"660f38dc4910", "aesenc xmm1, xmmword ptr [rcx+0x10]", 16},
		{"660f38204910", "pmovsxbw xmm1, qword ptr [rcx+0x10]", 0},
		{"0f2b4910", "movntps xmmword ptr [rcx+0x10], xmm1", 16},
		{"480fc709", "cmpxchg16b xmmword ptr [rcx]", 16},
		{"0fae01", "fxsave ptr [rcx]", 16},
		{"0fae21", "xsave ptr [rcx]", 64},
		{"488b01", "mov rax, qword ptr [rcx]", 0},
	} {
		b, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		in := decode(&regs, b, 0x140001000)
		if in == nil || len(in.Accesses) != 1 || in.Accesses[0].Align != c.align {
			t.Errorf("%s: %+v, want alignment %d", c.text, in, c.align)
		}
	}
}
