package pdata

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packedVectors are words of packed unwind data with another tool's reading.
const packedVectors = "testdata/arm64_packed.txt"

func TestARM64PackedVectors(t *testing.T) {
	f, err := os.Open(packedVectors)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		hex, text, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if hex == "#" {
			continue
		}
		word, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			text = ""
		}
		u, err := DecodeARM64Packed(uint32(word))
		if err != nil {
			t.Errorf("%s: %v", hex, err)
			continue
		}
		prolog, _ := u.Prolog(nil)
		// The tool prints the stores of the parameters; what they undo is
		// nothing, or the room that the first of them makes.
		want := []string{}
		for _, c := range strings.Split(text, "; ") {
			if strings.HasPrefix(c, "stp x0, x1, [sp, #-") {
				c = "sub sp, sp, #" + strings.Trim(c[len("stp x0, x1, [sp, #-"):], "]!")
			}
			for _, home := range []string{"stp x0, ", "stp x2, ", "stp x4, ", "stp x6, "} {
				if strings.HasPrefix(c, home) {
					c = "nop"
				}
			}
			if c != "" {
				want = append(want, c)
			}
		}
		if got := renderARM64(prolog, true, false); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", hex, got, want)
		}
		n++
	}
	if n < 200 {
		t.Errorf("only %d vectors", n)
	}
}

// x19 and lr alone: what llvm-readobj calls invalid, Visual C++ writes, with
// this code before and after (measured; .pdata word of a function of 92 bytes):
// sub sp, sp, #16; stp x19, x30, [sp] ... ldp x19, x30, [sp]; add sp, sp, #16; ret.
func TestARM64PackedLRPairAlone(t *testing.T) {
	u, err := DecodeARM64Packed(1 | 23<<2 | 1<<16 | 1<<21 | 1<<23)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint32]string{
		0:       "",
		4:       "sub sp, sp, #16",
		8:       "stp x19, lr, [sp, #0]; sub sp, sp, #16",
		40:      "stp x19, lr, [sp, #0]; sub sp, sp, #16",
		92 - 12: "stp x19, lr, [sp, #0]; sub sp, sp, #16",
		92 - 8:  "sub sp, sp, #16",
		92 - 4:  "",
	} {
		codes, err := u.At(nil, at)
		if got := strings.Join(renderARM64(codes, true, false), "; "); err != nil || got != want {
			t.Errorf("at %d: %q %v, want %q", at, got, err, want)
		}
	}
}

// The epilog of packed data has neither the stores of the parameters nor, with
// a frame chain, a restoring of sp from fp: pacibsp; stp fp, lr, [sp, #-32]!;
// mov fp, sp ... ldp fp, lr, [sp], #32; autibsp; ret.
func TestARM64PackedEpilog(t *testing.T) {
	u, err := DecodeARM64Packed(1 | 20<<2 | 2<<21 | 2<<23)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint32]string{
		4:       "pacibsp",
		8:       "stp x29, lr, [sp, #-32]!; pacibsp",
		12:      "mov x29, sp; stp x29, lr, [sp, #-32]!; pacibsp",
		80 - 16: "mov x29, sp; stp x29, lr, [sp, #-32]!; pacibsp",
		80 - 12: "stp x29, lr, [sp, #-32]!; pacibsp",
		80 - 8:  "pacibsp",
		80 - 4:  "",
	} {
		codes, _ := u.At(nil, at)
		if got := strings.Join(renderARM64(codes, true, false), "; "); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

// xdata makes a record of little-endian words and code bytes.
func xdata(words []uint32, codes ...byte) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return append(b, codes...)
}

// Every code of two and more bytes at the ends of its operands' ranges, as
// llvm-mc 19 assembles the .seh_ directive of that name.
func TestARM64Codes(t *testing.T) {
	for _, c := range []struct {
		bytes []byte
		want  string
	}{
		{[]byte{0x1f}, "sub sp, #496"},
		{[]byte{0x2c}, "stp x19, x20, [sp, #-96]!"},
		{[]byte{0x7f}, "stp x29, x30, [sp, #504]"},
		{[]byte{0x80}, "stp x29, x30, [sp, #-8]!"},
		{[]byte{0xc7, 0xff}, "sub sp, #32752"},
		{[]byte{0xca, 0x3f}, "stp x27, x28, [sp, #504]"},
		{[]byte{0xcc, 0x01}, "stp x19, x20, [sp, #-16]!"},
		{[]byte{0xd2, 0xc3}, "str x30, [sp, #24]"},
		{[]byte{0xd5, 0x7f}, "str x30, [sp, #-256]!"},
		{[]byte{0xd6, 0x41}, "stp x21, lr, [sp, #8]"},
		{[]byte{0xd8, 0x04}, "stp d8, d9, [sp, #32]"},
		{[]byte{0xdb, 0xbf}, "stp d14, d15, [sp, #-512]!"},
		{[]byte{0xdd, 0xff}, "str d15, [sp, #504]"},
		{[]byte{0xde, 0xff}, "str d15, [sp, #-256]!"},
		{[]byte{0xe0, 0x0f, 0xff, 0xff}, "sub sp, #16777200"},
		{[]byte{0xe1}, "mov fp, sp"},
		{[]byte{0xe2, 0x02}, "add fp, sp, #16"},
		{[]byte{0xe7, 0x1e, 0x02}, "str x30, [sp, #16]"},
		{[]byte{0xe7, 0x29, 0x81}, "str q9, [sp, #-32]!"},
		{[]byte{0xe7, 0x48, 0x82}, "stp q8, q9, [sp, #32]"},
		{[]byte{0xe7, 0x08, 0x43}, "str d8, [sp, #24]"},
		{[]byte{0xe7, 0x68, 0x43}, "stp d8, d9, [sp, #-64]!"},
		{[]byte{0xe7, 0x35, 0x02}, "str x21, [sp, #-48]!"},
		{[]byte{0xe7, 0x53, 0x02}, "stp x19, x20, [sp, #32]"},
		{[]byte{0xe3, 0xe5, 0xe6, 0xfc}, "nop; end_c; save next; pacibsp"},
		{[]byte{0xe8, 0xe9, 0xea, 0xeb, 0xec}, "trap frame; machine frame; context; EC context; clear unwound to call"},
	} {
		b := append(slices.Clone(c.bytes), 0xe4)
		for len(b)%4 != 0 {
			b = append(b, 0xe3)
		}
		u, err := DecodeARM64Xdata(xdata([]uint32{16 | uint32(len(b)/4)<<27}, b...))
		if err != nil {
			t.Errorf("% x: %v", c.bytes, err)
			continue
		}
		codes, err := u.Prolog(nil)
		if got := strings.Join(renderARM64(codes, false, false), "; "); err != nil || got != c.want {
			t.Errorf("% x: %q %v, want %q", c.bytes, got, err, c.want)
		}
	}
}

func TestARM64Reserved(t *testing.T) {
	for name, b := range map[string][]byte{
		"code 0xdf":                   xdata([]uint32{16 | 1<<27}, 0xdf, 0, 0xe4, 0),
		"code 0xf8":                   xdata([]uint32{16 | 1<<27}, 0xf8, 0, 0xe4, 0),
		"save_any_reg of no file":     xdata([]uint32{16 | 1<<27}, 0xe7, 0x13, 0xc2, 0xe4),
		"save_any_reg, bit 7":         xdata([]uint32{16 | 1<<27}, 0xe7, 0x93, 0x02, 0xe4),
		"codes without an end":        xdata([]uint32{16 | 1<<27}, 0xe3, 0xe3, 0xe3, 0xe3),
		"a code cut by the end":       xdata([]uint32{16 | 1<<27}, 0xe3, 0xe3, 0xe3, 0xc8),
		"version 1":                   xdata([]uint32{16 | 1<<18 | 1<<27}, 0xe4, 0, 0, 0),
		"fewer codes than claimed":    xdata([]uint32{16 | 2<<27}, 0xe4, 0, 0, 0),
		"fewer scopes than claimed":   xdata([]uint32{16 | 9<<22 | 1<<27}, 0xe4, 0, 0, 0),
		"an epilog beyond the start":  xdata([]uint32{1 | 1<<21 | 1<<27}, 0xe3, 0xe3, 0xe3, 0xe4),
		"an epilog index past codes":  xdata([]uint32{16 | 1<<21 | 9<<22 | 1<<27}, 0xe4, 0, 0, 0),
		"no handler where one is due": xdata([]uint32{16 | 1<<20 | 1<<27}, 0xe4, 0, 0, 0),
		"nothing":                     nil,
	} {
		u, err := DecodeARM64Xdata(b)
		if err == nil {
			_, err = u.At(nil, 0)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, word := range map[string]uint32{"flag 3": 3, "flag 0": 0, "11 integer registers": 1 | 11<<16 | 31<<23, "saves beyond the frame": 1 | 4<<16 | 1<<23, "no room for the chain": 1 | 3<<21} {
		if u, err := DecodeARM64Packed(word); err == nil {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// A record with two scopes: prolog at bytes 0 to 3 (mov fp, sp; stp fp, lr,
// [sp, #-16]!; end), the epilog's codes at byte 3. 40 instructions; epilogs of
// ldp fp, lr, [sp], #16; ret begin at instructions 10 and 38.
func TestARM64Scopes(t *testing.T) {
	u, err := DecodeARM64Xdata(xdata([]uint32{40 | 2<<22 | 2<<27, 10 | 3<<22, 38 | 3<<22}, 0xe1, 0x81, 0xe4, 0x81, 0xe4, 0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	const whole, saved = "mov fp, sp; stp x29, x30, [sp, #-16]!", "stp x29, x30, [sp, #-16]!"
	for at, want := range map[uint32]string{0: "", 1: saved, 2: whole, 9: whole, 10: saved, 11: "", 12: whole, 37: whole, 38: saved, 39: ""} {
		codes, err := u.At(nil, at*4)
		if got := strings.Join(renderARM64(codes, false, false), "; "); err != nil || got != want {
			t.Errorf("instruction %d: %q %v, want %q", at, got, err, want)
		}
	}
}

// Behind end_c come the codes of the function that this is a part of: they are
// undone, but no instruction here is theirs.
func TestARM64EndC(t *testing.T) {
	u, err := DecodeARM64Xdata(xdata([]uint32{40 | 1<<27}, 0xe5, 0x02, 0x81, 0xe4))
	if err != nil {
		t.Fatal(err)
	}
	codes, err := u.At(nil, 0)
	if got := strings.Join(renderARM64(codes, false, false), "; "); err != nil || got != "end_c; sub sp, #32; stp x29, x30, [sp, #-16]!" {
		t.Errorf("%q %v", got, err)
	}
}

// Codes of frames that the system lays stand for no instruction: one nop is
// all the prolog there is.
func TestARM64SystemFrames(t *testing.T) {
	u, err := DecodeARM64Xdata(xdata([]uint32{40 | 1<<27}, 0xe3, 0xe8, 0xe4, 0))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint32]string{0: "trap frame", 4: "nop; trap frame"} {
		codes, _ := u.At(nil, at)
		if got := strings.Join(renderARM64(codes, false, false), "; "); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

// armImage is a file image of machine ARM64 with one page of code at 0x1000
// and its exception directory at 0x2000; 0x2100 has an .xdata record.
func armImage(t testing.TB, entries ...uint32) *Image {
	t.Helper()
	b := make([]byte, 0x600)
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	le.PutUint16(b[0x84:], machineARM64)
	le.PutUint16(b[0x86:], 2)    // sections
	le.PutUint16(b[0x94:], 0xf0) // optional header
	o := b[0x98:]
	le.PutUint16(o, magicPE32Plus)
	le.PutUint32(o[32:], 0x1000) // section alignment
	le.PutUint32(o[36:], 0x200)
	le.PutUint32(o[56:], 0x3000) // SizeOfImage
	le.PutUint32(o[60:], 0x200)  // SizeOfHeaders
	le.PutUint32(o[108:], 16)
	le.PutUint32(o[112+8*dirException:], 0x2000)
	le.PutUint32(o[112+8*dirException+4:], uint32(4*len(entries)))
	for i, s := range [][5]uint32{{0x1000, 0x1000, 0x200, 0x200, 0x60000020}, {0x1000, 0x2000, 0x200, 0x400, 0x40000040}} {
		h := b[0x188+40*i:]
		le.PutUint32(h[8:], s[0])
		le.PutUint32(h[12:], s[1])
		le.PutUint32(h[16:], s[2])
		le.PutUint32(h[20:], s[3])
		le.PutUint32(h[36:], s[4])
	}
	for i, w := range entries {
		le.PutUint32(b[0x400+4*i:], w)
	}
	copy(b[0x500:], xdata([]uint32{8 | 1<<21 | 1<<27}, 0x81, 0xe4, 0, 0))
	return openTest(t, b, "arm.dll")
}

func TestLookupARM64(t *testing.T) {
	packed := func(words uint32) uint32 { return 1 | words<<2 | 3<<21 | 1<<23 }
	im := armImage(t, 0x1000, packed(4), 0x1020, 0x2100, 0x1080, 3)
	if !im.HasARM64Table() || im.HasFunctionTable() {
		t.Error("the table is ARM64's")
	}
	for _, c := range []struct {
		rva, begin, length uint32
		ok, bad            bool
	}{
		{0xfff, 0, 0, false, false}, {0x1000, 0x1000, 16, true, false}, {0x100c, 0x1000, 16, true, false}, {0x1010, 0, 0, false, false},
		{0x1020, 0x1020, 32, true, false}, {0x103f, 0x1020, 32, true, false}, {0x1040, 0, 0, false, false}, {0x1080, 0, 0, false, true},
	} {
		fn, ok, err := im.LookupARM64(c.rva)
		if ok != c.ok || (err != nil) != c.bad || fn.Begin != c.begin || fn.Length != c.length {
			t.Errorf("%#x: %+v %v %v", c.rva, fn, ok, err)
		}
	}
	for rva, want := range map[uint32][2]uint32{0x100c: {0x1000, 0x1010}, 0x103f: {0x1020, 0x1040}, 0x1010: {}, 0x1080: {}} {
		begin, end, ok := im.Extent(rva)
		if start, proved := im.FunctionStart(rva); [2]uint32{begin, end} != want || start != want[0] || ok != (want[0] != 0) || proved != ok {
			t.Errorf("%#x: extent %#x-%#x %v, start %#x", rva, begin, end, ok, start)
		}
	}
	fn, _, _ := im.LookupARM64(0x1020)
	u, err := im.ARM64Info(fn)
	if err != nil || u.Packed || u.Length != 32 || len(u.Epilogs) != 1 || u.Epilogs[0].Start != 24 {
		t.Errorf("%+v %v", u, err)
	}
}

// Entries out of order are sorted, as nothing makes a linker sort them.
func TestLookupARM64Unsorted(t *testing.T) {
	im := armImage(t, 0x1080, 1|4<<2, 0x1000, 1|4<<2)
	for _, rva := range []uint32{0x1000, 0x1080} {
		if fn, ok, err := im.LookupARM64(rva + 8); !ok || fn.Begin != rva {
			t.Errorf("%#x: %+v %v", rva, fn, err)
		}
	}
}

func FuzzARM64Xdata(f *testing.F) {
	f.Add(xdata([]uint32{40 | 2<<22 | 2<<27, 10 | 3<<22, 38 | 3<<22}, 0xe1, 0x81, 0xe4, 0x81, 0xe4, 0, 0, 0), uint32(40))
	f.Add(xdata([]uint32{16 | 1<<21 | 1<<27}, 0xe7, 0x1e, 0x02, 0xe4), uint32(0))
	f.Add(xdata([]uint32{16, 1 | 1<<16, 0}, 0xe4, 0, 0, 0), uint32(4))
	f.Fuzz(func(t *testing.T, b []byte, at uint32) {
		if u, err := DecodeARM64Xdata(b); err == nil {
			if codes, err := u.At(nil, at); err == nil && len(codes) > len(b) {
				t.Errorf("%d codes of %d bytes", len(codes), len(b))
			}
		}
		if len(b) >= 4 {
			if u, err := DecodeARM64Packed(binary.LittleEndian.Uint32(b)); err == nil {
				if codes, _ := u.At(nil, at); len(codes) > 24 {
					t.Error(fmt.Sprint(codes))
				}
			}
		}
	})
}

// BenchmarkARM64At is the decoding for one address that is not remembered.
func BenchmarkARM64At(b *testing.B) {
	u, err := DecodeARM64Xdata(xdata([]uint32{40 | 2<<22 | 2<<27, 10 | 3<<22, 38 | 3<<22}, 0xe1, 0x81, 0xe4, 0x81, 0xe4, 0, 0, 0))
	if err != nil {
		b.Fatal(err)
	}
	var codes []ARM64Code
	b.ReportAllocs()
	for b.Loop() {
		codes, _ = u.At(codes[:0], 80)
	}
}
