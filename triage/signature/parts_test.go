package signature

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
)

func TestNormalize(t *testing.T) {
	for in, want := range map[string]string{
		"main": "main",
		"std::vector<int,std::allocator<int> >::push_back": "std::vector<T>::push_back",
		"a<b<c>>::d<e>":       "a<T>::d<T>",
		"X::operator<":        "X::operator<",
		"X::operator<<<char>": "X::operator<<<T>",
		"X::operator-><int>":  "X::operator-><T>",
		"X::operator<=>":      "X::operator<=>",
		"my_operator<int>::f": "my_operator<T>::f",
		"f<lambda_0123456789abcdef0123456789abcdef>::operator()":     "f<T>::operator()",
		"run::<lambda_0123456789abcdef0123456789abcdef>::operator()": "run::<lambda>::operator()",
		"`anonymous namespace'::f":                                   "`anonymous namespace'::f",
		"(anonymous namespace)::f":                                   "`anonymous namespace'::f",
		"?A0x1f2e3d4c::f":                                            "`anonymous namespace'::f",
		"core::ptr::drop_in_place::h0123456789abcdef":                "core::ptr::drop_in_place",
		"foo.cold":                 "foo",
		"foo.part.0.cold.1":        "foo",
		"foo [clone .constprop.0]": "foo",
		"main$filt$0":              "main$filt",
		"`f'::`2'::s":              "`f'::`N'::s",
		"fn->x<y->z>":              "fn->x<T>",
		"broken<a":                 "broken<T>",
		"<lambda":                  "<lambda",
		"_ZN3fooE":                 "_ZN3fooE",
		"":                         "",
	} {
		if got := Normalize(in); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add("std::vector<int,std::allocator<int> >::operator<<")
	f.Add("<lambda_0123>`1'")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Normalize(s); len(got) > 8*maxNormalized {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}

// The CRC is computed here bit by bit, from its definition.
func TestAddressHashes(t *testing.T) {
	addresses := []uint64{0x7ff612345678, 0x7ffe00001000, 0x1, 0xfffff80312345678}
	crc := uint32(0)
	for _, a := range addresses {
		for _, b := range binary.LittleEndian.AppendUint64(nil, a) {
			crc ^= uint32(b)
			for range 8 {
				if crc&1 != 0 {
					crc = crc>>1 ^ 0xedb88320
				} else {
					crc >>= 1
				}
			}
		}
	}
	sum, got := AddressHashes(addresses)
	if got != crc {
		t.Errorf("crc %08x, want %08x", got, crc)
	}
	if want := uint32(0x12345678 + 0x1000 + 1 + 0x12345678); sum != want {
		t.Errorf("sum %08x, want %08x", sum, want)
	}
	slices.Reverse(addresses)
	sum2, crc2 := AddressHashes(addresses)
	if sum2 != sum || crc2 == crc {
		t.Error("the sum is blind to order, the CRC is not")
	}
}

func TestCollapse(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "aaaa": "a", "abab": "ab", "xababy": "xaby", "aabaab": "ab", "abcabd": "abcabd", "abcabcab": "abcab", "": "",
	} {
		kept, _ := collapse(strings.Split(in, ""))
		got := ""
		for _, k := range kept {
			got += in[k : k+1]
		}
		if got != want {
			t.Errorf("collapse(%q) = %q, want %q", in, got, want)
		}
	}
}

// A function in two builds: other addresses, constants and a longer jump; then
// with one register changed.
func TestBodyX64(t *testing.T) {
	build := func(frame, imm byte, rip uint32, jump []byte, mov byte) []byte {
		var b []byte
		b = append(b, 0x53)                            // push rbx
		b = append(b, 0x48, 0x83, 0xec, frame)         // sub rsp, frame
		b = append(b, 0x48, 0x8d, 0x0d)                // lea rcx, [rip+...]
		b = binary.LittleEndian.AppendUint32(b, rip)   //
		b = append(b, 0xe8)                            // call
		b = binary.LittleEndian.AppendUint32(b, rip*3) //
		b = append(b, 0x48, 0x89, mov)                 // mov rbx, rax
		b = append(b, 0x48, 0x85, 0xdb)                // test rbx, rbx
		b = append(b, jump...)                         // je
		b = append(b, 0x8b, 0x43, imm)                 // mov eax, [rbx+imm]
		b = append(b, 0x83, 0xc0, imm)                 // add eax, imm
		for range 6 {
			b = append(b, 0x0f, 0xaf, 0xc3) // imul eax, ebx
		}
		b = append(b, 0x48, 0x83, 0xc4, frame, 0x5b, 0xc3) // add rsp, frame; pop rbx; ret
		return b
	}
	short, near := []byte{0x74, 0x06}, []byte{0x0f, 0x84, 6, 1, 0, 0}
	one := Body(dump.AMD64, build(0x20, 8, 0x1000, short, 0xc3))
	if len(one) != 12 {
		t.Fatalf("hash %q", one)
	}
	if two := Body(dump.AMD64, build(0x30, 16, 0x7654, near, 0xc3)); two != one {
		t.Errorf("another build: %s, want %s", two, one)
	}
	if other := Body(dump.AMD64, build(0x20, 8, 0x1000, short, 0xc1)); other == one {
		t.Error("another register has the same hash")
	}
	filled := slices.Insert(build(0x20, 8, 0x1000, short, 0xc3), 1, 0x66, 0x0f, 0x1f, 0x44, 0, 0) // nop word [rax+rax]
	if got := Body(dump.AMD64, filled); got != one {
		t.Error("filling changes the hash")
	}
	if got := Body(dump.AMD64, []byte{0xff, 0x25, 0, 0, 0, 0, 0xc3}); got != "" {
		t.Errorf("a jump through the import table has the hash %s", got)
	}
}

func TestBodyARM64(t *testing.T) {
	words := func(w ...uint32) (b []byte) {
		for _, x := range w {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	fn := func(adrp, bl, imm, reg uint32) []byte {
		return words(0xa9bf7bfd, 0x910003fd, 0x90000000|adrp<<5, 0x91000000|imm<<10, 0x94000000|bl, 0xf9400001|imm<<10,
			0xaa0003f3|reg, 0x9b017c00, 0x9b017c00, 0x9b017c00, 0x9b017c00, 0x9b017c00, 0x9b017c00, 0xb9400260, 0x11000400, 0xa8c17bfd, 0xd65f03c0)
	}
	one := Body(dump.ARM64, fn(1, 2, 3, 0))
	if len(one) != 12 || Body(dump.ARM64, fn(9, 77, 5, 0)) != one {
		t.Errorf("another build: %s, want %s", Body(dump.ARM64, fn(9, 77, 5, 0)), one)
	}
	if Body(dump.ARM64, fn(1, 2, 3, 4)) == one {
		t.Error("another register has the same hash")
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte{0x53, 0x48, 0x83, 0xec, 0x20, 0xc3}, uint8(dump.AMD64))
	f.Add([]byte{0xfd, 0x7b, 0xbf, 0xa9}, uint8(dump.ARM64))
	f.Fuzz(func(t *testing.T, code []byte, arch uint8) {
		if got := Body(dump.Arch(arch), code); got != "" && len(got) != 12 {
			t.Errorf("hash %q", got)
		}
	})
}

func BenchmarkBody4096(b *testing.B) {
	code := slices.Repeat([]byte{0x48, 0x8d, 0x0d, 1, 2, 3, 4, 0x48, 0x89, 0xc3, 0x8b, 0x43, 8}, 400)[:MaxBody]
	b.SetBytes(int64(len(code)))
	for b.Loop() {
		Body(dump.AMD64, code)
	}
}
