package bugcheck_test

import (
	"testing"

	"dumptriage/fixtures/machine"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

// stopped judges a full dump of a machine that stopped for something. The images of
// the machine are in its memory.
func stopped(t *testing.T, v machine.Variant, stop func(*machine.Machine)) *bugcheck.Verdict {
	t.Helper()
	m := machine.Build(v)
	stop(m)
	_, verdict := judge(t, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), triage.Options{})
	return verdict
}

func thread(t *testing.T, m *machine.Machine, id uint32) *machine.Thread {
	t.Helper()
	for _, p := range m.Processes {
		for _, th := range p.Threads {
			if th.ID == id {
				return th
			}
		}
	}
	t.Fatalf("no thread %#x", id)
	return nil
}

// The thread that holds the Plug and Play lock reads from the console; condrv.sys has
// the IRP. One that stands in a driver itself gives that driver.
func TestPowerTimeout(t *testing.T) {
	v := stopped(t, machine.Windows22H2, func(m *machine.Machine) { m.PowerTimeout(thread(t, m, 0x1f34)) })
	b := &v.Blame
	if b.Name != "condrv.sys" || b.Step != "parameter" || b.Parameter != 2 || b.Confidence != "medium" || len(v.IRPs) != 1 || v.IRPs[0].DriverName != `\Driver\condrv` {
		t.Errorf("%+v", b)
	}
	if v.Power == nil || v.Power.Truncated || len(v.Power.Devices) != 0 || v.Parameters[2].Name != "1f30.1f34" {
		t.Errorf("%+v, %+v", v.Power, v.Parameters[2])
	}
	v = stopped(t, machine.Windows22H2, func(m *machine.Machine) { m.PowerTimeout(thread(t, m, 0x1f48)) })
	if b := &v.Blame; b.Name != "acmefilt.sys" || b.Step != "parameter" || b.Frame == nil || b.Frame.Name.Function != "AcmeDeviceControl" {
		t.Errorf("%+v", b)
	}
}

// The processor that hangs was running a DPC of acmefilt.sys; one that idles gives
// nobody to blame.
func TestClockTimeout(t *testing.T) {
	v := stopped(t, machine.Windows22H2, func(m *machine.Machine) { m.ClockTimeout(m.CPUs[3]) })
	if b := &v.Blame; b.Name != "acmefilt.sys" || b.Step != "processor" || b.Confidence != "medium" || b.Parameter != 2 {
		t.Errorf("%+v", b)
	}
	if h := v.Hung; h == nil || h.Number != 3 || h.CPU == nil || h.CPU.Switched == nil || h.Index != 0 || h.Frame.Name.Function != "AcmeTimerDpc" {
		t.Errorf("%+v", h)
	}
	v = stopped(t, machine.Windows22H2, func(m *machine.Machine) { m.ClockTimeout(m.CPUs[2]) })
	if b := &v.Blame; b.Culprit != bugcheck.CulpritHardware || v.Hung == nil || v.Hung.CPU == nil || v.Hung.Frame != nil {
		t.Errorf("%+v, %+v", b, v.Hung)
	}
}

// 0x102 names the processor by its KPRCB alone: its number is known when the dump has it.
func TestDPCQueueTimeout(t *testing.T) {
	for prcb, known := range map[bool]bool{true: true, false: false} {
		v := stopped(t, machine.Windows22H2, func(m *machine.Machine) {
			m.BugCheck, m.Parameters = 0x102, [4]uint64{0x18, 0xfffff80099990000}
			if prcb {
				m.Parameters[1] = m.CPUs[3].PRCB
			}
		})
		if h := v.Hung; h == nil || h.Known != known || known && (h.Number != 3 || v.Blame.Step != "processor" || v.Blame.Name != "acmefilt.sys") {
			t.Errorf("in the dump %v: %+v, %+v", known, h, v.Blame)
		}
	}
}

// A single DPC is on the stack, on the processor's own; time spent in all is in the
// profile, whoever runs at the end. What lies behind the captures is older.
func TestDPCTimeout(t *testing.T) {
	v := stopped(t, machine.Windows22H2, func(m *machine.Machine) { m.DPCTimeout(m.CPUs[3], 0, m.Code(1, "CdpDispatchRead")) })
	if b := &v.Blame; b.Name != "acmefilt.sys" || b.Step != "frame" {
		t.Errorf("single: %+v", b)
	}
	v = stopped(t, machine.Windows22H2, func(m *machine.Machine) {
		nt, acme, condrv := m.NT.Base+0x201000, m.Code(2, "AcmeTimerDpc"), m.Code(1, "CdpDispatchRead")
		m.DPCTimeout(m.CPUs[3], 1, nt, acme, nt, 0, nt, condrv, acme, 0, condrv, nt, condrv)
	})
	p := v.Profile
	if p == nil || p.Missing || p.Addresses != 9 || len(p.Drivers) != 2 || p.Drivers[0].Module.Name() != "condrv.sys" || p.Drivers[0].Addresses != 3 || p.Drivers[1].Addresses != 2 {
		t.Fatalf("%+v", p)
	}
	if b := &v.Blame; b.Name != "condrv.sys" || b.Step != "profile" || b.Confidence != "medium" || b.Parameter != 2 {
		t.Errorf("in all: %+v", b)
	}
}
