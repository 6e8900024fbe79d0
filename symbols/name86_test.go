package symbols

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/pdata"
)

// On x86 nothing but the code tells where an export's function ends.
func TestNameOf86(t *testing.T) {
	const export = 0x1000
	nops := bytes.Repeat([]byte{0x90}, 16)
	for _, c := range []struct {
		why  string
		code []byte // at the export
		at   uint32 // of the first byte that is another function's, 0 none
	}{
		{"nothing but code", nops, 0},
		{"ret; int3; push ebp; mov ebp, esp", []byte{0x90, 0xc3, 0xcc, 0xcc, 0x55, 0x8b, 0xec}, 4},
		{"ret 8; push ebp; mov ebp, esp", []byte{0x90, 0xc2, 8, 0, 0x55, 0x8b, 0xec}, 4},
		{"jmp; nops; mov edi, edi; push ebp; mov ebp, esp", []byte{0xeb, 0xfe, 0x90, 0x90, 0x8b, 0xff, 0x55, 0x8b, 0xec}, 4},
		{"GNU: ret; nop; push ebp; mov ebp, esp", []byte{0x90, 0xc3, 0x90, 0x55, 0x89, 0xe5}, 3},
		{"ret; int3; a function without frame", []byte{0x90, 0xc3, 0xcc, 0xcc, 0xcc, 0x8b, 0x44, 0x24, 4}, 5},
		{"ret 4; int3; a function without frame", []byte{0x90, 0xc2, 4, 0, 0xcc, 0x33, 0xc0}, 5},
		{"the export's own first instructions", []byte{0x8b, 0xff, 0x55, 0x8b, 0xec, 0x90}, 0},
		{"a return within", []byte{0x74, 1, 0xc3, 0x33, 0xc0, 0xc3}, 0},
		{"mov eax, 0xcccccccc; rep stosd", []byte{0xb8, 0xcc, 0xcc, 0xcc, 0xcc, 0xf3, 0xab}, 0},
		{"int3 within", []byte{0x74, 1, 0xcc, 0x33, 0xc0}, 0},
		{"push ebp; mov ebp, esp within an instruction", []byte{0xb8, 0x55, 0x8b, 0xec, 0x90}, 0},
	} {
		b := (&fixtures.Image{Name: "app.dll", Base: 0x180000000, SizeOfImage: 0x3000,
			Functions: []*fixtures.Function{{Name: "Export", RVA: export, Size: 0x40, Leaf: true}}}).File()
		binary.LittleEndian.PutUint16(b[binary.LittleEndian.Uint32(b[0x3c:])+4:], 0x14c)
		copy(fileAt(b, export), append(c.code, bytes.Repeat(nops, 3)...)[:0x40])
		im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "app.dll")
		if err != nil {
			t.Fatal(err)
		}
		for rva := uint32(export); rva < export+0x40; rva++ {
			want := "Export"
			if c.at != 0 && rva >= export+c.at {
				want = ""
			}
			if got := NameOf(im, rva, rva).Function; got != want {
				t.Errorf("%s: +%#x is %q, want %q", c.why, rva-export, got, want)
			}
		}
	}
}
