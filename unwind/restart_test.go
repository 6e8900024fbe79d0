package unwind

import (
	"testing"

	"dumptriage/dump"
)

// goFrame is the unwind data of every function of Go's compiler: set rbp, which
// ends at offset 4, push rbp, which ends at 1.
var goFrame = []byte{1, 4, 2, 0x05, 4, 0x03, 1, 0x50}

// The function at 0x1100 is laid out as Go's compiler does, here reduced to the
// parts that matter: a stack check that branches to 0x1140, a frame, and behind
// the return the call of a panic and that of morestack, which begins anew.
func goSpace() (s *space, caller, outer uint64) {
	s = newSpace(0x1000)
	s.function(0x1100, 0x11a0, goFrame, nil)
	s.function(0x1300, 0x1380, goFrame, nil)
	s.put(0x1100, 0x55, 0x48, 0x89, 0xe5)                                    // push rbp; mov rbp, rsp
	s.put(0x1120, 0x5d, 0x90, 0xc3)                                          // pop rbp; nop; ret
	s.put(0x113a, 0xe8, 0, 0, 0, 0, 0x90)                                    // call of a panic, never returned from; nop
	s.put(0x1140, 0x48, 0x89, 0x44, 0x24, 0x08)                              // mov [rsp+8], rax
	s.put(0x1145, 0xf2, 0x0f, 0x11, 0x44, 0x24, 0x10)                        // movsd [rsp+16], xmm0
	s.put(0x114b, 0xe8, 0, 0, 0, 0)                                          // call morestack
	s.put(0x1150, 0x48, 0x8b, 0x44, 0x24, 0x08)                              // mov rax, [rsp+8]
	s.put(0x1155, 0xf2, 0x0f, 0x10, 0x44, 0x24, 0x10)                        // movsd xmm0, [rsp+16]
	s.put(0x115b, 0xeb, 0x100-(0x115d-0x1100))                               // jmp to the function's start
	s.put(0x1160, 0xe8, 0, 0, 0, 0, 0xeb, 0x10)                              // call; jmp elsewhere
	s.put(0x1170, 0x48, 0x8b, 0x64, 0x24, 0x08, 0xeb, 0x100-(0x1177-0x1100)) // mov rsp, [rsp+8]; jmp to the start
	s.put(0x1190, 0xe8, 0, 0, 0, 0, 0x90, 0xe9)                              // call morestack; nop; jmp to the start
	s.put(0x1197, 0x65, 0xff, 0xff, 0xff)                                    // 0x1100-0x119b
	return s, s.callAt(0x1340), s.callAt(0x1360)
}

// The caller's frame pointer is in rbp until the function has pushed it. What
// undoing the prolog finds by it is a return address too, but the caller's own.
func TestRestartHasNoFrame(t *testing.T) {
	for _, c := range []struct {
		name   string
		rip    uint32
		atCall bool
		outer  bool // the frame is there, so that rbp leads on
	}{
		{name: "before the arguments are spilled", rip: 0x1140},
		{name: "among the spills", rip: 0x1145},
		{name: "at the call of morestack", rip: 0x114b},
		{name: "behind it", rip: 0x1150},
		{name: "at the jump to the start", rip: 0x115b},
		{name: "in morestack", rip: 0x1150, atCall: true},
		{name: "a pop is behind, a nop and ret ahead", rip: 0x1121},
		{name: "at padding behind morestack", rip: 0x1195},
		{name: "at the call of the panic", rip: 0x113a, outer: true},
		{name: "in the panic", rip: 0x113f, atCall: true, outer: true},
		{name: "at the padding behind the panic", rip: 0x113f, outer: true},
		{name: "a jump elsewhere", rip: 0x1160, outer: true},
		{name: "a reload of rsp", rip: 0x1170, outer: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, caller, outer := goSpace()
			s.poke(sp0, caller)
			s.poke(sp0+0x80, sp0+0x100, outer)
			regs := at(s.base+uint64(c.rip), sp0)
			regs.Set(dump.RBP, sp0+0x80)
			f := Frame{IP: s.base + uint64(c.rip), Lookup: s.base + uint64(c.rip), SP: sp0, Trust: TrustCFI}
			if c.atCall {
				f.Lookup--
			}
			opt := stackBounds
			stop, ok := s.walker().Step(&regs, &f, &opt)
			ip, sp, rbp := caller, uint64(sp0+8), uint64(sp0+0x80)
			if c.outer {
				ip, sp, rbp = outer, sp0+0x90, sp0+0x100
			}
			if !ok || f.IP != ip || f.SP != sp || f.Trust != TrustCFI {
				t.Fatalf("ip %#x, sp %#x (%s, %v), want %#x, %#x", f.IP, f.SP, f.Trust, stop, ip, sp)
			}
			wantReg(t, &regs, dump.RBP, rbp)
		})
	}
}

// Clang's vzeroupper again, with a frame register that has been popped: what it
// holds then leads to where no stack is, not to a bad return address.
func TestRelaxedEpilogWithoutStack(t *testing.T) {
	s := newSpace(0x1000)
	// set rbp, ends at 8; sub rsp, 0x28, at 5; push rbp, at 1
	s.function(0x1100, 0x1200, []byte{1, 8, 3, 0x05, 8, 0x03, 5, 0x42, 1, 0x50}, nil)
	s.function(0x1300, 0x1380, []byte{1, 0, 0, 0}, nil)
	s.put(0x1140, 0xc5, 0xf8, 0x77, 0xc3) // vzeroupper; ret
	caller := s.callAt(0x1340)
	s.poke(sp0, caller)
	regs := at(s.base+0x1140, sp0)
	regs.Set(dump.RBP, 0x7fff_1234_5678)
	f, stop, ok := stepFrom(t, s, &regs)
	if !ok || f.IP != caller || f.SP != sp0+8 || f.Method != MethodEpilog {
		t.Fatalf("%+v, %v, want %#x by the epilog", f, stop, caller)
	}
	wantReg(t, &regs, dump.RBP, 0x7fff_1234_5678)
}
