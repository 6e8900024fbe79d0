package dump

import (
	"errors"
	"strings"
	"testing"
)

// flat is memory of len bytes at base, each byte the low byte of its address;
// reads counts the calls.
type flat struct {
	base  uint64
	len   int
	reads int
}

func (m *flat) ReadAt(p []byte, va uint64) (int, error) {
	m.reads++
	for i := range p {
		at := va + uint64(i)
		if at < m.base || at-m.base >= uint64(m.len) {
			return i, &MemoryError{VA: at, Size: len(p) - i}
		}
		p[i] = byte(at)
	}
	return len(p), nil
}

// TestWindow reads values at both ends of the memory and past it, where a value
// of which a byte is missing is no value.
func TestWindow(t *testing.T) {
	m := &flat{base: 0x1000, len: 0x20}
	w := NewWindow(m)
	for _, c := range []struct {
		va   uint64
		want uint64
		ok   bool
	}{
		{0x1000, 0x0706050403020100, true},
		{0x1018, 0x1f1e1d1c1b1a1918, true}, // the last one
		{0x1019, 0, false},                 // its last byte is missing
		{0x0fff, 0, false},                 // its first byte is missing
		{0x1004, 0x0b0a090807060504, true}, // back after a failure
		{^uint64(0), 0, false},
	} {
		if got, ok := w.Uint64(c.va); got != c.want || ok != c.ok {
			t.Errorf("Uint64(%#x) = %#x, %v; want %#x, %v", c.va, got, ok, c.want, c.ok)
		}
	}
	if got, ok := w.Uint32(0x101c); got != 0x1f1e1d1c || !ok {
		t.Errorf("Uint32 at the end = %#x, %v", got, ok)
	}
	if _, ok := w.Uint32(0x101d); ok {
		t.Error("Uint32 past the end is a value")
	}
}

// TestWindowReadsOnce holds many values to one read of the memory below.
func TestWindowReadsOnce(t *testing.T) {
	m := &flat{base: 0x1000, len: 2 * windowSize}
	w := NewWindow(m)
	for va := uint64(0x1000); va < 0x1000+windowSize; va += 8 {
		if _, ok := w.Uint64(va); !ok {
			t.Fatalf("no value at %#x", va)
		}
	}
	if m.reads != 1 {
		t.Errorf("%d reads for one page", m.reads)
	}
}

func TestReadPointer(t *testing.T) {
	m := &flat{base: 0x1000, len: 8}
	for _, c := range []struct {
		arch Arch
		va   uint64
		want uint64
	}{
		{AMD64, 0x1000, 0x0706050403020100},
		{X86, 0x1004, 0x07060504},
		{ARM64, 0x1000, 0x0706050403020100},
	} {
		if got, err := ReadPointer(m, c.arch, c.va); got != c.want || err != nil {
			t.Errorf("%s: %#x, %v", c.arch, got, err)
		}
	}
	_, err := ReadPointer(m, AMD64, 0x1004)
	var me *MemoryError
	if !errors.As(err, &me) || me.VA != 0x1008 || me.Size != 4 {
		t.Errorf("the error %v does not place the first missing byte, 0x1008, and the 4 from there", err)
	}
}

// TestForgetVolatile keeps what the calling conventions say that a called
// function preserves, and nothing else. The lists restate the public pages "x64
// calling convention" (rbx, rbp, rdi, rsi, rsp, r12 to r15, xmm6 to xmm15),
// "ARM64 ABI conventions" (x19 to x28, fp, sp) and the x86 one (ebx, ebp, esi,
// edi, esp).
func TestForgetVolatile(t *testing.T) {
	keep := map[Arch][]string{
		AMD64: {"rbx", "rbp", "rdi", "rsi", "rsp", "r12", "r13", "r14", "r15", "rip", "cs", "ss"},
		X86:   {"ebx", "ebp", "esi", "edi", "esp", "eip", "cs", "ss"},
		ARM64: {"x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "sp", "pc"},
	}
	for arch, names := range keep {
		want := map[string]bool{}
		for _, n := range names {
			want[n] = true
		}
		r := Registers{Arch: arch}
		for reg := range Reg(NumRegs) {
			r.Set(reg, 0x1000+uint64(reg))
		}
		for n := range 16 {
			r.SetXMM(n, XMM{uint64(n), 1})
		}
		r.ForgetVolatile()
		for reg := range Reg(NumRegs) {
			name := arch.RegName(reg)
			if name == "" {
				continue
			}
			v, ok := r.Get(reg)
			if ok != want[name] {
				t.Errorf("%s: %s known is %v", arch, name, ok)
			}
			if ok && v != 0x1000+uint64(reg) || !ok && v != 0 {
				t.Errorf("%s: %s is %#x", arch, name, v)
			}
		}
		if arch != AMD64 {
			continue
		}
		for n := range 16 {
			if v, ok := r.GetXMM(n); ok != (n >= 6) || ok && v[0] != uint64(n) {
				t.Errorf("xmm%d is %v, %v", n, v, ok)
			}
		}
	}
}

// TestUnknownIsNotZero: a register that is zero is known, one that was never set
// is not, and slots out of range are neither.
func TestUnknownIsNotZero(t *testing.T) {
	var r Registers
	r.Arch = AMD64
	if !r.Empty() {
		t.Error("nothing is known yet")
	}
	r.Set(RAX, 0)
	if v, ok := r.Get(RAX); v != 0 || !ok || r.Empty() {
		t.Error("a register set to zero is known")
	}
	if _, ok := r.Get(RCX); ok {
		t.Error("a register never set is known")
	}
	r.Set(NumRegs, 1)
	r.SetXMM(16, XMM{1, 1})
	if _, ok := r.Get(NumRegs); ok {
		t.Error("a slot out of range is known")
	}
	r.Forget(RAX)
	if !r.Empty() {
		t.Error("forgotten registers stay known")
	}
}

func TestError(t *testing.T) {
	cause := errors.New("disk on fire")
	e := &Error{Code: IO, File: "a.dmp", Stream: "ThreadList", Offset: 0x20, Size: 12, Msg: "cannot be read", Err: cause}
	if got, want := e.Error(), "a.dmp: ThreadList: cannot be read (at offset 0x20, 12 bytes): disk on fire"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(e, cause) {
		t.Error("the cause is lost")
	}
	if got, want := Errorf(Limit, "", "too %s", "much").Error(), "too much"; got != want {
		t.Errorf("%q, want %q: no place is not offset 0", got, want)
	}
}

func TestModule(t *testing.T) {
	m := Module{Base: 0x1000, Size: 0x1000, Path: `C:\a/b\c.dll`}
	if m.Contains(0xfff) || !m.Contains(0x1000) || !m.Contains(0x1fff) || m.Contains(0x2000) {
		t.Error("a module holds [Base, Base+Size)")
	}
	if m.Name() != "c.dll" {
		t.Errorf("name %q", m.Name())
	}
	top := Module{Base: 0xfffffffffffff000, Size: 0x2000}
	if top.End() != ^uint64(0) || !top.Contains(^uint64(0)) || top.Contains(0) {
		t.Error("a module at the top of the address space wraps around")
	}
}

// TestNarrow: only 32-bit code's addresses have a sign to lose, and only those
// of the upper half carry one.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		arch     Arch
		va, want uint64
	}{
		{X86, 0xffffffff80001234, 0x80001234},
		{X86, 0xffffffffffffffff, 0xffffffff},
		{X86, 0xffffffff7fffffff, 0xffffffff7fffffff}, // no sign extension of anything
		{X86, 0x401000, 0x401000},
		{AMD64, 0xffffffff80001234, 0xffffffff80001234},
	} {
		if got := c.arch.Narrow(c.va); got != c.want {
			t.Errorf("%s: Narrow(%#x) = %#x, want %#x", c.arch, c.va, got, c.want)
		}
	}
}

// TestFileNames: the kernel goes by the loader's name and by those that the
// linker gave its builds; the public symbol server files it under the latter.
func TestFileNames(t *testing.T) {
	for path, want := range map[string]string{
		`\SystemRoot\system32\ntoskrnl.exe`: "ntoskrnl.exe ntkrnlmp.exe ntkrla57.exe ntkrnlpa.exe ntkrpamp.exe",
		`NTKRNLMP.EXE`:                      "ntkrnlmp.exe ntoskrnl.exe ntkrla57.exe ntkrnlpa.exe ntkrpamp.exe",
		`C:\Windows\System32\KERNEL32.DLL`:  "kernel32.dll",
		``:                                  "",
	} {
		m := Module{Path: path}
		if got := strings.Join(m.FileNames(), " "); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		if m.IsNT() != strings.Contains(want, " ") {
			t.Errorf("%q: IsNT is %v", path, m.IsNT())
		}
	}
}
