package unwind

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// FuzzWalk walks a random stack with random unwind data, code and registers on
// every architecture. Any outcome will do, as long as there is one, the frames
// keep to their rules, and known places are where they should be.
func FuzzWalk(f *testing.F) {
	f.Add([]byte{1, 4, 1, 0, 4, 0x42}, []byte{0xc3}, []byte{8, 1, 2, 3}, uint16(0x140), uint8(0))
	f.Add([]byte{2, 8, 6, 0, 5, 0x16, 0x30, 0x06, 8, 0x42, 4, 0x50, 3, 0x30, 2, 0xc0}, []byte{0x48, 0x83, 0xc4, 0x28, 0xc3}, []byte{1}, uint16(0xfb), uint8(1))
	f.Add([]byte{1 | 4<<3, 0, 0, 0, 0x00, 0x11, 0, 0, 0x00, 0x12, 0, 0, 0x00, 0x80, 0, 0}, []byte{0xe9, 1, 2, 3, 4}, []byte{}, uint16(2), uint8(2))
	f.Add([]byte{1, 0, 1, 0, 0, 0x1a}, []byte{}, []byte{0xff, 0x80}, uint16(2), uint8(3))
	f.Add([]byte{3, 15, 6, 4, 10, 6, 1, 0, 0x1e, 3, 0, 0x78, 0x00, 0x25, 0x2c, 0xcc}, []byte{}, []byte{8, 1, 5, 2}, uint16(0x120), uint8(0))
	f.Add([]byte{3, 5, 10, 3 | 2<<5, 6, 1, 0, 0x18, 0xf5, 0xff, 0, 0, 10, 0, 5, 9, 0, 0xc0, 0xff, 0x36, 2, 0, 0x58, 0xe0, 0x67}, []byte{}, []byte{8, 4, 1}, uint16(0x1be), uint8(0))
	f.Add([]byte{1, 9, 2, 0x25, 9, 0x03, 1, 0x50}, []byte{0x55, 0x8b, 0xec}, []byte{5, 4, 3}, uint16(0x300), uint8(4))
	f.Fuzz(func(t *testing.T, info, code, stack []byte, rip uint16, how uint8) {
		s := newSpace(0x1000)
		s.function(0x1100, 0x1200, info, code)
		s.function(0x1300, 0x1400, info, nil)
		s.modules = append(s.modules, dump.Module{Base: noImageBase, Size: 0x10000, Path: "other.dll"})
		arch := []dump.Arch{dump.AMD64, dump.X86, dump.ARM64, dump.AMD64}[how&3]
		fillStack(s, stack, arch)
		r := dump.Registers{Arch: arch}
		r.SetPC(s.base + 0x1000 + uint64(rip)&0xfff)
		r.SetSP(sp0)
		r.Set(arch.FPReg(), sp0+uint64(len(stack))*8&^7)
		opt := stackBounds
		if how&4 != 0 {
			opt = Options{Kernel: how&8 != 0, TrapFrame: uint64(how) << 4 * uint64(rip)}
		}
		opt.MaxFrames = 200
		checkStack(t, s.walkerFor(arch).Walk(r, opt), arch)
	})
}

// fillStack turns each byte into a word that can mean something: a code
// address, a stack address, a small number, or what memory fills with.
func fillStack(s *space, stack []byte, arch dump.Arch) {
	base, size := s.base, uint64(8)
	if arch == dump.X86 {
		s.base, base, size = exeBase, exeBase, 4
		s.modules[0].Base = exeBase
	}
	for i := uint64(0); i < (stackHigh-sp0)/size && len(stack) > 0; i++ {
		b := uint64(stack[i%uint64(len(stack))])
		v := []uint64{base + 0x1000 + b*16, sp0 + b*64, b, noImageBase + b<<8}[b&3]
		if arch == dump.X86 {
			s.poke32(sp0+i*size, uint32(v))
		} else {
			s.poke(sp0+i*size, v)
		}
	}
}

func checkStack(t *testing.T, st Stack, arch dump.Arch) {
	t.Helper()
	if st.Stop.Reason == "" || len(st.Frames) > 200 || len(st.Frames) == 0 {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
	for i, f := range st.Frames {
		if f.Trust == TrustNone || f.Method == MethodNone {
			t.Errorf("frame %d is not marked: %+v", i, f)
		}
		if i == 0 || f.Method == MethodMachineFrame {
			continue
		}
		if f.SP < st.Frames[i-1].SP || f.SP == st.Frames[i-1].SP && (i > 1 || arch != dump.ARM64) || f.Lookup == f.IP {
			t.Errorf("frame %d makes no progress: %+v after %+v", i, f, st.Frames[i-1])
		}
		if (f.Trust == TrustScan || f.Trust == TrustFramePointer) && arch == dump.AMD64 && f.Detail == "" {
			t.Errorf("frame %d does not say why it was guessed: %+v", i, f)
		}
	}
}

// FuzzEpilog matches random code: whatever it is, no panic, and an epilog of
// bytes ends within them.
func FuzzEpilog(f *testing.F) {
	f.Add([]byte{0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5e, 0xc3}, uint8(0))
	f.Add([]byte{0x48, 0x8d, 0x65, 0xf0, 0x5d, 0xf2, 0xe9, 1, 2, 3, 4}, uint8(5))
	f.Add([]byte{0xff, 0x25}, uint8(0))
	f.Fuzz(func(t *testing.T, code []byte, frame uint8) {
		im := &fakeImage{}
		s := &site{addr: imageBase + 0x1100, base: imageBase, image: im, rf: pdata.RuntimeFunction{Begin: 0x1100, End: 0x1200}}
		e := matchEpilog(code, s, &pdata.UnwindInfo{FrameRegister: frame & 15}, frame&16 != 0)
		if e.kind != epilogNone && (len(code) == 0 || e.popCount > len(code)) {
			t.Errorf("%x: %+v", code, e)
		}
		endsInCall(code[:min(len(code), longestCall)], dump.AMD64)
		endsInCall(code[:min(len(code), longestCall)], dump.X86)
	})
}

// FuzzHybrid walks random stacks of a process with code of two machines.
func FuzzHybrid(f *testing.F) {
	f.Add([]byte{0x81, 0x0a, 4, 8}, uint16(0x200c), true)
	f.Add([]byte{0x11, 0x22, 0x40, 0xe1}, uint16(0x1004), false)
	s := newECSpace(f)
	f.Fuzz(func(t *testing.T, stack []byte, rip uint16, arm bool) {
		arch := dump.AMD64
		if arm {
			arch = dump.ARM64
		}
		clear(s.bytesAt[stackLow])
		for i := uint64(0); i < 0x100 && len(stack) > 0; i++ {
			b := uint64(stack[i%uint64(len(stack))])
			s.poke(stackLow+0x100+8*i, []uint64{ecBase + 0x1000 + b*4, stackLow + 0x100 + b*32, b, ecBase + 0x2000 + b}[b&3])
		}
		r := dump.Registers{Arch: arch}
		r.SetPC(ecBase + uint64(rip))
		r.SetSP(stackLow + 0x100)
		r.Set(arch.FPReg(), stackLow+0x200)
		opt := stackBounds
		opt.MaxFrames = 200
		checkStack(t, New(s, arch).Walk(r, opt), arch)
	})
}
