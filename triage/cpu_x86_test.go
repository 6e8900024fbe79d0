package triage

import (
	"testing"

	"dumptriage/fixtures/machine"
)

// TestCPUStackBelowKernel: a 32-bit kernel's image lies below its stacks. Of a
// processor whose thread is not walked only the stack's base is known, below which
// is no proof of being no code.
func TestCPUStackBelowKernel(t *testing.T) {
	m := machine.Build(machine.WindowsPAE)
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Process: "report.exe"})
	if len(inc.CPUs) != 2 || inc.CPUs[1].Thread >= 0 {
		t.Fatalf("processors %+v", inc.CPUs)
	}
	wantFrames(t, "idle", inc.CPUs[1].Kernel, m.CPUs[1].Kernel)
}
