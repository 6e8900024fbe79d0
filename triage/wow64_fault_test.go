package triage

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestWow64Fault: a 32-bit thread that entered the kernel by a fault of its 32-bit
// code goes on there; what the 64-bit code saved at an earlier call is not taken for it.
func TestWow64Fault(t *testing.T) {
	for _, v := range x64Machines() {
		m := machine.Build(*v)
		d := openBytes(t, "MEMORY.DMP", m.Dump(machine.Full))
		inc := analyze(t, nil, d, Options{Process: "legacy32.exe"})
		th := threadOf(t, inc, 0x22cc)
		want := m.Processes[3].Threads[1]
		if th.KernelInfo.TrapFrame != want.TrapFrame || th.KernelInfo.TrapFrameRule != "initial_stack" {
			t.Errorf("%s: trap frame %#x by %q, want %#x", v.Name, th.KernelInfo.TrapFrame, th.KernelInfo.TrapFrameRule, want.TrapFrame)
		}
		for reg, value := range map[dump.Reg]uint64{dump.RIP: uint64(want.Wow64[0].PC), dump.RSP: uint64(want.Wow64[0].ESP), dump.RBP: uint64(want.Wow64[0].EBP), dump.RegCS: 0x23} {
			if got, ok := th.KernelInfo.User.Get(reg); !ok || got != value {
				t.Errorf("%s: register %d is %#x, want %#x", v.Name, reg, got, value)
			}
		}
		if th.User == nil || len(th.User.Frames) != 3 || th.User.Frames[0].Name.Function != "WaitForSlot" || th.User.Frames[0].Name.Offset != 0xc || th.Wow64 != nil || !th.Stitched {
			t.Errorf("%s: %+v", v.Name, th.User)
		}
	}
}
