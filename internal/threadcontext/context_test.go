package threadcontext

import (
	"encoding/binary"
	"errors"
	"testing"

	"dumptriage/dump"
)

var le = binary.LittleEndian

// field is a value at its offset in a record.
type field struct {
	off, size int
	v         uint64
}

// build lays fields out in size bytes. The bytes between them are 0xcc, so that
// a read from a wrong place shows.
func build(size int, fields ...field) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = 0xcc
	}
	for _, f := range fields {
		var v [8]byte
		le.PutUint64(v[:], f.v)
		copy(b[f.off:], v[:f.size])
	}
	return b
}

// Offsets of winnt.h's CONTEXT of AMD64: ContextFlags 0x30, SegCs 0x38, SegSs
// 0x42, EFlags 0x44, Rax 0x78 ... R15 0xf0, Rip 0xf8, FltSave.XmmRegisters 0x1a0.
func amd64Fields(flags uint64) []field {
	f := []field{{0x30, 4, flags}, {0x38, 2, 0x33}, {0x42, 2, 0x2b}, {0x44, 4, 0x10246}, {0xf8, 8, 0x7ff7a0b2102a}}
	for i := range 16 {
		f = append(f, field{0x78 + 8*i, 8, 0x1111000000000000 + uint64(i)})
		f = append(f, field{0x1a0 + 16*i, 8, 0x2222000000000000 + uint64(i)}, field{0x1a8 + 16*i, 8, 0x3333000000000000 + uint64(i)})
	}
	return f
}

// amd64Order is the order of the integer registers in the record, by name.
var amd64Order = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// wantRegs checks every register: those in want are known with that value, all
// others unknown.
func wantRegs(t *testing.T, r dump.Registers, want map[string]uint64) {
	t.Helper()
	for reg := range dump.Reg(dump.NumRegs) {
		name := r.Arch.RegName(reg)
		v, known := r.Get(reg)
		w, ok := want[name]
		if known != ok || v != w {
			t.Errorf("%s: %#x, known %v; want %#x, known %v", name, v, known, w, ok)
		}
	}
}

func mustParse(t *testing.T, arch dump.Arch, b []byte) dump.Registers {
	t.Helper()
	r, err := Parse(arch, b, -1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Arch != arch {
		t.Fatalf("registers of %s", r.Arch)
	}
	return r
}

func TestAMD64(t *testing.T) {
	control := map[string]uint64{"cs": 0x33, "ss": 0x2b, "efl": 0x10246, "rip": 0x7ff7a0b2102a, "rsp": 0x1111000000000004}
	integer := map[string]uint64{}
	for i, name := range amd64Order {
		if name != "rsp" {
			integer[name] = 0x1111000000000000 + uint64(i)
		}
	}
	rbp := map[string]uint64{"rbp": 0x1111000000000005} // stored by every writer, though the control part does not name it
	for _, x := range []struct {
		name  string
		flags uint64
		parts []map[string]uint64
		float bool
	}{
		{"full", 0x10000b, []map[string]uint64{control, integer}, true},
		{"all, in an exception", 0x4810001f, []map[string]uint64{control, integer}, true},
		{"control", 0x100001, []map[string]uint64{control, rbp}, false},
		{"integer", 0x100002, []map[string]uint64{integer}, false},
		{"floating point", 0x100008, nil, true},
		{"none", 0x100000, nil, false},
		{"flags left empty", 0, []map[string]uint64{control, integer}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := mustParse(t, dump.AMD64, build(0x4d0, amd64Fields(x.flags)...))
			want := map[string]uint64{}
			for _, part := range x.parts {
				for k, v := range part {
					want[k] = v
				}
			}
			wantRegs(t, r, want)
			for i := range 16 {
				v, known := r.GetXMM(i)
				if known != x.float || known && v != (dump.XMM{0x2222000000000000 + uint64(i), 0x3333000000000000 + uint64(i)}) {
					t.Errorf("xmm%d: %x, known %v", i, v, known)
				}
			}
		})
	}
}

// Offsets of winnt.h's x86 CONTEXT: ContextFlags 0, Edi 0x9c, Esi, Ebx, Edx,
// Ecx, Eax 0xb0, Ebp 0xb4, Eip 0xb8, SegCs 0xbc, EFlags 0xc0, Esp 0xc4, SegSs 0xc8.
func x86Fields(flags uint64) []field {
	return []field{{0, 4, flags}, {0x9c, 4, 0xd1}, {0xa0, 4, 0x51}, {0xa4, 4, 0xb1}, {0xa8, 4, 0xd0}, {0xac, 4, 0xc0}, {0xb0, 4, 0xa0},
		{0xb4, 4, 0xb9}, {0xb8, 4, 0x00401234}, {0xbc, 4, 0x23}, {0xc0, 4, 0x246}, {0xc4, 4, 0xfffffff0}, {0xc8, 4, 0x2b}}
}

func TestX86(t *testing.T) {
	integer := map[string]uint64{"edi": 0xd1, "esi": 0x51, "ebx": 0xb1, "edx": 0xd0, "ecx": 0xc0, "eax": 0xa0}
	control := map[string]uint64{"ebp": 0xb9, "eip": 0x401234, "cs": 0x23, "efl": 0x246, "esp": 0xfffffff0, "ss": 0x2b}
	both := map[string]uint64{}
	for _, m := range []map[string]uint64{integer, control} {
		for k, v := range m {
			both[k] = v
		}
	}
	for _, x := range []struct {
		flags uint64
		want  map[string]uint64
	}{{0x10007, both}, {0x1007f, both}, {0x10001, control}, {0x10002, integer}, {0x10000, nil}, {0, both}} {
		wantRegs(t, mustParse(t, dump.X86, build(0x2cc, x86Fields(x.flags)...)), x.want)
	}
}

// Offsets of winnt.h's ARM64 CONTEXT: ContextFlags 0, Cpsr 4, X0 8, Fp 0xf0,
// Lr 0xf8, Sp 0x100, Pc 0x108.
func TestARM64(t *testing.T) {
	fields := func(flags uint64) []field {
		f := []field{{0, 4, flags}, {4, 4, 0x60000000}}
		for i := range 33 {
			f = append(f, field{8 + 8*i, 8, 0x4444000000000000 + uint64(i)})
		}
		return f
	}
	integer, control, both := map[string]uint64{}, map[string]uint64{"cpsr": 0x60000000}, map[string]uint64{"cpsr": 0x60000000}
	for i, name := range []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
		"x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp", "pc"} {
		both[name] = 0x4444000000000000 + uint64(i)
		if i < 29 {
			integer[name] = both[name]
		} else {
			control[name] = both[name]
		}
	}
	for _, x := range []struct {
		flags uint64
		want  map[string]uint64
	}{{0x400007, both}, {0x400001, control}, {0x400002, integer}, {0x400000, nil}, {0, both}} {
		wantRegs(t, mustParse(t, dump.ARM64, build(0x390, fields(x.flags)...)), x.want)
	}
}

// A record with the flags of another architecture is not what its place says.
func TestFlagsOfAnotherArchitecture(t *testing.T) {
	const x86, amd64, arm, arm64 = 0x10007, 0x10000b, 0x200007, 0x400007
	for _, x := range []struct {
		arch  dump.Arch
		at    int
		flags []uint64
	}{
		{dump.AMD64, 0x30, []uint64{x86, arm, arm64, amd64 | x86}},
		{dump.X86, 0, []uint64{amd64, arm, arm64, amd64 | x86}},
		{dump.ARM64, 0, []uint64{x86, amd64, arm, arm64 | arm}},
	} {
		for _, flags := range x.flags {
			r, err := Parse(x.arch, build(0x4d0, field{x.at, 4, flags}), 0x500)
			var e *dump.Error
			if !errors.As(err, &e) || e.Code != dump.BadRecord || e.Stream != "CONTEXT" {
				t.Errorf("%s with flags %#x: %v", x.arch, flags, err)
			}
			if !r.Empty() || r.Arch != x.arch {
				t.Errorf("%s with flags %#x: %s registers are known", x.arch, flags, r.Arch)
			}
		}
	}
}

// Every length that lacks a register is an error and gives none; MinSize gives
// the control and integer registers.
func TestShort(t *testing.T) {
	for _, x := range []struct {
		arch   dump.Arch
		min    int // just past Rip, SegSs, Pc
		at     int
		flags  uint64
		record int
	}{{dump.AMD64, 0x100, 0x30, 0x10000b, 0x4d0}, {dump.X86, 0xcc, 0, 0x10007, 0x2cc}, {dump.ARM64, 0x110, 0, 0x400007, 0x390}} {
		if got := MinSize(x.arch); got != x.min {
			t.Errorf("MinSize(%s) = %#x, want %#x", x.arch, got, x.min)
		}
		full := build(x.record, field{x.at, 4, x.flags})
		for n := range x.min {
			r, err := Parse(x.arch, full[:n], 0x2000)
			var e *dump.Error
			if !errors.As(err, &e) || e.Code != dump.Truncated && e.Code != dump.OutOfRange || e.Offset < 0x2000 || e.Offset > 0x2000+int64(n) {
				t.Fatalf("%s of %#x bytes: %v", x.arch, n, err)
			}
			if !r.Empty() {
				t.Fatalf("%s of %#x bytes: registers are known", x.arch, n)
			}
		}
		for n := x.min; n <= x.record; n++ {
			r, err := Parse(x.arch, full[:n], 0)
			if err != nil {
				t.Fatalf("%s of %#x bytes: %v", x.arch, n, err)
			}
			if _, ok := r.PC(); !ok {
				t.Fatalf("%s of %#x bytes: no program counter", x.arch, n)
			}
			if _, xmm := r.GetXMM(0); xmm != (x.arch == dump.AMD64 && n >= 0x2a0) { // Xmm15 ends there
				t.Fatalf("%s of %#x bytes: xmm0 known %v", x.arch, n, xmm)
			}
		}
	}
	if MinSize(dump.ARM) != 0 {
		t.Error("a CONTEXT of ARM is not read")
	}
}

// A record that ends before its control registers is refused even where its
// flags announce none of them.
func TestShortIntegers(t *testing.T) {
	for _, x := range []struct {
		arch  dump.Arch
		n, at int
		flags uint64
	}{{dump.AMD64, 0xf8, 0x30, 0x100002}, {dump.X86, 0xb4, 0, 0x10002}, {dump.ARM64, 0x100, 0, 0x400002}} {
		r, err := Parse(x.arch, build(x.n, field{x.at, 4, x.flags}), 0)
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != dump.Truncated && e.Code != dump.OutOfRange || !r.Empty() {
			t.Errorf("%s of %#x bytes: %+v, %v", x.arch, x.n, r, err)
		}
	}
}

func TestUnreadArchitectures(t *testing.T) {
	for _, arch := range []dump.Arch{dump.ARM, dump.ArchUnknown} {
		_, err := Parse(arch, make([]byte, 0x4d0), 0)
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != dump.UnsupportedFormat {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(uint8(dump.AMD64), build(0x4d0, amd64Fields(0x10005f)...))
	f.Add(uint8(dump.AMD64), withXState(xstate{}))
	f.Add(uint8(dump.X86), build(0x2cc, x86Fields(0x10007)...))
	f.Add(uint8(dump.ARM64), build(0x390, field{0, 4, 0x400007}))
	f.Fuzz(func(t *testing.T, arch uint8, b []byte) {
		a := dump.Arch(arch % 6)
		r, err := Parse(a, b, 0)
		if err != nil {
			if !r.Empty() {
				t.Fatal("an error with registers")
			}
			return
		}
		if len(b) < MinSize(a) {
			t.Fatalf("%d bytes are no CONTEXT of %s", len(b), a)
		}
		if ssp, ok := r.Get(dump.RegSSP); ok && a == dump.AMD64 && ssp&7 != 0 {
			t.Fatalf("shadow stack pointer %#x", ssp)
		}
	})
}

// TestBlank: a record that nobody filled knows nothing, whatever its flags say.
func TestBlank(t *testing.T) {
	for _, x := range []struct {
		arch  dump.Arch
		size  int
		at    int
		flags uint32
	}{
		{dump.AMD64, 0x4d0, 0x30, 0}, {dump.AMD64, 0x4d0, 0x30, 0x10001f},
		{dump.X86, 0x2cc, 0, 0}, {dump.ARM64, 0x390, 0, 0},
	} {
		b := make([]byte, x.size)
		binary.LittleEndian.PutUint32(b[x.at:], x.flags)
		r := mustParse(t, x.arch, b)
		if !r.Empty() {
			t.Errorf("%s, flags %#x: %+v", x.arch, x.flags, r)
		}
	}
}
