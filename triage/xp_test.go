package triage

import (
	"fmt"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestWindowsXP: the data block of Windows XP says nothing of offsets; its layout,
// and the place of a thread's trap frame, are its own.
func TestWindowsXP(t *testing.T) {
	for _, kind := range []machine.Kind{machine.Full, machine.Summary} {
		m := machine.Build(machine.WindowsXP)
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(kind)), Options{AllProcesses: true})
		for _, p := range m.Processes {
			for _, want := range p.Threads {
				name := fmt.Sprintf("%x.%x", p.PID, want.ID)
				th := threadOf(t, inc, want.ID)
				wantFrames(t, name+" kernel", th.Kernel, want.Kernel)
				if th.KernelInfo.PID != p.PID || th.KernelInfo.TrapFrame != want.TrapFrame {
					t.Errorf("%s: of process %x, trap frame %#x, want %#x", name, th.KernelInfo.PID, th.KernelInfo.TrapFrame, want.TrapFrame)
				}
				if kind == machine.Full && want.User != nil {
					wantFrames(t, name+" user", th.User, want.User)
				}
			}
		}
		if inc.Process.Name != "report.exe" && inc.Crashing < 0 {
			t.Errorf("process %+v", inc.Process)
		}
		for i, c := range inc.CPUs {
			if want := m.CPUs[i]; c.Idle != want.IsIdle || c.Context.Empty() {
				t.Errorf("processor %d: %+v", i, c.CPU)
			}
		}
		for _, e := range inc.Errors {
			t.Errorf("damage: %v", e)
		}
	}
	for _, c := range faultsX86 {
		m := machine.BuildFault(machine.WindowsXP, c.code)
		inc := analyze(t, nil, openBytes(t, "mini.dmp", m.Triage()), Options{})
		want := m.CPUs[0].Thread
		f := &inc.BugCheck.Fault
		if f.Source != c.source || f.Parameter != c.parameter || f.At == nil || f.At.IP != want.Fault()[0].PC {
			t.Errorf("%#x: fault %+v", c.code, f)
		}
		if c.source == dump.ContextHeader {
			wantFrames(t, fmt.Sprintf("%#x", c.code), threadOf(t, inc, want.ID).Kernel, want.Kernel)
		}
		for _, e := range inc.Errors {
			t.Errorf("%#x: damage: %v", c.code, e)
		}
	}
}
