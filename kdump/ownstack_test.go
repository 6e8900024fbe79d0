package kdump

import (
	"encoding/binary"
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

// TestOwnStackByPlace: where nothing says which field has the stack's base, it is
// the page's address just above the stack pointer that all processors have like
// ones of; of the thread's own stack no such is looked for.
func TestOwnStackByPlace(t *testing.T) {
	const place = 0x3608 // where the writer put it, which no layout knows
	for name, c := range map[string]struct {
		edit  func(m *machine.Machine, base uint64)
		found bool
	}{
		"found": {func(*machine.Machine, uint64) {}, true},
		"in its block alone": {func(m *machine.Machine, base uint64) {
			m.Kernel.U64(m.CPUs[3].PRCB+place, 0)
			m.Kernel.U64(m.CPUs[3].PRCB+0x4000, base)
		}, false},
		"not in another block": {func(m *machine.Machine, _ uint64) { m.Kernel.U64(m.CPUs[1].PRCB+place, 0xffffcf8d51000010) }, false},
		"its thread's own is another's": {func(m *machine.Machine, _ uint64) {
			for _, cpu := range m.CPUs { // processor 2 is on it, and not on a stack of its own
				m.Kernel.U64(cpu.PRCB+0x5000, binaryU64(m.Kernel.Read(m.CPUs[2].Idle+0x38, 8)))
			}
		}, true},
		"not a page's address":          {func(m *machine.Machine, base uint64) { m.Kernel.U64(m.CPUs[3].PRCB+place, base+8) }, false},
		"too far above":                 {func(m *machine.Machine, base uint64) { m.Kernel.U64(m.CPUs[3].PRCB+place, base+0x6000) }, false},
		"its thread's bounds not in it": {func(m *machine.Machine, _ uint64) { m.Kernel.U64(m.CPUs[3].Idle+0x38, 0) }, false},
	} {
		m := machine.Build(machine.Windows24H2)
		base := binaryU64(m.Kernel.Read(m.CPUs[3].PRCB+place, 8))
		c.edit(m, base)
		for _, cpu := range openBytes(t, m.Dump(machine.BitmapFull)).CPUs() {
			switch s := cpu.Switched; {
			case cpu.Number != 3 && s != nil:
				t.Errorf("%s: processor %d is on %+v", name, cpu.Number, s)
			case cpu.Number == 3 && (s != nil) != c.found, s != nil && (s.Kind != "unknown" || s.Base != base):
				t.Errorf("%s: %+v, want one at %#x: %v", name, s, base, c.found)
			}
		}
	}
}

func binaryU64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// TestOwnStackByPlaceLimit: the comparison of blocks takes from the budget of all walks.
func TestOwnStackByPlaceLimit(t *testing.T) {
	f := openBytes(t, machine.Build(machine.Windows24H2).Dump(machine.BitmapFull))
	if s := f.CPUs()[3].Switched; s == nil {
		t.Fatal("no stack found")
	}
	f.full.steps.Store(mostSteps)
	if s := f.CPUs()[3].Switched; s != nil || !f.full.spent.Load() {
		t.Errorf("%+v, said: %v", s, f.full.spent.Load())
	}
}
