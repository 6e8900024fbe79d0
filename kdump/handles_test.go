package kdump

import (
	"slices"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestMachineHandles lists the handles of the program on every machine.
func TestMachineHandles(t *testing.T) {
	for _, v := range machine.Variants() {
		m := machine.Build(*v)
		f := openBytes(t, m.Dump(machine.BitmapKernel))
		for _, want := range m.Processes {
			i := slices.IndexFunc(f.Processes(), func(p dump.Process) bool { return p.EPROCESS == want.EPROCESS })
			got := f.View(&f.Processes()[i]).Handles()
			if len(got) != len(want.Handles) || (got == nil) != (want.Handles == nil) {
				t.Errorf("%s: %s has the handles %+v, want %+v", v.Name, want.Name, got, want.Handles)
				continue
			}
			for i, h := range want.Handles {
				g := got[i]
				if g.Value != uint64(h.Value) || g.Object != h.Object || g.Type != h.Type || g.Access != h.Access || h.Name != "" && g.Name != h.Name {
					t.Errorf("%s: handle %+v, want %+v", v.Name, g, h)
				}
			}
		}
	}
}
