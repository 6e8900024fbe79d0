package kdump

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestOwnStacks: a processor that runs a DPC is on the stack that its block names
// for that, one that was interrupted on another; where the fields are, the data
// block says, and without it the kernel's types.
func TestOwnStacks(t *testing.T) {
	for _, v := range []machine.Variant{machine.Windows22H2, machine.Windows23H2, machine.WindowsOdd} {
		for _, kind := range []string{"dpc", "interrupt"} {
			m := machine.Build(v)
			cpu := m.CPUs[3]
			dpc, isr := cpu.PRCB+m.Offsets()["KPRCB.DpcStack"], cpu.PRCB+m.Offsets()["KPRCB.IsrStack"]
			f := openWith(t, m.Dump(machine.BitmapFull), symbolsOf(m))
			base, err := dump.ReadUint64(f.Memory(), dpc)
			if err != nil || base == 0 {
				t.Fatal(base, err)
			}
			if kind == "interrupt" {
				m.Kernel.U64(dpc, 0)
				m.Kernel.U64(isr, base)
				f = openWith(t, m.Dump(machine.BitmapFull), symbolsOf(m))
			}
			for _, c := range f.CPUs() {
				switch s := c.Switched; {
				case c.Number != 3 && s != nil:
					t.Errorf("%s: processor %d is on %+v", v.Name, c.Number, s)
				case c.Number == 3 && (s == nil || s.Kind != kind || s.Base != base):
					t.Errorf("%s: %+v, want %s at %#x", v.Name, s, kind, base)
				}
			}
		}
	}
}
