package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
)

// The seed's user half: a caller's registers agree with its frame, and what a
// call need not preserve is not known.
func TestFrameRegisters(t *testing.T) {
	s, user, kernel, images := readLine(t)
	inc := analyze(t, user, kernel, Options{Images: []string{images}})
	h := threadOf(t, inc, mainThread).User
	all := h.FrameRegisters(1 << 20)
	if len(all) != len(h.Frames) {
		t.Fatalf("%d register sets for %d frames", len(all), len(h.Frames))
	}
	for i := range all {
		pc, ok1 := all[i].PC()
		sp, ok2 := all[i].SP()
		if !ok1 || !ok2 || pc != h.Frames[i].IP || sp != h.Frames[i].SP {
			t.Errorf("frame %d: pc %#x sp %#x, want %#x %#x", i, pc, sp, h.Frames[i].IP, h.Frames[i].SP)
		}
		// What the calling convention keeps is as the stack was built.
		want := s.UserStacks[mainThread][i].Registers.GPR[fixtures.RBX]
		if rbx, ok := all[i].Get(dump.RBX); ok && rbx != want {
			t.Errorf("frame %d: rbx %#x, want %#x", i, rbx, want)
		}
	}
	if n := len(h.FrameRegisters(2)); n != 2 {
		t.Errorf("%d register sets of 2", n)
	}
	if h.FrameRegisters(0) != nil || (&Half{}).FrameRegisters(3) != nil {
		t.Error("registers of no frames")
	}
}
