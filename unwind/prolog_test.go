package unwind

import (
	"testing"

	"dumptriage/dump"
)

const sp0 = stackLow + 0x1000

// The stack is filled so that the word at sp0+8*i is 0x1000+i: what a rule read
// tells where it read it. Return addresses are poked over it.
func numberedStack(s *space) {
	for i := range uint64(0x200) {
		s.poke(sp0+8*i, 0x1000+i)
	}
}

// Each case is one UNWIND_INFO of a function at RVA 0x1100..0x1200, written as
// the format's bytes: version|flags<<3, prolog size, slots, frame register |
// offset/16<<4, then the codes {offset, op|info<<4}.
func TestUndoProlog(t *testing.T) {
	type regs map[dump.Reg]uint64
	for _, c := range []struct {
		name string
		info []byte
		off  uint32 // of rip in the function
		ret  uint64 // offset from sp0 of the return address
		in   regs
		want regs
		lost []dump.Reg
	}{
		{name: "push nonvol: rbx from [sp0], return above it",
			info: []byte{1, 1, 1, 0, 1, 0x30}, off: 0x40, ret: 8, want: regs{dump.RBX: 0x1000}},
		{name: "push of r15 takes register 15",
			info: []byte{1, 2, 1, 0, 2, 0xf0}, off: 0x40, ret: 8, want: regs{dump.R15: 0x1000}},
		{name: "alloc small: info 4 is 4*8+8 = 0x28",
			info: []byte{1, 4, 1, 0, 4, 0x42}, off: 0x40, ret: 0x28},
		{name: "alloc large, info 0: 16 bits times 8: 0x20*8 = 0x100",
			info: []byte{1, 7, 2, 0, 7, 0x01, 0x20, 0}, off: 0x40, ret: 0x100},
		{name: "alloc large, info 1: 32 bits unscaled: 0x208",
			info: []byte{1, 7, 3, 0, 7, 0x11, 0x08, 0x02, 0, 0}, off: 0x40, ret: 0x208},
		{name: "save nonvol: 16 bits times 8 from rsp before anything is undone: [sp0+0x40] is word 8",
			info: []byte{1, 9, 3, 0, 9, 0x64, 8, 0, 4, 0x52}, off: 0x40, ret: 0x30, want: regs{dump.RSI: 0x1008}},
		{name: "save nonvol far: 32 bits unscaled: [sp0+0x88] is word 0x11",
			info: []byte{1, 9, 4, 0, 9, 0x75, 0x88, 0, 0, 0, 4, 0x52}, off: 0x40, ret: 0x30, want: regs{dump.RDI: 0x1011}},
		{name: "save after push codes still counts from the first rsp: slot 2 is word 2, push takes word 0",
			info: []byte{1, 9, 3, 0, 4, 0x30, 9, 0x64, 2, 0}, off: 0x40, ret: 8, want: regs{dump.RBX: 0x1000, dump.RSI: 0x1002}},
		{name: "set fpreg: rsp = rbp - 2*16; push rbp below the return",
			info: []byte{1, 9, 2, 0x25, 9, 0x03, 1, 0x50}, off: 0x40, ret: 0x108,
			in: regs{dump.RBP: sp0 + 0x120}, want: regs{dump.RBP: 0x1020}},
		{name: "frame register inside the prolog, after SET_FPREG: base is rbp-0x20, save slot 3 is word 0x23",
			info: []byte{1, 20, 4, 0x25, 12, 0x34, 3, 0, 9, 0x03, 1, 0x50}, off: 12, ret: 0x108,
			in: regs{dump.RBP: sp0 + 0x120}, want: regs{dump.RBX: 0x1023, dump.RBP: 0x1020}},
		{name: "frame register inside the prolog, before SET_FPREG: only the push counts",
			info: []byte{1, 20, 4, 0x25, 12, 0x34, 1, 0, 9, 0x03, 1, 0x50}, off: 8, ret: 8,
			in: regs{dump.RBP: 0x77}, want: regs{dump.RBP: 0x1000}},
		{name: "a save before SET_FPREG counts from rsp until that has run: slot 3 is word 3",
			info: []byte{1, 20, 4, 0x25, 12, 0x03, 6, 0x34, 3, 0, 1, 0x50}, off: 7, ret: 8,
			in: regs{dump.RBP: sp0 + 0x120}, want: regs{dump.RBX: 0x1003, dump.RBP: 0x1000}},
		{name: "and from the frame register once it has: rbp-0x20 = sp0+0x100, slot 3 is word 0x23",
			info: []byte{1, 20, 4, 0x25, 12, 0x03, 6, 0x34, 3, 0, 1, 0x50}, off: 12, ret: 0x108,
			in: regs{dump.RBP: sp0 + 0x120}, want: regs{dump.RBX: 0x1023, dump.RBP: 0x1020}},
		{name: "set fpreg with an equal prolog offset is done",
			info: []byte{1, 20, 2, 0x05, 9, 0x03, 1, 0x50}, off: 9, ret: 0x48,
			in: regs{dump.RBP: sp0 + 0x40}, want: regs{dump.RBP: 0x1008}},
		{name: "at the first instruction nothing is undone",
			info: []byte{1, 4, 2, 0, 4, 0x42, 1, 0x30}, off: 0, ret: 0, in: regs{dump.RBX: 5}, want: regs{dump.RBX: 5}},
		{name: "a code whose instruction has just ended is undone: push at 1, alloc at 5 not yet",
			info: []byte{1, 5, 2, 0, 5, 0x42, 1, 0x30}, off: 1, ret: 8, want: regs{dump.RBX: 0x1000}},
		{name: "all codes at offset 0: a fragment entered with its frame built",
			info: []byte{1, 0, 2, 0, 0, 0x42, 0, 0x30}, off: 0, ret: 0x30, want: regs{dump.RBX: 0x1005}},
		{name: "a save slot that is not in the dump makes the register unknown",
			info: []byte{1, 9, 4, 0, 9, 0x35, 0, 0, 0x10, 0, 4, 0x02}, off: 0x40, ret: 8, in: regs{dump.RBX: 5}, lost: []dump.Reg{dump.RBX}},
		{name: "volatile registers are unknown in the caller",
			info: []byte{1, 0, 0, 0}, off: 0x40, ret: 0, in: regs{dump.RAX: 1, dump.R11: 2, dump.R12: 3},
			want: regs{dump.R12: 3}, lost: []dump.Reg{dump.RAX, dump.R11}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			numberedStack(s)
			s.function(0x1100, 0x1200, c.info, nil)
			s.function(0x1800, 0x1900, []byte{1, 0, 0, 0}, nil)
			ret := s.callAt(0x1880)
			s.poke(sp0+c.ret, ret)
			r := at(imageBase+0x1100+uint64(c.off), sp0)
			for reg, v := range c.in {
				r.Set(reg, v)
			}
			f, stop, ok := stepFrom(t, s, &r)
			if !ok {
				t.Fatalf("stopped: %+v", stop)
			}
			if f.IP != ret || f.Lookup != ret-1 || f.SP != sp0+c.ret+8 || f.Method != MethodPdata || f.Trust != TrustCFI || f.Detail != "" {
				t.Errorf("frame %+v, want ip %#x sp %#x", f, ret, sp0+c.ret+8)
			}
			for reg, v := range c.want {
				wantReg(t, &r, reg, v)
			}
			for _, reg := range c.lost {
				if v, known := r.Get(reg); known {
					t.Errorf("%s is %#x, want unknown", r.Arch.RegName(reg), v)
				}
			}
		})
	}
}

// xmm6 at slot 2*16 (word 4 and 5), xmm15 by the far form at 0x50 (words 0xa, 0xb).
func TestUndoXMMSaves(t *testing.T) {
	s := newSpace(0x1000)
	numberedStack(s)
	s.function(0x1100, 0x1200, []byte{1, 20, 6, 0, 20, 0xf9, 0x50, 0, 0, 0, 12, 0x68, 2, 0, 4, 0xf2}, nil)
	s.poke(sp0+0x80, s.callAt(0x1880)) // alloc 15*8+8
	r := at(imageBase+0x1140, sp0)
	r.SetXMM(0, dump.XMM{9, 9})
	if _, stop, ok := stepFrom(t, s, &r); !ok {
		t.Fatal(stop)
	}
	for n, want := range map[int]dump.XMM{6: {0x1004, 0x1005}, 15: {0x100a, 0x100b}} {
		if v, ok := r.GetXMM(n); !ok || v != want {
			t.Errorf("xmm%d = %#x (known %v), want %#x", n, v, ok, want)
		}
	}
	if _, known := r.GetXMM(0); known {
		t.Error("xmm0 is volatile but still known")
	}
}

// A chained entry: its own save counts from its base (rsp), then the parent's
// alloc and push follow, all of them as the address is outside the parent. The
// one slot is padded to two before the parent's entry. The parent's SET_FPREG
// uses the parent's frame register even though the child names none.
func TestUndoChained(t *testing.T) {
	s := newSpace(0x1000)
	numberedStack(s)
	s.function(0x1100, 0x1200, []byte{1, 5, 2, 0x03, 5, 0x03, 1, 0x30}, nil) // rbx frame register, push rbx
	child := []byte{1 | 4<<3, 5, 2, 0, 5, 0x64, 3, 0,                        // save rsi at 3*8
		0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}
	s.function(0x1300, 0x1400, child, nil)
	s.poke(sp0+0x48, s.callAt(0x1880))
	r := at(imageBase+0x1340, sp0)
	r.Set(dump.RBX, sp0+0x40)
	f, stop, ok := stepFrom(t, s, &r)
	if !ok || f.SP != sp0+0x50 {
		t.Fatalf("frame %+v stop %+v", f, stop)
	}
	wantReg(t, &r, dump.RSI, 0x1003)
	wantReg(t, &r, dump.RBX, 0x1008) // [rbx] = word 8
}

// The parent's saves count from the base that the first entry established.
func TestChainedSavesUseFirstBase(t *testing.T) {
	s := newSpace(0x1000)
	numberedStack(s)
	s.function(0x1100, 0x1200, []byte{1, 5, 2, 0, 5, 0x34, 2, 0}, nil)     // save rbx at base+0x10
	s.function(0x1300, 0x1400, []byte{1 | 4<<3, 4, 2, 0, 4, 0x62, 1, 0xe0, // alloc 0x38, push r14
		0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}, nil)
	s.poke(sp0+0x40, s.callAt(0x1880))
	r := at(imageBase+0x1340, sp0)
	if _, stop, ok := stepFrom(t, s, &r); !ok {
		t.Fatal(stop)
	}
	wantReg(t, &r, dump.RBX, 0x1002) // sp0+0x10, not (sp0+0x40)+0x10
	wantReg(t, &r, dump.R14, 0x1007)
}

// Chained information entered in the middle of a prolog: of the fragment's own
// alloc 0x10 @4, save r12 @9 and alloc 0x20 @13 only what the address has passed
// is undone, then the parent's push rbx whole, as the address lies behind it.
func TestChainedMidProlog(t *testing.T) {
	child := []byte{1 | 4<<3, 13, 4, 0, 13, 0x32, 9, 0xc4, 1, 0, 4, 0x12,
		0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}
	for off, c := range map[uint64]struct {
		ret uint64
		r12 uint64 // 0: not restored
	}{0: {ret: 8}, 3: {ret: 8}, 4: {ret: 0x18}, 9: {0x18, 0x1001}, 12: {0x18, 0x1001}, 13: {0x38, 0x1001}} {
		s := newSpace(0x1000)
		numberedStack(s)
		s.function(0x1100, 0x1200, []byte{1, 1, 1, 0, 1, 0x30}, nil)
		s.function(0x1300, 0x1400, child, nil)
		s.poke(sp0+c.ret, s.callAt(0x1880))
		r := at(imageBase+0x1300+off, sp0)
		r.Set(dump.R12, 7)
		f, stop, ok := stepFrom(t, s, &r)
		if !ok || f.SP != sp0+c.ret+8 || f.Trust != TrustCFI {
			t.Errorf("+%#x: frame %+v stop %+v", off, f, stop)
		}
		wantReg(t, &r, dump.R12, max(7, c.r12))
		wantReg(t, &r, dump.RBX, 0x1000+(c.ret-8)/8)
	}
}

// A parent whose prolog is longer than its entry: an address of the fragment
// behind it may lie within that prolog, and then only a part of it is undone.
func TestChainedWithinParentsProlog(t *testing.T) {
	child := []byte{1 | 4<<3, 0, 0, 0, 0x00, 0x13, 0, 0, 0x04, 0x13, 0, 0, 0x00, 0x80, 0, 0}
	for off, ret := range map[uint64]uint64{4: 8, 7: 8, 8: 0x30} {
		s := newSpace(0x1000)
		numberedStack(s)
		s.function(0x1300, 0x1304, []byte{1, 8, 2, 0, 8, 0x42, 1, 0x30}, nil) // push rbx @1, alloc 0x28 @8
		s.function(0x1304, 0x1400, child, nil)
		s.poke(sp0+ret, s.callAt(0x1880))
		r := at(imageBase+0x1300+off, sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+ret+8 {
			t.Errorf("+%#x: frame %+v stop %+v", off, f, stop)
		}
		wantReg(t, &r, dump.RBX, 0x1000+(ret-8)/8)
	}
}

// A chain that returns to itself is bad unwind data, and the frame stays.
func TestChainCycle(t *testing.T) {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1 | 4<<3, 0, 0, 0, 0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}, nil)
	st := s.walker().Walk(at(imageBase+0x1140, sp0), stackBounds)
	if len(st.Frames) != 1 || st.Stop.Reason != StopBadUnwindInfo {
		t.Errorf("%+v", st)
	}
}

// Machine frames: rip, cs, eflags, rsp, ss, below them an error code if info is 1.
func TestMachineFrame(t *testing.T) {
	for info, skip := range map[byte]uint64{0x0a: 0, 0x1a: 8} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{1, 0, 1, 0, 0, info}, nil)
		s.poke(sp0+skip, imageBase+0x1300, 0x33, 0x246, stackLow+0x3000, 0x2b)
		r := at(imageBase+0x1140, sp0)
		r.Set(dump.R12, 7)
		r.Set(dump.RAX, 8)
		f, stop, ok := stepFrom(t, s, &r)
		// Lookup is rip itself: the processor was interrupted before it, not after a call.
		if !ok || f.IP != imageBase+0x1300 || f.Lookup != f.IP || f.SP != stackLow+0x3000 || f.Method != MethodMachineFrame {
			t.Errorf("info %#x: %+v %+v", info, f, stop)
		}
		wantReg(t, &r, dump.R12, 7)
		wantReg(t, &r, dump.RegEFlags, 0x246)
		wantReg(t, &r, dump.RegCS, 0x33)
		if r.Known(dump.RAX) {
			t.Error("rax is what the handler made of it, not the interrupted code's")
		}
	}
}

// A kernel half ends at a machine frame of ring 3 whose rip and rsp are such as user
// mode has: 64 KB at the bottom are never mapped, and the upper half is the kernel's.
func TestMachineFrameUserRange(t *testing.T) {
	for _, c := range []struct {
		rip, rsp uint64
		user     bool
	}{
		{0x7ff712345678, 0x7d488fe9b8, true},
		{0x10000, 0x10000, true},
		{0x7fffffffffff, 0x7fffffffffff, true},
		{0xffff, 0x7d488fe9b8, false},
		{0x800000000000, 0x7d488fe9b8, false},
		{0x7ff712345678, 0xffff, false},
		{0x7ff712345678, 0x800000000000, false},
		{0x7ff712345678, 0xfffff80012345678, false},
	} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{1, 0, 1, 0, 0, 0x0a}, nil)
		s.poke(sp0, c.rip, 0x33, 0x246, c.rsp, 0x2b)
		opt := stackBounds
		opt.Kernel = true
		st := s.walker().Walk(at(imageBase+0x1140, sp0), opt)
		if user := st.Stop.Reason == StopTrapFrame; user != c.user {
			t.Errorf("rip %#x, rsp %#x: %+v", c.rip, c.rsp, st.Stop)
		}
		if c.user {
			wantReg(t, &st.User, dump.RIP, c.rip)
			wantReg(t, &st.User, dump.RSP, c.rsp)
		}
	}
}

// A machine frame of nulls ends the stack; one with either of them does not, and
// its stack must be there.
func TestMachineFrameEmpty(t *testing.T) {
	for _, c := range []struct {
		rip, rsp uint64
		end      bool
	}{{0, 0, true}, {0, 0x5000, false}, {imageBase + 0x1300, 0, false}} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{1, 0, 1, 0, 0, 0x0a}, nil)
		s.poke(sp0, c.rip, 0x33, 0x246, c.rsp, 0x2b)
		r := at(imageBase+0x1140, sp0)
		f, stop, ok := stepFrom(t, s, &r)
		if end := !ok && stop.Reason == StopEndOfStack; end != c.end || ok && f.Method == MethodMachineFrame {
			t.Errorf("rip %#x, rsp %#x: %+v %+v", c.rip, c.rsp, f, stop)
		}
	}
}

// Only the bytes between its limit and base are the outer stack, and only a step
// that comes from elsewhere goes onto it.
func TestLeaves(t *testing.T) {
	o := Options{OuterLimit: 0x5000, OuterBase: 0x8000}
	for _, c := range []struct {
		from, to uint64
		want     bool
	}{
		{0x9000, 0x5000, true}, {0x9000, 0x7fff, true}, {0x1000, 0x6000, true},
		{0x9000, 0x4fff, false}, {0x9000, 0x8000, false},
		{0x5000, 0x7fff, false}, {0x7fff, 0x9000, false}, {0x9000, 0x9100, false},
	} {
		if got := o.leaves(c.from, c.to); got != c.want {
			t.Errorf("from %#x to %#x: %v", c.from, c.to, got)
		}
	}
	if (&Options{}).leaves(0x9000, 0x8000) {
		t.Error("a walk that knows no outer stack goes onto it")
	}
}

// A machine frame may lead down the stack, and so in a circle: the walk ends.
func TestMachineFrameCycle(t *testing.T) {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1, 0, 1, 0, 0, 0x0a}, nil)
	s.poke(sp0, imageBase+0x1140, 0x33, 0x246, sp0, 0x2b)
	st := s.walker().Walk(at(imageBase+0x1140, sp0), stackBounds)
	if st.Stop.Reason != StopLimit || len(st.Frames) > maxSwitches+2 {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
}
