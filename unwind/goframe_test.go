package unwind

import (
	"testing"

	"dumptriage/dump"
)

// A function of Go's assembler: a stack check, push rbp; mov rbp, rsp; sub rsp,
// 0x108 at 0x1100, and a body from 0x1130 on that uses rbp for data.
func goAssemblerSpace() (s *space, caller uint64) {
	s = newSpace(0x1000)
	s.function(0x1100, 0x11a0, goFrame, nil)
	s.function(0x1200, 0x1280, goFrame, nil)
	s.function(0x1300, 0x1380, goFrame, nil)
	s.put(0x1100, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x70)                                  // cmp rsp, [r14+16]; jbe 0x1176
	s.put(0x1106, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0x08, 0x01, 0, 0)          // the prolog
	s.put(0x1140, 0x8b, 0x45, 0)                                                       // mov eax, [rbp]
	s.put(0x1150, 0x90, 0x90)                                                          // behind a call
	s.put(0x1190, 0x48, 0x81, 0xc4, 0x08, 0x01, 0, 0, 0x5d, 0xff, 0xe7)                // add rsp, 0x108; pop rbp; jmp rdi
	s.put(0x1200, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4, 0x80, 0x48, 0x8b, 0x45, 0) // add rsp, -0x80 for sub rsp, 0x80
	s.put(0x1210, 0xe9, 0xeb, 0, 0, 0)                                                 // jmp to 0x1300, the frame still there
	s.put(0x1220, 0xe8, 0, 0, 0, 0x5d, 0xff, 0xe0)                                     // an instruction that ends in 5d; jmp rax
	return s, s.callAt(0x1340)
}

func TestGoAssemblerFrame(t *testing.T) {
	const data = 0x7000 // where rbp leads: nowhere
	for _, c := range []struct {
		name   string
		rip    uint32
		atCall bool
		size   uint64 // from sp to the saved rbp
		saved  uint64 // the caller's rbp
		lost   bool   // it is none, and so not known
		noCall bool   // no CALL precedes the return address
	}{
		{name: "in the body", rip: 0x1140, size: 0x108, saved: sp0 + 0x400},
		{name: "at a call", rip: 0x1150, atCall: true, size: 0x108, saved: sp0 + 0x400},
		{name: "a size of -0x80", rip: 0x1208, size: 0x80, saved: sp0 + 0x400},
		{name: "the caller has no frame pointer", rip: 0x1140, size: 0x108},
		{name: "the caller's rbp is data", rip: 0x1140, size: 0x108, saved: 0x123456, lost: true},
		{name: "no call", rip: 0x1140, size: 0x108, saved: sp0 + 0x400, noCall: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, caller := goAssemblerSpace()
			if c.noCall {
				caller++
			}
			s.poke(sp0+c.size, c.saved, caller)
			regs := at(s.base+uint64(c.rip), sp0)
			regs.Set(dump.RBP, data)
			regs.Set(dump.RBX, 5)
			f := Frame{IP: s.base + uint64(c.rip), Lookup: s.base + uint64(c.rip), SP: sp0, Trust: TrustCFI}
			if c.atCall {
				f.Lookup--
			}
			opt := stackBounds
			stop, ok := s.walker().Step(&regs, &f, &opt)
			if c.noCall {
				if ok {
					t.Errorf("%+v, though no call proves it", f)
				}
				return
			}
			if !ok || f.IP != caller || f.SP != sp0+c.size+16 || f.Trust != TrustCFIScan || f.Detail == "" {
				t.Fatalf("%+v (%v), want %#x at %#x as a guess", f, stop, caller, sp0+c.size+16)
			}
			if v, known := regs.Get(dump.RBP); known == c.lost || known && v != c.saved {
				t.Errorf("rbp %#x (known %t), want %#x", v, known, c.saved)
			}
			if regs.Known(dump.RBX) {
				t.Error("rbx is known, which Go does not preserve")
			}
		})
	}
}

// What rbp leads to is believed as long as it can be right.
func TestGoFrameBeforeCode(t *testing.T) {
	s, caller := goAssemblerSpace()
	s.poke(sp0+0x108, sp0+0x400, s.callAt(0x1360))
	s.poke(sp0+0x200, sp0+0x500, caller)
	regs := at(s.base+0x1140, sp0)
	regs.Set(dump.RBP, sp0+0x200)
	if f, stop, ok := stepFrom(t, s, &regs); !ok || f.IP != caller || f.Trust != TrustCFI {
		t.Errorf("%+v %v, want %#x by rbp", f, stop, caller)
	}
}

// Behind pop rbp, a jump through a register is a tail jump without the mark of
// one. An instruction before it may end in the same byte by chance, so that it
// stays a guess: with the frame still there, 5d belongs to the call at 0x1220.
func TestGoTailJump(t *testing.T) {
	s, caller := goAssemblerSpace()
	outer := s.callAt(0x1360)
	s.poke(sp0, caller)
	s.poke(sp0+0x80, sp0+0x100, outer)
	regs := at(s.base+0x1198, sp0)
	regs.Set(dump.RBP, sp0+0x80) // the caller's
	f, stop, ok := stepFrom(t, s, &regs)
	if !ok || f.IP != caller || f.SP != sp0+8 || f.Trust != TrustCFIScan || f.Method != MethodEpilog {
		t.Fatalf("%+v %v, want %#x as a guess", f, stop, caller)
	}
	wantReg(t, &regs, dump.RBP, sp0+0x80)

	s.poke(sp0, 0x1234) // a local variable
	regs = at(s.base+0x1225, sp0)
	regs.Set(dump.RBP, sp0+0x80)
	if f, stop, ok = stepFrom(t, s, &regs); !ok || f.IP != outer || f.SP != sp0+0x90 || f.Trust != TrustCFIScan {
		t.Errorf("%+v %v, want %#x by rbp, as a guess", f, stop, outer)
	}
}

// A jump out of the function to what never returns leaves the frame in place.
// On top of the stack is then no return address but a local variable.
func TestJumpWithFrame(t *testing.T) {
	s, caller := goAssemblerSpace()
	s.poke(sp0, sp0+0x300)
	s.poke(sp0+0x80, sp0+0x100, caller)
	regs := at(s.base+0x1210, sp0)
	regs.Set(dump.RBP, sp0+0x80)
	f, stop, ok := stepFrom(t, s, &regs)
	if !ok || f.IP != caller || f.SP != sp0+0x90 || f.Trust != TrustCFIScan || f.Detail == "" {
		t.Fatalf("%+v %v, want %#x as a guess", f, stop, caller)
	}
	wantReg(t, &regs, dump.RBP, sp0+0x100)
}
