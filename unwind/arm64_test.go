package unwind

import (
	"testing"

	"dumptriage/dump"
)

func regsARM64(pc, sp, fp uint64) dump.Registers {
	r := dump.Registers{Arch: dump.ARM64}
	r.SetPC(pc)
	r.SetSP(sp)
	r.Set(dump.ARM64FP, fp)
	r.Set(dump.ARM64LR, 1)
	return r
}

// Two frame records; the second return address carries an authentication code
// in the bits above 47 other than bit 55.
func TestARM64Chain(t *testing.T) {
	s := newSpace(0x1000)
	s.put(0x1540, 0, 0, 0, 0x94) // bl
	s.put(0x1584, 0, 0, 0, 0x94)
	s.poke(sp0+0x20, sp0+0x60, imageBase+0x1544)
	s.poke(sp0+0x60, 0, imageBase+0x1588|0xff7f<<48)
	st := s.walkerFor(dump.ARM64).Walk(regsARM64(imageBase+0x1100, sp0, sp0+0x20), stackBounds)
	if len(st.Frames) != 3 || st.Stop.Reason != StopEndOfStack {
		t.Fatalf("%+v", st)
	}
	for i, want := range []struct{ ip, lookup, sp uint64 }{
		{imageBase + 0x1100, imageBase + 0x1100, sp0},
		{imageBase + 0x1544, imageBase + 0x1540, sp0 + 0x30},
		{imageBase + 0x1588, imageBase + 0x1584, sp0 + 0x70},
	} {
		f := st.Frames[i]
		if f.IP != want.ip || f.Lookup != want.lookup || f.SP != want.sp || (i > 0 && (f.Trust != TrustFramePointer || f.Detail != "app.exe: the image has no function table")) {
			t.Errorf("frame %d: %+v", i, f)
		}
	}
}

func TestARM64ChainChecks(t *testing.T) {
	for name, c := range map[string]struct{ fp, next, lr uint64 }{
		"fp not aligned":     {sp0 + 0x24, sp0 + 0x60, imageBase + 0x1544},
		"fp below sp":        {sp0 - 0x20, sp0 + 0x60, imageBase + 0x1544},
		"next not above":     {sp0 + 0x20, sp0 + 0x20, imageBase + 0x1544},
		"next off the stack": {sp0 + 0x20, stackHigh, imageBase + 0x1544},
		"lr not aligned":     {sp0 + 0x20, sp0 + 0x60, imageBase + 0x1546},
		"no call before lr":  {sp0 + 0x20, sp0 + 0x60, imageBase + 0x1544},
		"lr not code":        {sp0 + 0x20, sp0 + 0x60, imageBase + 0x40},
	} {
		s := newSpace(0x1000)
		if name != "no call before lr" {
			s.put(0x1540, 0, 0, 0, 0x94)
		}
		s.poke(c.fp&^7, c.next, c.lr)
		st := s.walkerFor(dump.ARM64).Walk(regsARM64(imageBase+0x1100, sp0, c.fp), stackBounds)
		// What the chain refuses a scan may find, marked as such.
		if len(st.Frames) > 1 && st.Frames[1].Method != MethodScan {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// Bit 55 tells which half a pointer belongs to, whatever fills the rest.
func TestStripPAC(t *testing.T) {
	for in, want := range map[uint64]uint64{
		0x00007ff612345678: 0x00007ff612345678,
		0xab2a7ff612345678: 0x00007ff612345678,
		0xfffff80012345678: 0xfffff80012345678,
		0x12c3f80012345678: 0xfffff80012345678,
	} {
		if got := stripPAC(in); got != want {
			t.Errorf("%#x: %#x, want %#x", in, got, want)
		}
	}
}
