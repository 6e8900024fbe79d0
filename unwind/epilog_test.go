package unwind

import (
	"testing"

	"dumptriage/dump"
)

// The function at 0x1100..0x1200 has a prolog of "push rbx; sub rsp, 0x100", so
// that its body returns by [sp0+0x108]; a case that is an epilog returns by
// where its own instructions lead. A primary at 0x1300 owns a fragment at
// 0x1400 (chained), and 0x1500 is another function.
const (
	bodyReturn = 0x108
	refused    = 0xffff
)

func epilogSpace(info []byte) *space {
	s := newSpace(0x1000)
	numberedStack(s)
	s.function(0x1100, 0x1200, info, nil)
	s.function(0x1300, 0x1380, []byte{1, 0, 0, 0}, nil)
	s.function(0x1500, 0x1580, []byte{1, 0, 0, 0}, nil)
	return s
}

var bigFrame = []byte{1, 8, 3, 0, 8, 0x01, 0x20, 0, 1, 0x30}

func TestEpilogV1(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		rip  uint32 // where the code lies, 0 for 0x1140
		ret  uint64 // offset of the return address; bodyReturn when it is no epilog
		sp   uint64 // of the caller, from sp0; 0 means ret+8
		want map[dump.Reg]uint64
	}{
		{name: "ret", code: []byte{0xc3}, ret: 0},
		{name: "rep ret", code: []byte{0xf3, 0xc3}, ret: 0},
		{name: "bnd ret", code: []byte{0xf2, 0xc3}, ret: 0},
		{name: "ret 0x10 takes its arguments along", code: []byte{0xc2, 0x10, 0}, ret: 0, sp: 0x18},
		{name: "ret 0x110", code: []byte{0xc2, 0x10, 0x01}, ret: 0, sp: 0x118},
		{name: "add rsp, 0x28; ret", code: []byte{0x48, 0x83, 0xc4, 0x28, 0xc3}, ret: 0x28},
		{name: "add rsp, imm8 is sign-extended: 0x80 is -0x80, below the frame, and refused", code: []byte{0x48, 0x83, 0xc4, 0x80, 0xc3}, ret: refused},
		{name: "add rsp, 0x120; ret", code: []byte{0x48, 0x81, 0xc4, 0x20, 0x01, 0, 0, 0xc3}, ret: 0x120},
		{name: "pops in order, REX.B selects r8 to r15", code: []byte{0x5b, 0x41, 0x5e, 0xc3}, ret: 0x10, want: map[dump.Reg]uint64{dump.RBX: 0x1000, dump.R14: 0x1001}},
		{name: "any REX may stand before a pop", code: []byte{0x48, 0x5e, 0xc3}, ret: 8, want: map[dump.Reg]uint64{dump.RSI: 0x1000}},
		{name: "jmp to another function (tail call)", code: []byte{0xe9, 0xfb, 0x03, 0, 0}, rip: 0x1100, ret: 0}, // 0x1100+5+0x3fb = 0x1500
		{name: "jmp to code that no entry covers", code: []byte{0xe9, 0xfb, 0x05, 0, 0}, rip: 0x1100, ret: 0},
		{name: "jmp rel8 to the first byte behind the function", code: []byte{0xeb, 0x1e}, rip: 0x11e0, ret: 0}, // 0x11e0+2+0x1e = 0x1200
		{name: "jmp rel8 to the last byte of the function", code: []byte{0xeb, 0x1d}, rip: 0x11e0, ret: bodyReturn},
		{name: "jmp rel32 to the first byte behind the function", code: []byte{0xe9, 0x1b, 0, 0, 0}, rip: 0x11e0, ret: 0},
		{name: "jmp rel32 to the last byte of the function", code: []byte{0xe9, 0x1a, 0, 0, 0}, rip: 0x11e0, ret: bodyReturn},
		{name: "jmp within the function is a branch", code: []byte{0xeb, 0x10}, ret: bodyReturn},
		{name: "jmp to the function's own start is a tail call to itself", code: []byte{0xeb, 0xfe - 0x40}, ret: 0},
		{name: "jmp [rip+x]", code: []byte{0xff, 0x25, 0, 0, 0, 0}, ret: 0},
		{name: "REX.W jmp rax is marked as a tail call", code: []byte{0x48, 0xff, 0xe0}, ret: 0},
		{name: "REX.WB jmp r10", code: []byte{0x49, 0xff, 0xe2}, ret: 0},
		{name: "jmp rax without REX.W is a switch", code: []byte{0xff, 0xe0}, ret: bodyReturn},
		{name: "jmp r10 without REX.W is a switch", code: []byte{0x41, 0xff, 0xe2}, ret: bodyReturn},
		{name: "pops that no return follows are not an epilog and recover nothing", code: []byte{0x5e, 0x90, 0xc3}, ret: bodyReturn, want: map[dump.Reg]uint64{dump.RBX: 0x1020}},
		{name: "lea rsp without a frame register is not an epilog", code: []byte{0x48, 0x8d, 0x65, 0x10, 0xc3}, ret: bodyReturn},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := epilogSpace(bigFrame)
			rip := uint32(0x1140)
			if c.rip != 0 {
				rip = c.rip
			}
			s.put(rip, c.code...)
			if c.ret == refused {
				checkRefused(t, s, rip)
				return
			}
			ret := s.callAt(0x1540)
			s.poke(sp0+c.ret, ret)
			r := at(imageBase+uint64(rip), sp0)
			f, stop, ok := stepFrom(t, s, &r)
			method, sp := MethodEpilog, c.ret+8
			if c.ret == bodyReturn {
				method = MethodPdata
			}
			if c.sp != 0 {
				sp = c.sp
			}
			if !ok || f.IP != ret || f.SP != sp0+sp || f.Method != method || f.Trust != TrustCFI {
				t.Errorf("%+v %s %+v", f, f.Method, stop)
			}
			for reg, v := range c.want {
				wantReg(t, &r, reg, v)
			}
		})
	}
}

// What looks like an epilog leads to a stack address, which is no code. Only behind a
// jump that has freed nothing the frame may still be there; what has freed or
// returns leaves nothing that the body's rule could be asked for.
func TestEpilogLeadsNowhere(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		ret  uint64 // where the epilog says that the return address is
		body bool
	}{
		{"a jump that has freed nothing", []byte{0xff, 0x25, 0, 0, 0, 0}, 0, true},
		{"ret", []byte{0xc3}, 0, false},
		{"add rsp, 0x28; jmp [rip]", []byte{0x48, 0x83, 0xc4, 0x28, 0xff, 0x25, 0, 0, 0, 0}, 0x28, false},
		{"pop rbx; jmp [rip]", []byte{0x5b, 0xff, 0x25, 0, 0, 0, 0}, 8, false},
	} {
		s := epilogSpace(bigFrame)
		s.put(0x1140, c.code...)
		caller := s.callAt(0x1540)
		s.poke(sp0+c.ret, sp0+0x300)
		s.poke(sp0+bodyReturn, caller)
		r := at(imageBase+0x1140, sp0)
		f, stop, ok := stepFrom(t, s, &r)
		if byBody := ok && f.IP == caller && f.Method == MethodPdata; byBody != c.body {
			t.Errorf("%s: %+v %s %+v", c.name, f, f.Method, stop)
		}
		if !c.body && ok && f.Trust == TrustCFI {
			t.Errorf("%s: a certain frame: %+v", c.name, f)
		}
	}
}

// An epilog that would move the stack pointer down cannot be right.
func checkRefused(t *testing.T, s *space, rip uint32) {
	r := at(imageBase+uint64(rip), sp0)
	if f, _, ok := stepFrom(t, s, &r); ok && f.Trust == TrustCFI {
		t.Errorf("%+v", f)
	}
}

// lea rsp, [rbp+disp] with the frame register that the data names; the
// displacement is signed: rbp = sp0+0x40, disp -0x10 gives sp0+0x30.
func TestEpilogLea(t *testing.T) {
	info := []byte{1, 9, 2, 0x05, 9, 0x03, 1, 0x50}
	for name, c := range map[string]struct {
		code []byte
		ret  uint64
	}{
		"disp8 negative":  {[]byte{0x48, 0x8d, 0x65, 0xf0, 0x5d, 0xc3}, 0x38},
		"disp8 positive":  {[]byte{0x48, 0x8d, 0x65, 0x10, 0x5d, 0xc3}, 0x58},
		"disp32 negative": {[]byte{0x48, 0x8d, 0xa5, 0xe0, 0xff, 0xff, 0xff, 0x5d, 0xc3}, 0x28},
		"another register is not an epilog: rsp = rbp, pop, return at 0x48": {[]byte{0x48, 0x8d, 0x66, 0x10, 0x5d, 0xc3}, 0x48},
	} {
		s := epilogSpace(info)
		s.put(0x1140, c.code...)
		ret := s.callAt(0x1540)
		s.poke(sp0+c.ret, ret)
		r := at(imageBase+0x1140, sp0)
		r.Set(dump.RBP, sp0+0x40)
		f, stop, ok := stepFrom(t, s, &r)
		if !ok || f.IP != ret || f.SP != sp0+c.ret+8 {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
		wantReg(t, &r, dump.RBP, 0x1000+(c.ret-8)/8)
	}
}

// A jump from a fragment to another part of the same function is a branch, but
// one to the function's very start is a tail call.
func TestEpilogJumpBetweenFragments(t *testing.T) {
	// The fragment's chained entry is the primary at 0x1300 (info at 0x8100, the
	// second entry made); its own code pushes rbx and allocates 0x100.
	fragment := []byte{1 | 4<<3, 0, 3, 0, 0, 0x01, 0x20, 0, 0, 0x30, 0, 0,
		0x00, 0x13, 0, 0, 0x80, 0x13, 0, 0, 0x00, 0x81, 0, 0}
	for name, c := range map[string]struct {
		to  uint32
		ret uint64
	}{"into the middle": {0x1340, bodyReturn}, "to the start": {0x1300, 0}, "to its own start, chained": {0x1400, bodyReturn}} {
		s := epilogSpace(bigFrame)
		s.function(0x1400, 0x1480, fragment, nil)
		rel := c.to - (0x1440 + 5)
		s.put(0x1440, 0xe9, byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24))
		ret := s.callAt(0x1540)
		s.poke(sp0+c.ret, ret)
		r := at(imageBase+0x1440, sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.IP != ret || f.SP != sp0+c.ret+8 || f.Trust != TrustCFI {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// A caller is never taken to be in an epilog: its return address may be the
// first instruction of one, which has not run.
func TestCallersAreNotInEpilogs(t *testing.T) {
	s := epilogSpace(bigFrame)
	s.put(0x1140-5, 0xe8, 0, 0, 0, 0xc3, 0xc3) // a ret at the return address, and by chance one byte before
	s.poke(sp0+bodyReturn, s.callAt(0x1540))
	w, r := s.walker(), at(imageBase+0x1140, sp0)
	f := Frame{IP: imageBase + 0x1140, Lookup: imageBase + 0x113f, SP: sp0}
	opt := stackBounds
	if stop, ok := w.Step(&r, &f, &opt); !ok || f.SP != sp0+bodyReturn+8 || f.Method != MethodPdata {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Without code bytes an epilog cannot be told, and the frame says so.
func TestEpilogWithoutCode(t *testing.T) {
	s := epilogSpace(bigFrame)
	s.poke(sp0+bodyReturn, s.callAt(0x1540))
	s.image.noBytes = true
	r := at(imageBase+0x1140, sp0)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+bodyReturn+8 || f.Detail == "" {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A breakpoint in the dump's code hides an epilog that the image shows.
func TestEpilogPatchedCode(t *testing.T) {
	s := epilogSpace(bigFrame)
	s.put(0x1140, 0xc3)
	s.bytesAt[imageBase+0x1140] = []byte{0xcc, 0xcc, 0xcc, 0xcc}
	s.poke(sp0, s.callAt(0x1540))
	r := at(imageBase+0x1140, sp0)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+8 || f.Method != MethodEpilog || f.Detail == "" {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Clang puts vzeroupper between the pops and ret. The documented forms do not
// have it, so the body's rule is tried first; its return address is no code.
func TestEpilogVzeroupper(t *testing.T) {
	s := epilogSpace(bigFrame)
	s.put(0x1140, 0xc5, 0xf8, 0x77, 0xc3)
	s.poke(sp0, s.callAt(0x1540))
	r := at(imageBase+0x1140, sp0)
	r.Set(dump.RBX, 0x77)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+8 || f.Method != MethodEpilog || f.Detail == "" {
		t.Errorf("%+v %+v", f, stop)
	}
	wantReg(t, &r, dump.RBX, 0x77) // the popped value stands: nothing was undone
}

// Version 2: the first code is EPILOG with the size of every epilog (info bit 0:
// one at the very end), further ones give distances from the end. Function
// 0x1100..0x1200 pushes r12 (2-byte pop), rbx and rbp (1 byte each) after an
// allocation of 0x28; its epilogs are "pop rbp; pop rbx; pop r12; ret", 5 bytes.
func TestEpilogV2(t *testing.T) {
	// codes: epilog size 5 at end; epilog at End-0x30; alloc 0x28 @8; push rbp @4; push rbx @3; push r12 @2
	info := []byte{2, 8, 6, 0, 5, 0x16, 0x30, 0x06, 8, 0x42, 4, 0x50, 3, 0x30, 2, 0xc0}
	for name, c := range map[string]struct {
		rip  uint32
		ret  uint64
		want map[dump.Reg]uint64
	}{
		"first pop of the last epilog": {0x11fb, 0x18, map[dump.Reg]uint64{dump.RBP: 0x1000, dump.RBX: 0x1001, dump.R12: 0x1002}},
		"second pop":                   {0x11fc, 0x10, map[dump.Reg]uint64{dump.RBX: 0x1000, dump.R12: 0x1001}},
		"third pop":                    {0x11fd, 0x08, map[dump.Reg]uint64{dump.R12: 0x1000}},
		"ret, after the 2-byte pop":    {0x11ff, 0, nil},
		"listed epilog, second pop":    {0x11d1, 0x10, map[dump.Reg]uint64{dump.RBX: 0x1000}},
		"just before an epilog: body":  {0x11cf, 0x40, map[dump.Reg]uint64{dump.RBP: 0x1005, dump.RBX: 0x1006, dump.R12: 0x1007}},
		"just after an epilog: body":   {0x11d5, 0x40, nil},
	} {
		s := epilogSpace(info)
		s.put(c.rip, 0xc3) // bytes must not matter in version 2
		ret := s.callAt(0x1540)
		s.poke(sp0+c.ret, ret)
		r := at(imageBase+uint64(c.rip), sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.IP != ret || f.SP != sp0+c.ret+8 || f.Trust != TrustCFI {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
		for reg, v := range c.want {
			wantReg(t, &r, reg, v)
		}
	}
}

// The pop of r8 to r15 takes two bytes, so that the next is two further on.
func TestEpilogV2WidePop(t *testing.T) {
	info := []byte{2, 4, 3, 0, 4, 0x16, 4, 0xc0, 2, 0x30} // push rbx, push r12; epilog pop r12, pop rbx, ret
	for rip, at0 := range map[uint32]uint64{0x11fc: 0x10, 0x11fe: 8, 0x11ff: 0} {
		s := epilogSpace(info)
		s.poke(sp0+at0, s.callAt(0x1540))
		r := at(imageBase+uint64(rip), sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+at0+8 || f.Method != MethodEpilog {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
	}
}

// A function that only pushes its flags (pushfq, 1 byte, described as an
// allocation of 8): its epilog is "popfq; ret".
func TestEpilogV2PushfqOnly(t *testing.T) {
	info := []byte{2, 1, 2, 0, 2, 0x16, 1, 0x02}
	for rip, at0 := range map[uint32]uint64{0x11fe: 8, 0x11ff: 0} {
		s := epilogSpace(info)
		s.poke(sp0+at0, s.callAt(0x1540))
		r := at(imageBase+uint64(rip), sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+at0+8 || f.Method != MethodEpilog {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
	}
}

// Real data of MSVC-built code: 01 06 02 06 04 42 is an epilog of one byte, not
// at the end but at End-2, and an allocation of 0x28: at the ret nothing is
// left to undo, before it the allocation is.
func TestEpilogV2RetOnly(t *testing.T) {
	info := []byte{2, 4, 3, 0, 1, 0x06, 2, 0x06, 4, 0x42}
	for rip, at0 := range map[uint32]uint64{0x11fe: 0, 0x11f0: 0x28} {
		s := epilogSpace(info)
		s.poke(sp0+at0, s.callAt(0x1540))
		r := at(imageBase+uint64(rip), sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+at0+8 {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
	}
}

// The last push may be in a parent: the fragment's own codes have none, and its
// epilog pops what the parent pushed. The fragment allocates 0x20 and saves rbp
// at 0x18; the parent pushes rbx, r15 and allocates 0x28.
func TestEpilogV2OfFragment(t *testing.T) {
	parent := []byte{2, 7, 4, 0, 4, 0x16, 7, 0x42, 3, 0xf0, 1, 0x30}
	child := []byte{2 | 4<<3, 9, 4, 0, 4, 0x16, 9, 0x54, 3, 0, 4, 0x32,
		0x00, 0x16, 0, 0, 0x40, 0x16, 0, 0, 0x00, 0x83, 0, 0}
	for rip, c := range map[uint32]struct{ ret, rbx, r15 uint64 }{
		0x17fc: {0x10, 0x1001, 0x1000}, // pop r15; pop rbx; ret
		0x17fe: {8, 0x1000, 0},
		0x17ff: {0, 0, 0},
		0x17f0: {0x58, 0x100a, 0x1009}, // the body
	} {
		s := epilogSpace(bigFrame)
		s.function(0x1600, 0x1640, parent, nil)
		s.function(0x1700, 0x1800, child, nil)
		s.poke(sp0+c.ret, s.callAt(0x1540))
		r := at(imageBase+uint64(rip), sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+c.ret+8 || f.Trust != TrustCFI {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
		for reg, v := range map[dump.Reg]uint64{dump.RBX: c.rbx, dump.R15: c.r15} {
			if v != 0 {
				wantReg(t, &r, reg, v)
			}
		}
	}
}

// An epilog that ends in iretq: after the pops, and popfq, lies a machine frame.
// Codes: epilog of 4 bytes at the end; push rbx @2; flags @1; machine frame @0.
func TestEpilogV2MachineFrame(t *testing.T) {
	info := []byte{2, 2, 4, 0, 4, 0x16, 2, 0x30, 1, 0x02, 0, 0x0a}
	for rip, frame := range map[uint32]uint64{0x11fc: 0x10, 0x11fd: 8, 0x11fe: 0} {
		s := epilogSpace(info)
		s.poke(sp0+frame, imageBase+0x1540, 0x33, 0x246, stackLow+0x3000, 0x2b)
		r := at(imageBase+uint64(rip), sp0)
		f, stop, ok := stepFrom(t, s, &r)
		if !ok || f.IP != imageBase+0x1540 || f.SP != stackLow+0x3000 || f.Lookup != f.IP || f.Method != MethodMachineFrame {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
	}
}

// sub rsp, 8 over a machine frame takes as much as pushfq but four bytes of code: the
// add rsp, 8 that mirrors it stands before the epilog, which is iretq alone.
func TestEpilogV2AllocIsNoPushfq(t *testing.T) {
	info := []byte{2, 4, 3, 0, 2, 0x16, 4, 0x02, 0, 0x0a, 0, 0} // epilog of 2 bytes at the end; alloc 8 @4; machine frame @0
	for rip, frame := range map[uint32]uint64{0x11fe: 0, 0x11fd: 8} {
		s := epilogSpace(info)
		s.poke(sp0+frame, imageBase+0x1540, 0x33, 0x246, stackLow+0x3000, 0x2b)
		r := at(imageBase+uint64(rip), sp0)
		f, stop, ok := stepFrom(t, s, &r)
		if !ok || f.IP != imageBase+0x1540 || f.SP != stackLow+0x3000 || f.Method != MethodMachineFrame {
			t.Errorf("%#x: %+v %+v", rip, f, stop)
		}
	}
}
