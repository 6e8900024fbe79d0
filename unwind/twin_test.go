package unwind

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// ecSpace is an ARM64 process with pdata's ARM64EC image, at its preferred base.
type ecSpace struct {
	bytesAt
	image  *pdata.Image
	module dump.Module
}

const ecBase = 0x180000000

func newECSpace(t testing.TB) *ecSpace {
	t.Helper()
	b, err := os.ReadFile("../pdata/testdata/arm64ec/ec.dll")
	if err != nil {
		t.Fatal(err)
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "ec.dll")
	if err != nil {
		t.Fatal(err)
	}
	return &ecSpace{bytesAt{stackLow: make([]byte, stackHigh-stackLow)}, im, dump.Module{Base: ecBase, Size: 0x6000, Path: "ec.dll"}}
}

func (s *ecSpace) Module(va uint64) (*dump.Module, bool) { return &s.module, s.module.Contains(va) }

func (s *ecSpace) Image(va uint64) (*pdata.Image, uint64) {
	if s.module.Contains(va) {
		return s.image, ecBase
	}
	return nil, 0
}

func (s *ecSpace) Executable(uint64) (bool, bool) { return false, true }

func (s *ecSpace) poke(va uint64, words ...uint64) {
	for i, v := range words {
		binary.LittleEndian.PutUint64(s.bytesAt[stackLow][va-stackLow+8*uint64(i):], v)
	}
}

// ecStack lays out a stack from x64_inner outwards, as the disassembly and the
// unwind data that LLVM's tools print say, and returns where each frame stands:
//
//	x64_inner    sub rsp, 0x58
//	exit thunk   sub sp, 0x30; x29, lr at 0x20. It calls the emulator, which pushes lr
//	ec_outer     sub sp, 0xc0; x19, x20 at 0xa0, x21, lr at 0xb0
//	entry thunk  q6 to q15, x29, lr at 0xa0, 0xb0 in all. The emulator has popped lr
//	x64_main     sub rsp, 0x28
func ecStack(s *ecSpace, sp uint64) []Frame {
	frames := []Frame{{IP: ecBase + 0x200c, Lookup: ecBase + 0x200c, SP: sp}}
	add := func(ip, lookup, sp uint64) {
		frames = append(frames, Frame{IP: ecBase + ip, Lookup: ecBase + lookup, SP: sp})
	}
	s.poke(sp+0x58, ecBase+0x10b8) // behind blr x16
	sp += 0x60
	add(0x10b8, 0x10b4, sp)
	s.poke(sp+0x20, sp+0x30+0xc0+0xa0, ecBase+0x1068) // the entry thunk's x29; behind blr x11
	sp += 0x30
	add(0x1068, 0x1064, sp)
	s.poke(sp+0xa0, 0xf19, 0xf20, 0xf21, ecBase+0x10e8) // behind blr x9
	sp += 0xc0
	add(0x10e8, 0x10e4, sp)
	s.poke(sp+0xa0, 0xff29, ecBase+0x2030) // behind call ec_outer
	sp += 0xb0
	add(0x2030, 0x202f, sp)
	s.poke(sp+0x28, 0) // the end
	return frames
}

// The emulator's own frames lie beyond the walk: a thread that runs x64 code is
// walked from registers that a debugger has mapped, and one that waits in ARM64EC
// code from its own.
func TestARM64ECStack(t *testing.T) {
	for _, arch := range []dump.Arch{dump.AMD64, dump.ARM64} {
		for _, first := range []int{0, 4} { // the others are behind calls: only a walk gets there
			s := newECSpace(t)
			want := ecStack(s, stackLow+0x100)[first:]
			regs := dump.Registers{Arch: arch}
			regs.SetPC(want[0].IP)
			regs.SetSP(want[0].SP)
			regs.Set(arch.FPReg(), stackLow+0x100+0x60+0x20) // the exit thunk's
			st := New(s, arch).Walk(regs, stackBounds)
			if len(st.Frames) != len(want) || st.Stop.Reason != StopEndOfStack {
				t.Errorf("%s from frame %d: %d frames, %+v, want %d: %+v", arch, first, len(st.Frames), st.Stop, len(want), st.Frames)
				continue
			}
			for i, f := range st.Frames[1:] {
				w := want[i+1]
				if f.IP != w.IP || f.Lookup != w.Lookup || f.SP != w.SP || f.Trust != TrustCFI {
					t.Errorf("%s: frame %d: %+v, want %#x at %#x", arch, i+1, f, w.IP, w.SP)
				}
			}
		}
	}
}

// What one machine's code saved is restored in the other's registers: r12 to r14 of
// x64_main are x19 to x21, rbp is x29.
func TestARM64ECRegisters(t *testing.T) {
	s := newECSpace(t)
	ecStack(s, stackLow+0x100)
	regs := dump.Registers{Arch: dump.AMD64}
	regs.SetPC(ecBase + 0x200c)
	regs.SetSP(stackLow + 0x100)
	regs.Set(dump.RBP, stackLow+0x100+0x60+0x20) // the exit thunk's
	regs.Set(dump.RBX, 0xb)
	regs.SetXMM(6, dump.XMM{1, 2})
	w := New(s, dump.AMD64)
	opt := stackBounds
	f, _, _ := w.first(&regs, &opt)
	for range 4 {
		if stop, ok := w.Step(&regs, &f, &opt); !ok {
			t.Fatal(stop)
		}
	}
	if f.IP != ecBase+0x2030 || regs.Arch != dump.AMD64 {
		t.Fatalf("%+v", f)
	}
	for reg, v := range map[dump.Reg]uint64{dump.R12: 0xf19, dump.R13: 0xf20, dump.R14: 0xf21, dump.RBP: 0xff29, dump.RBX: 0xb, dump.RSP: f.SP} {
		wantReg(t, &regs, reg, v)
	}
	if _, known := regs.GetXMM(6); known {
		t.Error("xmm6 is known, though the entry thunk saved it and ARM64 unwinding follows no vector registers")
	}
	if regs.Known(dump.RAX) || regs.Known(dump.R8) {
		t.Error("volatile registers are known behind a call")
	}
}

// The mapping of the ARM64EC calling convention, there and back.
func TestMapRegisters(t *testing.T) {
	regs := dump.Registers{Arch: dump.AMD64}
	for reg := range dump.RIP {
		regs.Set(reg, 0x100+uint64(reg))
	}
	regs.SetPC(0x999)
	arm := mapRegisters(&regs, dump.ARM64)
	for reg, v := range map[dump.Reg]uint64{0: 0x101, 1: 0x102, 2: 0x108, 3: 0x109, 4: 0x10a, 5: 0x10b, 8: 0x100, 19: 0x10c, 20: 0x10d, 21: 0x10e, 22: 0x10f,
		25: 0x106, 26: 0x107, 27: 0x103, dump.ARM64FP: 0x105, dump.ARM64SP: 0x104, dump.ARM64PC: 0x999} {
		wantReg(t, &arm, reg, v)
	}
	for _, reg := range []dump.Reg{6, 7, 9, 18, 23, 24, 28, dump.ARM64LR} {
		if arm.Known(reg) {
			t.Errorf("%s is known", dump.ARM64.RegName(reg))
		}
	}
	if back := mapRegisters(&arm, dump.AMD64); back != regs {
		t.Errorf("there and back: %+v, want %+v", back, regs)
	}
}

// A leaf of ARM64EC code has its return address in lr, which x64's registers do
// not hold: by the x64 leaf rule it would be taken off the stack.
func TestARM64ECIsNoX64Leaf(t *testing.T) {
	s := newECSpace(t)
	const sp = stackLow + 0x100
	s.poke(sp, ecBase+0x2030) // what the x64 leaf rule would take
	for _, c := range []struct {
		arch dump.Arch
		ok   bool
	}{{dump.AMD64, false}, {dump.ARM64, true}} {
		regs := dump.Registers{Arch: c.arch}
		regs.SetPC(ecBase + 0x1004) // ec_leafy's first instruction
		regs.SetSP(sp)
		if c.arch == dump.ARM64 {
			regs.Set(dump.ARM64LR, ecBase+0x108c)
		}
		w := New(s, c.arch)
		opt := stackBounds
		f, _, _ := w.first(&regs, &opt)
		_, ok := w.Step(&regs, &f, &opt)
		if c.ok && (!ok || f.IP != ecBase+0x108c || f.SP != sp) || !c.ok && ok && f.Trust == TrustCFI {
			t.Errorf("%s: %+v %v", c.arch, f, ok)
		}
		if !c.ok && ok && !strings.Contains(f.Detail, "ARM64EC") {
			t.Errorf("%s: the frame does not say what it was found from: %+v", c.arch, f)
		}
	}
}

// TestDisputedCode: where the image's code map has both machines' code at a place, the
// frame that was found from there says so.
func TestDisputedCode(t *testing.T) {
	b, err := os.ReadFile("../pdata/testdata/arm64ec/ec.dll")
	if err != nil {
		t.Fatal(err)
	}
	file, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "ec.dll")
	if err != nil {
		t.Fatal(err)
	}
	// The first range, of ARM64EC code, is made to reach over all x64 code: it is 0x1000 and
	// kind 1, and only one place in the file begins like that.
	var metadata [12]byte
	if _, err := file.ReadRVA(metadata[:], 0x3140); err != nil {
		t.Fatal(err)
	}
	var ranges [8]byte
	if _, err := file.ReadRVA(ranges[:], binary.LittleEndian.Uint32(metadata[4:])); err != nil {
		t.Fatal(err)
	}
	if bytes.Count(b, ranges[:]) != 1 {
		t.Fatalf("the range % x is there %d times", ranges, bytes.Count(b, ranges[:]))
	}
	binary.LittleEndian.PutUint32(b[bytes.Index(b, ranges[:])+4:], 0x2000)
	s := newECSpace(t)
	if s.image, err = pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "ec.dll"); err != nil {
		t.Fatal(err)
	}
	want := ecStack(s, stackLow+0x1000)
	regs := dump.Registers{Arch: dump.ARM64}
	regs.SetPC(want[0].IP)
	regs.SetSP(want[0].SP)
	st := New(s, dump.ARM64).Walk(regs, Options{})
	if len(st.Frames) != len(want) {
		t.Fatalf("%d frames, want %d: %v", len(st.Frames), len(want), st.Stop)
	}
	for i, f := range st.Frames {
		if f.IP != want[i].IP || f.SP != want[i].SP {
			t.Errorf("frame %d: %#x at %#x, want %#x at %#x", i, f.IP, f.SP, want[i].IP, want[i].SP)
		}
		from := i > 0 && want[i-1].IP >= ecBase+0x2000 // found from x64 code, which both ranges hold
		if strings.Contains(f.Detail, disputedDetail) != from {
			t.Errorf("frame %d: %q", i, f.Detail)
		}
	}
}
