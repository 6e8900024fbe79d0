package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

type regValues map[dump.Reg]uint64

// v3Case is one frame in a function at RVA 0x1100 to 0x1200 whose UNWIND_INFO
// of version 3 is written as the specification's bytes. On the numbered stack
// a value of 0x1000+i was read from sp0+8*i.
type v3Case struct {
	name   string
	info   []byte
	off    uint32 // of rip in the function
	ret    uint64 // offset from sp0 of the return address
	epilog bool
	in     regValues
	want   regValues
	lost   []dump.Reg
}

func (c *v3Case) run(t *testing.T, s *space) {
	t.Helper()
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
	method, detail := MethodPdata, detailV3
	if c.epilog {
		method, detail = MethodEpilog, detailV3Epilog
	}
	if f.IP != ret || f.Lookup != ret-1 || f.SP != sp0+c.ret+8 || f.Method != method || f.Trust != TrustCFI || f.Detail != detail {
		t.Errorf("frame %+v, want ip %#x sp %#x by %s", f, ret, sp0+c.ret+8, method)
	}
	for reg, v := range c.want {
		wantReg(t, &r, reg, v)
	}
	for _, reg := range c.lost {
		if v, known := r.Get(reg); known {
			t.Errorf("%s is %#x, want unknown", r.Arch.RegName(reg), v)
		}
	}
}

// Header: 3|flags<<3, prolog size, words of payload, operations|epilogs<<5. Then
// the offsets where instructions begin, last instruction first, and the pool.
func TestUndoV3Prolog(t *testing.T) {
	// push rbp at 0; lea rbp, [rsp+20h] at 1; sub rsp, 40h at 6; mov [rsp+18h], rbx at 10.
	framed := []byte{3, 15, 6, 4, 10, 6, 1, 0, 0x1e, 3, 0, 0x78, 0x00, 0x25, 0x2c, 0xcc}
	for _, c := range []v3Case{
		{name: "push: 4|3<<3 is rbx", info: []byte{3, 1, 1, 1, 0, 0x1c}, off: 0x40, ret: 8, want: regValues{dump.RBX: 0x1000}},
		{name: "push of r16 moves rsp, and no slot takes it: 4|16<<3",
			info: []byte{3, 2, 1, 1, 0, 0x84}, off: 0x40, ret: 8, in: regValues{dump.R12: 5}, want: regValues{dump.R12: 5}},
		{name: "push2 rbx, rdi: rbx first, so rdi lies below it. 0x20|3<<6, 0|7<<3",
			info: []byte{3, 3, 2, 1, 0, 0xe0, 0x38, 0xcc}, off: 0x40, ret: 16, want: regValues{dump.RDI: 0x1000, dump.RBX: 0x1001}},
		{name: "push2 r31, r12: the low two bits of 31 above 0x20, the high three below r12",
			info: []byte{3, 3, 2, 1, 0, 0xe0, 0x67, 0xcc}, off: 0x40, ret: 16, want: regValues{dump.R12: 0x1000}},
		{name: "consecutive r14, r15: r15 lies below. 7|14<<3",
			info: []byte{3, 3, 1, 1, 0, 0x77}, off: 0x40, ret: 16, want: regValues{dump.R15: 0x1000, dump.R14: 0x1001}},
		{name: "consecutive r15, r16", info: []byte{3, 3, 1, 1, 0, 0x7f}, off: 0x40, ret: 16, want: regValues{dump.R15: 0x1001}},
		{name: "alloc small: 8|4<<4 is 5*8", info: []byte{3, 4, 1, 1, 0, 0x48}, off: 0x40, ret: 0x28},
		{name: "alloc large: 16 bits times 8", info: []byte{3, 7, 2, 1, 0, 0x02, 0x20, 0}, off: 0x40, ret: 0x100},
		{name: "alloc huge: 32 bits", info: []byte{3, 7, 3, 1, 0, 0x01, 0x08, 0x02, 0, 0}, off: 0x40, ret: 0x208},
		{name: "save in the last instruction: [rsp+40h] is word 8. 6|6<<3",
			info: []byte{3, 9, 3, 2, 4, 0, 0x36, 8, 0, 0x58}, off: 0x40, ret: 0x30, want: regValues{dump.RSI: 0x1008}},
		{name: "save far: [rsp+88h] is word 0x11. 5|7<<3",
			info: []byte{3, 9, 4, 2, 4, 0, 0x3d, 0x88, 0, 0, 0, 0x58}, off: 0x40, ret: 0x30, want: regValues{dump.RDI: 0x1011}},
		{name: "save before the allocation counts from rsp as it was then: sp0+28h+10h is word 7",
			info: []byte{3, 9, 3, 2, 5, 0, 0x48, 0x36, 2, 0}, off: 0x40, ret: 0x28, want: regValues{dump.RSI: 0x1007}},
		{name: "save of r20 touches nothing that there is a slot for: 6|20<<3",
			info: []byte{3, 9, 3, 2, 5, 0, 0x48, 0xa6, 2, 0}, off: 0x40, ret: 0x28, in: regValues{dump.RSI: 9}, want: regValues{dump.RSI: 9}},

		{name: "framed, in the body after a dynamic allocation: rbp-20h-40h is where the prolog left rsp, the save 3 words above",
			info: framed, off: 0x40, ret: 0x208, in: regValues{dump.RBP: sp0 + 0x220}, want: regValues{dump.RBX: 0x103b, dump.RBP: 0x1040}},
		{name: "framed, at the store: not done yet, rbx is as it was",
			info: framed, off: 10, ret: 0x48, in: regValues{dump.RBP: sp0 + 0x60, dump.RBX: 7}, want: regValues{dump.RBX: 7, dump.RBP: 0x1008}},
		{name: "framed, at the sub: rbp is set, nothing allocated",
			info: framed, off: 6, ret: 8, in: regValues{dump.RBP: sp0 + 0x20}, want: regValues{dump.RBP: 0x1000}},
		{name: "framed, at the lea: rbp is the caller's, pushed and not yet changed",
			info: framed, off: 1, ret: 8, in: regValues{dump.RBP: 0x77}, want: regValues{dump.RBP: 0x1000}},
		{name: "framed, at the first instruction", info: framed, off: 0, ret: 0, in: regValues{dump.RBP: 0x77}, want: regValues{dump.RBP: 0x77}},

		{name: "a fragment entered with its frame built: no prolog, and all of it done at once",
			info: []byte{3, 0, 2, 2, 0, 0, 0x48, 0x1c}, off: 0, ret: 0x30, want: regValues{dump.RBX: 0x1005}},
		{name: "a large prolog: size 0x180 (high byte first in the payload), u16 offsets 0x100 and 0, at 0x100 only the push is done",
			info: []byte{3 | 8<<3, 0x80, 4, 2, 0x01, 0x00, 0x01, 0, 0, 0x48, 0x1c, 0xcc}, off: 0x40, ret: 8, want: regValues{dump.RBX: 0x1000}},
		{name: "a save slot that is not in the dump: the register is unknown",
			info: []byte{3, 9, 4, 2, 4, 0, 0x1d, 0, 0, 0x80, 0, 0x08}, off: 0x40, ret: 8, in: regValues{dump.RBX: 5}, lost: []dump.Reg{dump.RBX}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			numberedStack(s)
			s.function(0x1100, 0x1200, c.info, nil)
			c.run(t, s)
		})
	}
}

// xmm6 at 2*16 (words 4 and 5): 10|6<<4; xmm15 by the far form at 0x50 (words 0xa
// and 0xb): 9|15<<4; both stores behind an allocation of 16*8.
func TestUndoV3XMM(t *testing.T) {
	s := newSpace(0x1000)
	numberedStack(s)
	s.function(0x1100, 0x1200, []byte{3, 20, 6, 3, 12, 4, 0, 0xf9, 0x50, 0, 0, 0, 0x6a, 2, 0, 0xf8}, nil)
	s.poke(sp0+0x80, s.callAt(0x1880))
	r := at(imageBase+0x1140, sp0)
	if _, stop, ok := stepFrom(t, s, &r); !ok {
		t.Fatal(stop)
	}
	for n, want := range map[int]dump.XMM{6: {0x1004, 0x1005}, 15: {0x100a, 0x100b}} {
		if v, ok := r.GetXMM(n); !ok || v != want {
			t.Errorf("xmm%d = %#x (known %v), want %#x", n, v, ok, want)
		}
	}
}

// The function takes 30h bytes and pushes rbx; its epilogs are
//
//	mov rsi, [rsp+10h]  ; +0
//	add rsp, 30h        ; +5
//	pop rbx             ; +9
//	ret                 ; +10
//
// No code stands there: only the unwind data tells.
func TestUndoV3Epilogs(t *testing.T) {
	epilogs := []byte{3, 5, 10, 3 | 2<<5, 6, 1, 0, // two epilogs, 20 bytes
		0x18, 0x40, 0x00, 0x00, 0x00, 10, 0, 5, 9, // 3<<3: three operations, at 0x40, shared with the prolog (pool byte 0), ret at 10
		0x00, 0x40, 0x00, // the same at 0x80
		0x36, 2, 0, 0x58, 0x1c} // SAVE_NONVOL rsi at 2*8; ALLOC_SMALL 6*8; PUSH rbx
	backwards := []byte{3, 5, 10, 3 | 2<<5, 6, 1, 0,
		0x18, 0xf5, 0xff, 0x00, 0x00, 10, 0, 5, 9, // 11 bytes before the end: 0x1f5 of 0x200
		0x00, 0xc0, 0xff, // 0x40 before that: 0xb5
		0x36, 2, 0, 0x58, 0x1c}
	// sub rsp, 30h; an epilog by 16-bit offsets: add at 0, ret at 4.
	large := []byte{3, 4, 6, 1 | 1<<5, 0, 0x0a, 0x40, 0, 0, 0, 4, 0, 0, 0, 0x58, 0xcc}
	in := regValues{dump.RSI: 6, dump.RBX: 3}
	at := func(name string, info []byte, off uint32, ret uint64, epilog bool, rsi, rbx uint64) v3Case {
		return v3Case{name: name, info: info, off: off, ret: ret, epilog: epilog, in: in, want: regValues{dump.RSI: rsi, dump.RBX: rbx}}
	}
	for _, c := range []v3Case{
		at("before the first", epilogs, 0x3f, 0x38, false, 0x1002, 0x1006),
		at("at its first instruction: nothing is taken back yet", epilogs, 0x40, 0x38, true, 0x1002, 0x1006),
		at("behind the load: rsi is the caller's", epilogs, 0x45, 0x38, true, 6, 0x1006),
		at("behind the add", epilogs, 0x49, 8, true, 6, 0x1000),
		at("at the ret", epilogs, 0x4a, 0, true, 6, 3),
		at("behind it is the body again", epilogs, 0x4b, 0x38, false, 0x1002, 0x1006),
		at("inherited: behind the load", epilogs, 0x85, 0x38, true, 6, 0x1006),
		at("inherited: at the ret", epilogs, 0x8a, 0, true, 6, 3),
		at("from the end: at the ret that ends the function", backwards, 0xff, 0, true, 6, 3),
		at("from the end: at the pop", backwards, 0xfe, 8, true, 6, 0x1000),
		at("from the end: the one before, at the pop", backwards, 0xbe, 8, true, 6, 0x1000),
		at("from the end: between them", backwards, 0xf0, 0x38, false, 0x1002, 0x1006),
		at("large: at the add", large, 0x40, 0x30, true, 6, 3),
		at("large: at the ret", large, 0x44, 0, true, 6, 3),
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			numberedStack(s)
			s.function(0x1100, 0x1200, c.info, nil)
			c.run(t, s)
		})
	}
}

// lea rsp, [rbp-20h] at +0, pop2 at +4, ret at +10: until the lea is done rbp is
// what counts, wherever the body has left rsp.
func TestUndoV3EpilogOfFrame(t *testing.T) {
	info := []byte{3, 15, 7, 2 | 1<<5, 6, 0, // push2 rbp, rbx at 0; lea rbp, [rsp+20h] at 6
		0x10, 0x40, 0, 0, 0, 10, 0, 4,
		0x00, 0x25, 0x60, 0x19} // SET_FPREG rbp, 2*16; PUSH2: 0x20|(5&3)<<6, 5>>2|3<<3
	for _, c := range []v3Case{
		{name: "body", info: info, off: 0x30, ret: 0x210, in: regValues{dump.RBP: sp0 + 0x220}, want: regValues{dump.RBX: 0x1040, dump.RBP: 0x1041}},
		{name: "at the lea", info: info, off: 0x40, ret: 0x210, epilog: true, in: regValues{dump.RBP: sp0 + 0x220}, want: regValues{dump.RBX: 0x1040, dump.RBP: 0x1041}},
		{name: "at the pop2", info: info, off: 0x44, ret: 0x10, epilog: true, in: regValues{dump.RBP: sp0 + 0x20}, want: regValues{dump.RBX: 0x1000, dump.RBP: 0x1001}},
		{name: "at the ret", info: info, off: 0x4a, ret: 0, epilog: true, in: regValues{dump.RBP: 5, dump.RBX: 3}, want: regValues{dump.RBX: 3, dump.RBP: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			numberedStack(s)
			s.function(0x1100, 0x1200, c.info, nil)
			c.run(t, s)
		})
	}
}

// A fragment takes 20h bytes more than its parent, which pushes rbx and takes
// 30h. It has an epilog that goes back to the parent (add at +0, jmp at +4) or
// one that frees all (add rsp, 50h at +0, pop at +4, ret at +5).
func TestUndoV3Chained(t *testing.T) {
	parent := []byte{3, 5, 2, 2, 1, 0, 0x58, 0x1c}
	chain := []byte{0x00, 0x14, 0, 0, 0x00, 0x15, 0, 0, 0x00, 0x80, 0, 0} // the parent's entry: the first info lies at 0x8000
	back := append([]byte{3 | 4<<3, 4, 5, 1 | 1<<5, 0, 0x09, 0x40, 0, 0, 0, 4, 0, 0x38, 0xcc, 0xcc, 0xcc}, chain...)
	leave := append([]byte{3 | 4<<3, 4, 6, 1 | 1<<5, 0, 0x10, 0x40, 0, 1, 0, 5, 0, 4, 0x38, 0x98, 0x1c}, chain...) // pool byte 1: ALLOC_SMALL 10*8, PUSH rbx
	none := append([]byte{3 | 4<<3, 0, 0, 0}, chain...)
	in := regValues{dump.RBX: 3}
	for _, c := range []v3Case{
		{name: "at its begin: only the parent's frame", info: back, off: 0, ret: 0x38, in: in, want: regValues{dump.RBX: 0x1006}},
		{name: "in its body: both", info: back, off: 0x20, ret: 0x58, in: in, want: regValues{dump.RBX: 0x100a}},
		{name: "back to the parent, at the add", info: back, off: 0x40, ret: 0x58, epilog: true, in: in, want: regValues{dump.RBX: 0x100a}},
		{name: "back to the parent, at the jmp: its frame stays", info: back, off: 0x44, ret: 0x38, epilog: true, in: in, want: regValues{dump.RBX: 0x1006}},
		{name: "leaving both, at the add", info: leave, off: 0x40, ret: 0x58, epilog: true, in: in, want: regValues{dump.RBX: 0x100a}},
		{name: "leaving both, at the pop", info: leave, off: 0x44, ret: 8, epilog: true, in: in, want: regValues{dump.RBX: 0x1000}},
		{name: "leaving both, at the ret: nothing of the parent", info: leave, off: 0x45, ret: 0, epilog: true, in: in, want: regValues{dump.RBX: 3}},
		{name: "without anything of its own", info: none, off: 0x20, ret: 0x38, in: in, want: regValues{dump.RBX: 0x1006}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			numberedStack(s)
			s.function(0x1400, 0x1500, parent, nil)
			s.function(0x1100, 0x1200, c.info, nil)
			c.run(t, s)
		})
	}
}

// A call in the middle of a prolog is looked up by its return address less one:
// what begins before the call is done, what begins at the return address is not.
func TestUndoV3CallInProlog(t *testing.T) {
	s := newSpace(0x1000)
	numberedStack(s)
	// push rbx at 0; call __chkstk at 6, returning to 11; sub rsp, rax at 11.
	s.function(0x1100, 0x1200, []byte{3, 14, 3, 2, 11, 0, 0x02, 0x00, 0x04, 0x1c}, nil)
	s.function(0x1300, 0x1400, []byte{3, 0, 0, 0}, nil)
	s.poke(sp0, s.callAt(0x110b), 0x77, s.callAt(0x1880))
	s.function(0x1800, 0x1900, []byte{1, 0, 0, 0}, nil)
	st := s.walker().Walk(at(imageBase+0x1340, sp0), stackBounds)
	if len(st.Frames) < 3 || st.Frames[1].IP != imageBase+0x110b || st.Frames[2].IP != imageBase+0x1880 || st.Frames[2].SP != sp0+24 || st.Frames[2].Detail != detailV3 {
		t.Errorf("%+v", st)
	}
}

// The processor's frame is there before the first instruction; types other than
// .PUSHFRAME's two are not guessed at.
func TestUndoV3CanonicalFrame(t *testing.T) {
	for kind, skip := range map[byte]uint64{0: 0, 1: 8} {
		for off, alloc := range map[uint64]uint64{0: 0, 0x40: 0x28} {
			s := newSpace(0x1000)
			// sub rsp, 28h at 0, behind the frame.
			s.function(0x1100, 0x1200, []byte{3, 4, 3, 2, 0, 0, 0x48, 0x03, kind, 0xcc}, nil)
			s.poke(sp0+alloc+skip, imageBase+0x1300, 0x33, 0x246, stackLow+0x3000, 0x2b)
			r := at(imageBase+0x1100+off, sp0)
			f, stop, ok := stepFrom(t, s, &r)
			if !ok || f.IP != imageBase+0x1300 || f.Lookup != f.IP || f.SP != stackLow+0x3000 || f.Method != MethodMachineFrame || f.Detail != detailV3 {
				t.Errorf("type %d at %#x: %+v %+v", kind, off, f, stop)
			}
		}
	}
	for _, kind := range []byte{2, 3, 255} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{3, 0, 2, 1, 0, 0x03, kind, 0xcc}, nil)
		st := s.walker().Walk(at(imageBase+0x1140, sp0), stackBounds)
		if len(st.Frames) != 1 || st.Stop.Reason != StopBadUnwindInfo || !strings.Contains(st.Stop.Detail, "canonical frame of type") {
			t.Errorf("type %d: %+v", kind, st)
		}
	}
}

// iretq at +5 behind add rsp, 28h at +0: the frame is what is left.
func TestUndoV3CanonicalFrameInEpilog(t *testing.T) {
	for off, alloc := range map[uint64]uint64{0x40: 0x28, 0x44: 0} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{3, 4, 7, 2 | 1<<5, 0, 0, 0x10, 0x40, 0, 0, 0, 4, 0, 4, 0x48, 0x03, 0x00, 0xcc}, nil)
		s.poke(sp0+alloc, imageBase+0x1300, 0x33, 0x246, stackLow+0x3000, 0x2b)
		r := at(imageBase+0x1100+off, sp0)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.IP != imageBase+0x1300 || f.Method != MethodMachineFrame || f.Detail != detailV3Epilog {
			t.Errorf("at %#x: %+v %+v", off, f, stop)
		}
	}
}

// What cannot be is bad unwind data, and the frame stays.
func TestUndoV3Refused(t *testing.T) {
	self := []byte{0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}
	other := []byte{0x00, 0x13, 0, 0, 0x00, 0x14, 0, 0, 0x00, 0x81, 0, 0}
	for _, c := range []struct {
		name, say   string
		info, chain []byte
	}{
		{"a chain that returns to itself", "more than 32 chained", append([]byte{3 | 4<<3, 0, 0, 0}, self...), nil},
		{"a chain that piles up operations", "more than 256 operations", append([]byte{3 | 4<<3, 0, 10, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77}, self...), nil},
		{"version 3 chained to version 1", "chained to version 1", append([]byte{3 | 4<<3, 0, 0, 0}, other...), []byte{1, 0, 0, 0}},
		{"version 1 chained to version 3", "chained to version 3", append([]byte{1 | 4<<3, 0, 0, 0}, other...), []byte{3, 0, 0, 0}},
		// ALLOC_HUGE 4 GiB - 1 below SET_FPREG rbp, 240
		{"a frame that wraps", "a frame of", []byte{3, 0, 5, 2, 0, 0, 0x01, 0xff, 0xff, 0xff, 0xff, 0x00, 0xf5, 0xcc}, nil},
		{"an operation that there is not", "unknown operation", []byte{3, 0, 1, 1, 0, 0x0b}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpace(0x1000)
			s.function(0x1100, 0x1200, c.info, nil)
			s.function(0x1300, 0x1400, c.chain, nil)
			st := s.walker().Walk(at(imageBase+0x1140, sp0), stackBounds)
			if len(st.Frames) != 1 || st.Stop.Reason != StopBadUnwindInfo || !strings.Contains(st.Stop.Detail, c.say) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// An explanation says that a preview was followed, and whether in an epilog.
func TestExplainV3(t *testing.T) {
	for off, known := range map[uint64]bool{0x20: false, 0x40: true} {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, []byte{3, 4, 5, 1 | 1<<5, 0, 0x08, 0x40, 0, 0, 0, 4, 0, 0x58, 0xcc}, nil)
		s.function(0x1800, 0x1900, []byte{1, 0, 0, 0}, nil)
		s.poke(sp0+0x30, s.callAt(0x1880))
		_, notes := s.walker().Explain(at(imageBase+0x1100+off, sp0), stackBounds, 1)
		var site, epilog *Note
		for i := range notes {
			switch notes[i].Kind {
			case NoteSite:
				site = &notes[i]
			case NoteEpilog:
				epilog = &notes[i]
			}
		}
		if site == nil || !strings.Contains(site.Detail, "version 3") || !strings.Contains(site.Detail, "preview") {
			t.Errorf("site %+v", site)
		}
		if epilog == nil || epilog.Known != known {
			t.Errorf("epilog at %#x: %+v, want %t", off, epilog, known)
		}
	}
}

// Two functions of the same frame, of which the one of version 3 is not taken
// for Go's: Go's heuristics are for compilers that do not describe epilogs.
func TestV3IsNoGoFrame(t *testing.T) {
	im := &fakeImage{infos: map[uint32][]byte{
		0x8000: {1, 4, 2, 0x05, 4, 0x03, 1, 0x50},
		0x8100: {3, 4, 3, 2, 1, 0, 0x00, 0x05, 0x2c, 0xcc},
	}}
	for at, want := range map[uint32]bool{0x8000: true, 0x8100: false} {
		var r rule
		if err := r.compile(im, pdata.RuntimeFunction{Begin: 0x1100, End: 0x1200, UnwindInfo: at}, 0x1140); err != nil {
			t.Fatal(err)
		}
		if got := buildsGoFrame(&r); got != want || len(r.ops) != 2 {
			t.Errorf("%#x: %t, %v", at, got, r.ops)
		}
	}
}
