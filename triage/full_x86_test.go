package triage

import (
	"fmt"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/fixtures/machine"
	"dumptriage/unwind"
)

// wantFrames compares a half of an x86 stack, whose registers the fixtures do not
// know, by instruction and stack pointer.
func wantFrames(t *testing.T, name string, h *Half, want []fixtures.WalkFrame) {
	t.Helper()
	if h == nil || len(h.Frames) != len(want) {
		t.Errorf("%s: half %+v, want %d frames", name, h, len(want))
		return
	}
	for i, f := range want {
		got := &h.Frames[i]
		if got.IP != f.PC || got.SP != f.SP {
			t.Errorf("%s frame %d: %#x at %#x (%v, %v, %s), want %#x at %#x (%s)", name, i, got.IP, got.SP, got.Method, got.Trust, got.Detail, f.PC, f.SP, f.Function)
		}
	}
}

// TestFullX86 walks every thread of 32-bit systems from one file: out of system
// calls, out of a page fault of user code, and through a trap in the kernel.
func TestFullX86(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86} {
		m := machine.Build(v)
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{AllProcesses: true})
		for _, p := range m.Processes {
			for _, want := range p.Threads {
				name := fmt.Sprintf("%s: %x.%x", v.Name, p.PID, want.ID)
				th := threadOf(t, inc, want.ID)
				wantFrames(t, name+" kernel", th.Kernel, want.Kernel)
				if want.User == nil {
					continue
				}
				if th.Kernel.Stop.Reason != unwind.StopTrapFrame || th.Seam == nil || th.Seam.Rule != "ebp" {
					t.Errorf("%s: stop %+v, seam %+v", name, th.Kernel.Stop, th.Seam)
				}
				wantFrames(t, name+" user", th.User, want.User)
				if !th.Stitched {
					t.Errorf("%s: not stitched", name)
				}
			}
		}
		for _, e := range inc.Errors {
			t.Errorf("%s: damage: %v", v.Name, e)
		}
	}
}

// TestFullX86Frames: what a trap interrupted says so, and where its registers are.
func TestFullX86Frames(t *testing.T) {
	m := machine.Build(machine.WindowsPAE)
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Process: "report.exe"})
	if len(inc.Threads) != 5 || inc.Process.Name != "report.exe" {
		t.Fatalf("%d threads of %s", len(inc.Threads), inc.Process.Name)
	}
	th := threadOf(t, inc, 0x1f44)
	traps := 0
	for _, f := range th.Kernel.Frames {
		if f.Method == unwind.MethodMachineFrame {
			traps++
			if f.Name.Function != "AcmeDeviceControl" || f.Lookup != f.IP || f.Trust != unwind.TrustFramePointer ||
				f.Detail != fmt.Sprintf("the trap frame at %#x, ebp points to it", f.SP-0x74) { // HardwareEsp is not pushed
				t.Errorf("%+v", f)
			}
		}
	}
	if traps != 1 {
		t.Errorf("%d frames behind a trap", traps)
	}
	if f := threadOf(t, inc, 0x1f40).User.Frames[0]; f.Name.Function != "ReadInput" || f.Name.Offset != 0xc || f.Method != unwind.MethodTrapFrame {
		t.Errorf("page fault of user code: %+v", f)
	}
}
