package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
)

// Every check of a record's answer, each spoiled alone: the EBP chain then
// serves, and the frame says why.
func TestFrameDataIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		record FrameRecord
		detail string
	}{
		"no return address":       {FrameRecord{Program: "$eip $esp ^ = $esp $esp 4 + ="}, "is no return address"},
		"esp does not rise":       {FrameRecord{Program: "$eip $esp 4 + ^ = $esp $esp 0 + ="}, "would not lie above"},
		"esp leaves the stack":    {FrameRecord{Program: "$eip $esp 4 + ^ = $esp $esp 65536 + ="}, "beyond the stack's base"},
		"no eip":                  {FrameRecord{Program: "$esp $esp 8 + ="}, "gives no eip"},
		"needs what is not known": {FrameRecord{Program: "$eip $ebx ^ = $esp $esp 8 + ="}, "not known here"},
		"memory not there":        {FrameRecord{Program: "$eip 4 ^ = $esp $esp 8 + ="}, "not in the dump"},
		"not understood":          {FrameRecord{Program: "$eip ?"}, "not understood"},
		"divides by zero":         {FrameRecord{Program: "$eip 1 0 / ="}, "divides by zero"},
		"nothing found":           {FrameRecord{Program: searchProgram, Locals: 0x1000}, "no return address"},
		"a trap frame":            {FrameRecord{Kind: FrameTrap}, "trap frame"},
		"a task gate":             {FrameRecord{Kind: FrameTaskGate}, "task gate"},
		"no rules":                {FrameRecord{Kind: FrameCFI}, "no rule"},
	} {
		s := record86(c.record)
		s.poke32(esp0, 2, ret86)
		s.poke32(esp0+0x20, esp0+0x80, uint32(s.callAt(0x1760)))
		f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, esp0+0x20))
		if !ok || f.Method != MethodEBP || f.IP != exeBase+0x1760 || !strings.Contains(f.Detail, c.detail) {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// The frame's own address on top of the stack is no return address, though a
// call precedes it (KiFastSystemCall's is left there).
func TestFrameDataOwnAddress(t *testing.T) {
	s := record86(FrameRecord{Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + ="})
	own := uint32(s.callAt(0x1320))
	s.put(0x178e, 0xff, 0xd0) // call eax, which proves less than a call to the function
	s.poke32(esp0, own, exeBase+0x1790)
	if f, _, stop, ok := s.step(regs86(uint64(own), esp0, 0)); !ok || f.IP != exeBase+0x1790 {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A null return address ends the stack at its base or where ebp is null too, and
// is a wrong answer anywhere else; so is a small number, always.
func TestFrameDataEnd(t *testing.T) {
	for name, c := range map[string]struct {
		eip, ebp uint32
		esp      uint64
		end      bool
	}{
		"ebp null":     {0, 0, esp0, true},
		"at the base":  {0, 5, stackHigh - 0x20, true},
		"elsewhere":    {0, 5, esp0, false},
		"small number": {2, 0, esp0, false},
	} {
		s := record86(FrameRecord{Program: "$eip $esp ^ = $ebp $esp 4 + ^ = $esp $esp 8 + ="})
		s.poke32(c.esp, c.eip, c.ebp, ret86)
		f, _, stop, ok := s.step(regs86(exeBase+0x1320, c.esp, 0x1c))
		if c.end && (ok || stop.Reason != StopEndOfStack) || !c.end && (!ok || f.IP != ret86 || f.Method != MethodScan) {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// At the function's first instruction a stack that is not there is no end of the
// stack, though ebp is null.
func TestFrameDataEntryWithoutStack(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram})
	delete(s.bytesAt, stackLow)
	f, _, stop, ok := s.step(regs86(exeBase+0x1300, esp0, 0))
	if ok || stop.Reason == StopEndOfStack {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Where the code is not at hand a frame at its function's last byte stands at the
// return, ebp restored already.
func TestFrameDataLastByte(t *testing.T) {
	for eip, want := range map[uint64]uint64{0x13ff: ret86, 0x13fe: exeBase + 0x1760} {
		s := record86(FrameRecord{Program: "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =", End: exeBase + 0x1400})
		s.image = nil
		s.records = append(s.records, sized{FrameRecord{Begin: exeBase + 0x1500, Function: exeBase + 0x1500}, exeBase + 0x1800})
		s.poke32(esp0, ret86)
		s.poke32(esp0+0x20, esp0+0x80, exeBase+0x1760)
		if f, _, stop, ok := s.step(regs86(exeBase+eip, esp0, esp0+0x20)); !ok || f.IP != want || f.Trust != TrustCFI {
			t.Errorf("%#x: %+v %+v", eip, f, stop)
		}
	}
}

// Code that was patched over at its start is unwound by its record all the same.
func TestFrameDataOfPatchedCode(t *testing.T) {
	s := record86(FrameRecord{Program: "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =", Prolog: 5})
	s.put(0x1300, 0xe9, 1, 2, 3, 4) // jmp, where mov edi, edi; push ebp; mov ebp, esp was
	s.poke32(esp0+0x20, esp0+0x80, ret86)
	if f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, esp0+0x20)); !ok || f.IP != ret86 || f.Trust != TrustCFI {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Sizes are claims: none makes the search long or leads out of 32 bits.
func TestFrameDataSizesAreClaims(t *testing.T) {
	for _, size := range []uint32{0x400, 0x7fffffff, 0xfffffffc} {
		s := record86(FrameRecord{Program: searchProgram, Locals: 4, SavedRegs: 4, Params: size})
		caller := function(FrameRecord{Program: searchProgram, Locals: size, SavedRegs: size})
		caller.Begin, caller.Function, caller.end = exeBase+0x1500, exeBase+0x1500, exeBase+0x1580
		s.records = append(s.records, caller)
		s.poke32(esp0+4, 0xb1, ret86)
		reads := &counted{framed: s}
		w := newWalker(reads, dump.X86, func(va uint64) (Table, uint64) { return s.image, s.base })
		st := w.Walk(regs86(exeBase+0x1320, esp0, 0), Options{})
		if len(st.Frames) < 2 || st.Frames[1].IP != ret86 || reads.n > 2000 {
			t.Errorf("%#x: %d reads, %+v", size, reads.n, st)
		}
		for _, f := range st.Frames {
			if f.SP > highestUser32 {
				t.Errorf("%#x: %+v", size, f)
			}
		}
	}
}

// counted counts reads of memory.
type counted struct {
	*framed
	n int
}

func (c *counted) ReadAt(p []byte, va uint64) (int, error) {
	c.n++
	return c.framed.ReadAt(p, va)
}

// Records are asked for and compiled once.
func TestFrameDataIsCached(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram, SavedRegs: 4})
	s.poke32(esp0+4, ret86)
	w := s.walker(dump.X86)
	w.Walk(regs86(exeBase+0x1320, esp0, 0), stackBounds)
	asked := s.asked
	w.Walk(regs86(exeBase+0x1320, esp0, 0), stackBounds)
	if asked == 0 || s.asked != asked {
		t.Errorf("asked %d times, then %d", asked, s.asked-asked)
	}
}
