package threadcontext

import (
	"errors"
	"testing"

	"dumptriage/dump"
)

// trapFrame lays out a KTRAP_FRAME by the public symbols of Windows 10:
// ExceptionActive 0x2b, GsBase 0x68, Rbx 0x140, Rdi, Rsi, Rbp 0x158, ErrorCode
// 0x160, Rip 0x168, SegCs 0x170, EFlags 0x178, Rsp 0x180, SegSs 0x188.
func trapFrame(changed ...field) []byte {
	return build(0x190, append([]field{{0x2b, 1, 2}, {0x68, 8, 0xd67cb98000}, {0x140, 8, 0xb0}, {0x148, 8, 0xd0}, {0x150, 8, 0x50}, {0x158, 8, 0xb5},
		{0x160, 8, 0xe0e0}, {0x168, 8, 0x7ffe6390d184}, {0x170, 2, 0x33}, {0x178, 4, 0x246}, {0x180, 8, 0xd67c9fe328}, {0x188, 2, 0x2b}}, changed...)...)
}

func TestTrapFrame(t *testing.T) {
	f, err := ParseTrapFrame(trapFrame())
	want := TrapFrame{ExceptionActive: 2, GSBase: 0xd67cb98000, Rbx: 0xb0, Rdi: 0xd0, Rsi: 0x50, Rbp: 0xb5,
		Rip: 0x7ffe6390d184, CS: 0x33, EFlags: 0x246, Rsp: 0xd67c9fe328, SS: 0x2b}
	if err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
	r := f.Registers()
	if r.Arch != dump.AMD64 {
		t.Errorf("registers of %s", r.Arch)
	}
	// rbx, rdi, rsi and rbp are not proved by every build's system service.
	wantRegs(t, r, map[string]uint64{"rip": 0x7ffe6390d184, "rsp": 0xd67c9fe328, "cs": 0x33, "ss": 0x2b, "efl": 0x246})
	for _, eflags := range []uint64{0, 0x44, 0x2, 0x200} { // bit 1 is always set, and interrupts are on in user mode
		f, _ := ParseTrapFrame(trapFrame(field{0x178, 4, eflags}))
		if r := f.Registers(); r.Known(dump.RegEFlags) {
			t.Errorf("flags %#x are known", eflags)
		}
	}
}

func TestTrapFrameShort(t *testing.T) {
	b := trapFrame()
	for n := range 0x18a { // the end of SegSs
		_, err := ParseTrapFrame(b[:n])
		var e *dump.Error
		if !errors.As(err, &e) || e.Stream != "KTRAP_FRAME" {
			t.Fatalf("%#x bytes: %v", n, err)
		}
	}
	if _, err := ParseTrapFrame(b[:0x18a]); err != nil {
		t.Error(err)
	}
}

func TestFromUser(t *testing.T) {
	for _, x := range []struct {
		name string
		f    field
		want bool
	}{
		{"system call", field{0x2b, 1, 2}, true},
		{"exception", field{0x2b, 1, 1}, true},
		{"32-bit code beyond 4 GB", field{0x170, 2, 0x23}, false},
		{"kernel code", field{0x170, 2, 0x10}, false},
		{"no code selector", field{0x170, 2, 0}, false},
		{"null code selector of privilege 3", field{0x170, 2, 3}, false},
		{"kernel stack selector", field{0x188, 2, 0x18}, false},
		{"no stack selector", field{0x188, 2, 0}, false},
		{"lowest code", field{0x168, 8, 0x10000}, true},
		{"null code", field{0x168, 8, 0xffff}, false},
		{"highest code", field{0x168, 8, 0x7fffffffffff}, true},
		{"not canonical code", field{0x168, 8, 0x800000000000}, false},
		{"kernel code address", field{0x168, 8, 0xfffff8045e20d9f5}, false},
		{"lowest stack", field{0x180, 8, 0x10000}, true},
		{"null stack", field{0x180, 8, 0xfff8}, false},
		{"highest stack", field{0x180, 8, 0x7ffffffffff8}, true},
		{"not canonical stack", field{0x180, 8, 0x800000000000}, false},
		{"stack not aligned", field{0x180, 8, 0xd67c9fe32c}, false},
	} {
		f, err := ParseTrapFrame(trapFrame(x.f))
		if err != nil || f.FromUser() != x.want {
			t.Errorf("%s: %v, %v", x.name, f.FromUser(), err)
		}
	}
}

// A WoW64 thread that an interrupt or a fault took out of its 32-bit code, which
// aligns its stack to 4 bytes and finds its way by ebp.
func TestTrapFrame32(t *testing.T) {
	code, stack, cs := field{0x168, 8, 0x401064}, field{0x180, 8, 0xb8ff3c}, field{0x170, 2, 0x23}
	for name, c := range map[string]struct {
		f    field
		want bool
	}{
		"a fault":           {field{0x2b, 1, 1}, true},
		"stack not aligned": {field{0x180, 8, 0xb8ff3e}, false},
		"stack beyond 4 GB": {field{0x180, 8, 0x100b8ff3c}, false},
		"null stack":        {field{0x180, 8, 0xfffc}, false},
		"null code":         {field{0x168, 8, 0}, false},
		"kernel's stack":    {field{0x188, 2, 0x18}, false},
	} {
		f, err := ParseTrapFrame(trapFrame(code, stack, cs, c.f))
		if err != nil || f.FromUser() != c.want {
			t.Errorf("%s: %v, %v", name, f.FromUser(), err)
		}
	}
	for active, known := range map[uint64]bool{0: true, 1: true, 2: false} {
		f, _ := ParseTrapFrame(trapFrame(code, stack, cs, field{0x2b, 1, active}))
		r := f.Registers()
		if v, ok := r.Get(dump.RBP); ok != known || ok && v != 0xb5 {
			t.Errorf("ExceptionActive %d: rbp %#x, %v", active, v, ok)
		}
	}
}

func FuzzTrapFrame(f *testing.F) {
	f.Add(trapFrame())
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ParseTrapFrame(b)
		if (err == nil) != (len(b) >= 0x18a) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if r := frame.Registers(); err == nil && frame.FromUser() {
			if pc, ok := r.PC(); !ok || pc>>47 != 0 {
				t.Fatalf("program counter %#x", pc)
			}
		}
	})
}
