package unwind

import (
	"testing"

	"dumptriage/dump"
)

const (
	exeBase = 0x400000
	esp0    = stackLow + 0x1000
)

// space86 is a 32-bit process with one image, whose code is all int3.
func space86() *space {
	s := newSpace(0x1000)
	s.base = exeBase
	s.modules = []dump.Module{{Base: exeBase, Size: 0x10000, Path: "app.exe"}, {Base: 0x77000000, Size: 0x10000, Path: "ntdll.dll"}}
	s.exec = map[uint64]bool{dataPage: false}
	return s
}

func regs86(eip, esp, ebp uint64) dump.Registers {
	r := dump.Registers{Arch: dump.X86}
	r.SetPC(eip)
	r.SetSP(esp)
	r.Set(dump.RBP, ebp)
	return r
}

func step86(s *space, r dump.Registers) (Frame, Stop, bool) {
	w, opt := s.walkerFor(dump.X86), stackBounds
	f, _, _ := w.first(&r, &opt)
	stop, ok := w.Step(&r, &f, &opt)
	return f, stop, ok
}

func TestEBPChain(t *testing.T) {
	s := space86()
	ret := uint32(s.callAt(0x1540))
	s.poke32(esp0+0x20, esp0+0x80, ret)
	f, stop, ok := step86(s, regs86(exeBase+0x1300, esp0, esp0+0x20))
	if !ok || f.IP != uint64(ret) || f.SP != esp0+0x28 || f.FP != esp0+0x80 || f.Method != MethodEBP || f.Trust != TrustFramePointer || f.Detail != "" {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Every check of the chain, each spoiled alone.
func TestEBPChainChecks(t *testing.T) {
	for name, c := range map[string]struct{ ebp, next, ret uint32 }{
		"ebp not aligned":        {esp0 + 0x21, esp0 + 0x80, 0},
		"ebp below esp":          {esp0 - 4, esp0 + 0x80, 0},
		"ebp off the stack":      {stackHigh, esp0 + 0x80, 0},
		"next not above":         {esp0 + 0x20, esp0 + 0x20, 0},
		"next off the stack":     {esp0 + 0x20, stackHigh + 4, 0},
		"next not aligned":       {esp0 + 0x20, esp0 + 0x82, 0},
		"no CALL before":         {esp0 + 0x20, esp0 + 0x80, exeBase + 0x1580},
		"in the headers":         {esp0 + 0x20, esp0 + 0x80, exeBase + 0x40},
		"in headers, no image":   {esp0 + 0x20, esp0 + 0x80, 0x77000040},
		"on the stack":           {esp0 + 0x20, esp0 + 0x80, esp0},
		"not executable":         {esp0 + 0x20, esp0 + 0x80, dataPage + 8},
		"in the first 64 KB":     {esp0 + 0x20, esp0 + 0x80, 0x1234},
		"no module, not known x": {esp0 + 0x20, esp0 + 0x80, 0x5550000},
	} {
		s := space86()
		good := uint32(s.callAt(0x1540))
		if c.ret == 0 {
			c.ret = good
		}
		at := uint64(c.ebp)
		if at >= stackHigh {
			at = stackHigh - 8
		}
		s.poke32(at, c.next, c.ret)
		if f, _, ok := step86(s, regs86(exeBase+0x1300, esp0, uint64(c.ebp))); ok && f.Method == MethodEBP {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A frame of more than 128 KB is not believed.
func TestEBPChainGap(t *testing.T) {
	for gap, want := range map[uint64]bool{128 << 10: true, 128<<10 + 4: false} {
		s := space86()
		s.bytesAt[stackLow] = make([]byte, 0x40000)
		s.poke32(esp0, uint32(esp0+gap), uint32(s.callAt(0x1540)))
		w, r, opt := s.walkerFor(dump.X86), regs86(exeBase+0x1300, esp0, esp0), Options{StackLimit: stackLow, StackBase: stackLow + 0x40000}
		f, _, _ := w.first(&r, &opt)
		if _, ok := w.Step(&r, &f, &opt); (ok && f.Method == MethodEBP) != want {
			t.Errorf("gap %#x: %+v", gap, f)
		}
	}
}

// Where the dump has no code the chain is followed on its other checks.
func TestEBPChainWithoutCode(t *testing.T) {
	s := space86()
	s.poke32(esp0+0x20, esp0+0x80, 0x77001234)
	s.poke32(esp0+0x80, 0, 0)
	st := s.walkerFor(dump.X86).Walk(regs86(0x77002000, esp0, esp0+0x20), stackBounds)
	if len(st.Frames) != 2 || st.Frames[1].Method != MethodEBP || st.Stop.Reason != StopEndOfStack {
		t.Errorf("%+v", st)
	}
}

// Places where ebp is not the frame's own. The return address is where esp
// says, ebp what it must be afterwards.
func TestFrameless86(t *testing.T) {
	const outer = esp0 + 0x100
	for name, c := range map[string]struct {
		code []byte // from 0x1300
		eip  uint32
		ret  uint64 // offset from esp0 of the return address
		sp   uint64
		fp   uint64
	}{
		"at entry: push ebp; mov ebp, esp":          {[]byte{0x55, 0x8b, 0xec}, 0x1300, 0, 4, outer},
		"at entry with mov edi, edi":                {[]byte{0x8b, 0xff, 0x55, 0x8b, 0xec}, 0x1300, 0, 4, outer},
		"after mov edi, edi":                        {[]byte{0x8b, 0xff, 0x55, 0x8b, 0xec}, 0x1302, 0, 4, outer},
		"at entry, as GCC has it":                   {[]byte{0x55, 0x89, 0xe5}, 0x1300, 0, 4, outer},
		"after GCC's push ebp":                      {[]byte{0x55, 0x89, 0xe5}, 0x1301, 4, 8, esp0 + 0x200},
		"after push ebp: the saved ebp is at [esp]": {[]byte{0x55, 0x8b, 0xec}, 0x1301, 4, 8, esp0 + 0x200},
		"at ret":                         {[]byte{0xc3}, 0x1300, 0, 4, outer},
		"at ret 8: its arguments go too": {[]byte{0xc2, 8, 0}, 0x1300, 0, 12, outer},
	} {
		s := space86()
		s.put(0x1300, c.code...)
		ret := s.callAt(0x1540)
		s.poke32(esp0, esp0+0x200)
		s.poke32(esp0+c.ret, uint32(ret))
		s.poke32(outer, esp0+0x300, uint32(s.callAt(0x1580))) // what the plain chain would say
		f, stop, ok := step86(s, regs86(exeBase+uint64(c.eip), esp0, outer))
		if !ok || f.IP != ret || f.SP != esp0+c.sp || f.FP != c.fp || f.Detail == "" {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// KiFastSystemCallRet: its own address may lie on the stack above the stub's.
func TestSyscallStubDuplicate(t *testing.T) {
	s := space86()
	s.put(0x1300, 0xc3)
	ret := s.callAt(0x1540)
	s.poke32(esp0, exeBase+0x1300, uint32(ret))
	if f, stop, ok := step86(s, regs86(exeBase+0x1300, esp0, 0)); !ok || f.IP != ret || f.SP != esp0+8 || f.Method != MethodEBP {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A broken chain is scanned for what a CALL precedes; ebp is the word below.
func TestScan86(t *testing.T) {
	s := space86()
	ret := s.callAt(0x1540)
	s.poke32(esp0, exeBase+0x1580, esp0+0x40, 0, esp0+0x80, uint32(ret))
	f, stop, ok := step86(s, regs86(exeBase+0x1300, esp0, 0x12345))
	if !ok || f.IP != ret || f.SP != esp0+0x14 || f.FP != esp0+0x80 || f.Method != MethodScan || f.Trust != TrustScan {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Below 4096 there is no code: as a return address it is the end.
func TestLowEIPEnds86(t *testing.T) {
	s := space86()
	s.poke32(esp0+0x20, 0, 0)
	if _, stop, ok := step86(s, regs86(exeBase+0x1300, esp0, esp0+0x20)); ok || stop.Reason != StopEndOfStack {
		t.Errorf("%+v", stop)
	}
}

// A call through a null or wild pointer leaves the return address on top, below
// a frame that ebp would lead past.
func TestNullCall86(t *testing.T) {
	for eip, wild := range map[uint64]bool{0: true, 0x17: true, 0x1234: true, dataPage + 8: true, exeBase + 0x1300: false, jitPage + 8: false} {
		s := space86()
		ret := s.callAt(0x1540)
		s.exec[jitPage] = true
		s.poke32(esp0, uint32(ret))
		s.poke32(esp0+0x100, esp0+0x200, uint32(s.callAt(0x1580)))
		f, stop, ok := step86(s, regs86(eip, esp0, esp0+0x100))
		if wild && (!ok || f.IP != ret || f.SP != esp0+4 || f.FP != esp0+0x100 || f.Method != MethodLeaf) {
			t.Errorf("%#x: %+v %+v", eip, f, stop)
		}
		if !wild && (!ok || f.Method != MethodEBP || f.SP != esp0+0x108) {
			t.Errorf("%#x is code: %+v %+v", eip, f, stop)
		}
	}
}
