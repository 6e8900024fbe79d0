package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// TestSeamRegistersStitchOneMomentOnly: registers at the seam prove the user half
// of a kernel dump alone. On the memory of another dump they prove nothing, as the
// thread may have moved on between the two.
func TestSeamRegistersStitchOneMomentOnly(t *testing.T) {
	regs := dump.Registers{Arch: dump.AMD64}
	regs.SetPC(0x7ffe6390d184)
	regs.SetSP(0xd67c9fe328)
	for _, c := range []struct {
		what   string
		thread dump.Thread
		want   bool
	}{
		{"kernel dump alone", dump.Thread{Kernel: &dump.KernelThread{}}, true},
		{"user thread without registers", dump.Thread{}, false},
	} {
		sp := newSpace(stub{mem: pages{}}, symbols.NewStore(nil))
		th := &Thread{Thread: c.thread}
		seam := &Seam{Rule: "initial_stack", UserIP: 0x7ffe6390d184, UserSP: 0xd67c9fe328}
		newWalker(sp, nil, 0, newFrameBudget(0)).walkUserFromSeam(th, regs, seam)
		if th.User == nil || len(th.User.Frames) != 1 || th.User.Frames[0].Method != unwind.MethodTrapFrame {
			t.Fatalf("%s: the user half does not begin at the trap frame: %+v", c.what, th.User)
		}
		if th.Stitched != c.want {
			t.Errorf("%s: stitched is %v", c.what, th.Stitched)
		}
		if (seam.Note == "") != c.want {
			t.Errorf("%s: note %q", c.what, seam.Note)
		}
	}
}
