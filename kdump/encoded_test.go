package kdump

import (
	"testing"

	"dumptriage/fixtures/machine"
)

// TestEncodedMachine reads machines whose debugger data block stands as the kernel
// keeps it in its own memory, by the separate writer's keys.
func TestEncodedMachine(t *testing.T) {
	for _, v := range []machine.Variant{machine.Windows1809, machine.Windows22H2, machine.Windows24H2, machine.WindowsLA57} {
		v.Encoded = true
		m := machine.Build(v)
		f := openBytes(t, m.Dump(machine.Full))
		if len(f.Processes()) != len(m.Processes) || len(f.Damage()) != 0 {
			t.Errorf("%s: %d processes, want %d; damage %v", v.Name, len(f.Processes()), len(m.Processes), f.Damage())
		}
	}
}
