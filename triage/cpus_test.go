package triage

import (
	"testing"

	"dumptriage/fixtures/machine"
)

// TestMachineCPUs compares what each processor of every x64 machine ran with what was
// put there: a thread in a driver, one stopped in user code, an idle processor,
// and one on its DPC stack, from which the walk must come back to the thread's.
func TestMachineCPUs(t *testing.T) {
	for _, v := range x64Machines() {
		m := machine.Build(*v)
		for _, opt := range []Options{{}, {Running: true}} {
			inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), opt)
			if len(inc.CPUs) != len(m.CPUs) {
				t.Fatalf("%s: %d processors, want %d", v.Name, len(inc.CPUs), len(m.CPUs))
			}
			for i := range m.CPUs {
				checkCPU(t, v, &inc.CPUs[i], m.CPUs[i])
			}
		}
	}
}

func checkCPU(t *testing.T, v *machine.Variant, got *CPU, want *machine.CPU) {
	t.Helper()
	if got.Idle != want.IsIdle || got.PRCB != want.PRCB {
		t.Errorf("%s: processor %d: %+v", v.Name, got.Number, got.CPU)
	}
	kind := "dpc"
	if v.Build == machine.Windows24H2.Build { // of which no layout says where the DPC stack is
		kind = "unknown"
	}
	if dpc := got.Switched != nil && got.Switched.Kind == kind; dpc != want.DPC {
		t.Errorf("%s: processor %d: on its DPC stack is %v: %+v", v.Name, got.Number, dpc, got.Switched)
	}
	if got.Kernel == nil || len(got.Kernel.Frames) != len(want.Kernel) {
		t.Fatalf("%s: processor %d: %+v, want %d frames", v.Name, got.Number, got.Kernel, len(want.Kernel))
	}
	for i, w := range want.Kernel {
		if f := got.Kernel.Frames[i]; f.IP != w.PC || f.SP != w.SP {
			t.Errorf("%s: processor %d, frame %d: ip %#x, sp %#x; want %s, %#x, %#x", v.Name, got.Number, i, f.IP, f.SP, w.Function, w.PC, w.SP)
		}
	}
	if want.Thread != nil && (got.User == nil || len(got.User.Frames) != len(want.Thread.User)) {
		t.Errorf("%s: processor %d: its user half is %+v", v.Name, got.Number, got.User)
	}
}
