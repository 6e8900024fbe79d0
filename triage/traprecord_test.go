package triage

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures/machine"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// withKernelSym analyses a machine's dump with the Breakpad file of its kernel.
func withKernelSym(t *testing.T, m *machine.Machine, symbolsThere bool) *Incident {
	t.Helper()
	dir := t.TempDir()
	if symbolsThere {
		if err := os.WriteFile(filepath.Join(dir, "ntoskrnl.sym"), []byte(m.KernelSym()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Symbols: symbols.DirPath(dir)})
}

// TestTrapRecordsX86: where trap frames do not prove themselves, the kernel's frame
// records say which code runs on one. Without them the fault's frame is not found.
func TestTrapRecordsX86(t *testing.T) {
	v := machine.WindowsPAE
	v.BareTraps = true
	m := machine.BuildFault(v, machine.DriverIrqlNotLessOrEqual)
	want := m.CPUs[0].Thread
	inc := withKernelSym(t, m, true)
	th := threadOf(t, inc, want.ID)
	wantFrames(t, "kernel", th.Kernel, want.Kernel)
	wantFrames(t, "user", th.User, want.User)
	if f := th.Kernel.Frames[2]; f.Method != unwind.MethodMachineFrame || f.Trust != unwind.TrustCFI || inc.BugCheck.Fault.Index != 2 {
		t.Errorf("%+v, fault %+v", f, inc.BugCheck.Fault)
	}
	if th.Seam == nil || th.Seam.Rule != "fpo" {
		t.Errorf("seam %+v", th.Seam)
	}
	th = threadOf(t, withKernelSym(t, m, false), want.ID)
	for _, f := range th.Kernel.Frames {
		if f.Method == unwind.MethodMachineFrame {
			t.Errorf("without records: %+v", f)
		}
	}
}

// TestTaskGateRecordX86: a non-maskable interrupt, too, changes to another task. The
// walk from its bugcheck goes back into the interrupted one by the record of a task
// gate and the processor's task state segment.
func TestTaskGateRecordX86(t *testing.T) {
	m := machine.BuildFault(machine.WindowsX86, machine.UnexpectedKernelTrap)
	m.BugCheck, m.Parameters = 0x80, [4]uint64{0x4f4454}
	want := m.CPUs[0].Thread
	th := threadOf(t, withKernelSym(t, m, true), want.ID)
	wantFrames(t, "kernel", th.Kernel, append(m.DoubleFault, want.Kernel...))
	wantFrames(t, "user", th.User, want.User)
	if f := th.Kernel.Frames[2]; f.Method != unwind.MethodMachineFrame || f.Trust != unwind.TrustCFI {
		t.Errorf("%+v", f)
	}
	th = threadOf(t, withKernelSym(t, m, false), want.ID)
	if len(th.Kernel.Frames) != len(m.DoubleFault) {
		t.Errorf("without records: %+v", th.Kernel.Frames)
	}
}
