package bugcheck_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

func judgeScene(t *testing.T, name string) *bugcheck.Verdict {
	t.Helper()
	d := fixtures.BugCheckScenes()[name]
	_, v := judge(t, openBytes(t, name, d.Dump), images(t, d))
	return v
}

// The IRP that blocks: who has it, who had it, and what it asks for.
func TestPowerIRP(t *testing.T) {
	v := judgeScene(t, "power")
	if len(v.IRPs) != 1 {
		t.Fatalf("%+v", v.IRPs)
	}
	irp := &v.IRPs[0]
	if codes.IRPMajor(irp.Major) != "IRP_MJ_POWER" || irp.Minor != 2 || irp.DriverName != `\Driver\faulty` || irp.Driver == nil || irp.Driver.Name() != "faulty.sys" || irp.Parameter != 3 || irp.Completed {
		t.Errorf("%+v", irp)
	}
	if p := irp.Power; p == nil || !p.Device || p.State != 4 || p.Shutdown != 2 { // PowerDeviceD3, PowerActionSleep
		t.Errorf("power %+v", p)
	}
	got := ""
	for _, l := range irp.Locations {
		routine := ""
		if l.Completion != nil {
			routine = l.Completion.Name.Function
		}
		got += fmt.Sprintf("%d %s %v %s; ", l.Number, l.DriverName, l.Pending, routine)
	}
	if want := `2 \Driver\faulty true PspSystemThreadStartup; 3 \Driver\upperflt true ; `; got != want {
		t.Errorf("locations %q, want %q", got, want)
	}
}

// The device, and the lists that TRIAGE_9F_POWER leads to.
func TestPowerTriage(t *testing.T) {
	v := judgeScene(t, "power")
	n := v.Device
	if n == nil || n.Instance != `PCI\VEN_1022&DEV_15E0\3&11583659&0&42` || n.Service != "faulty" || len(n.Stack) != 3 ||
		n.Stack[0].DriverName != `\Driver\pci` || n.Stack[1].Driver == nil || n.Stack[2].DriverName != `\Driver\upperflt` {
		t.Errorf("device %+v", n)
	}
	p := v.Power
	if p == nil || p.Parameter != 2 || p.Truncated || len(p.IRPs) != 2 || len(p.Workers) != 2 {
		t.Fatalf("%+v", p)
	}
	if a, b := &p.IRPs[0], &p.IRPs[1]; a.DriverName != `\Driver\faulty` || a.PDO.Service != "faulty" || b.DriverName != "" || len(b.PDO.Stack) != 0 || b.Address == 0 {
		t.Errorf("IRPs %+v, %+v", a, b)
	}
	if w, idle := &p.Workers[0], &p.Workers[1]; w.Name != "4.1d8" || w.IRP != v.IRPs[0].Address || w.DriverName != `\Driver\faulty` || idle.IRP != 0 || idle.Name != "" {
		t.Errorf("threads %+v, %+v", w, idle)
	}
}

// What Plug and Play waits for, and the device of a directed power transition.
func TestPowerDevices(t *testing.T) {
	for _, name := range []string{"power_pnp", "power_directed"} {
		if p := judgeScene(t, name).Power; p == nil || len(p.Devices) != 1 || p.Devices[0].Service != "faulty" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Lists that go in circles or nowhere end, and say that they do; a device above itself
// ends its stack.
func TestPowerHostile(t *testing.T) {
	le := binary.LittleEndian
	for name, x := range map[string]struct {
		find      uint64 // a pointer in the dump
		to        uint64
		truncated bool
	}{
		"list into itself": {fixtures.ScenePower + 0x240, fixtures.ScenePower + 0x200, true}, // first entry's link
		"list to nowhere":  {fixtures.ScenePower + 0x2c0, 0xfffffffffffffff8, true},
		"device in a ring": {fixtures.SceneFilterDevice, fixtures.ScenePDODevice, false},
	} {
		d := fixtures.BugCheckScenes()["power"]
		b := bytes.ReplaceAll(d.Dump, le.AppendUint64(nil, x.find), le.AppendUint64(nil, x.to))
		_, v := judge(t, openBytes(t, name, b), triage.Options{})
		if v.Power == nil || v.Power.Truncated != x.truncated || v.Blame.Name != "faulty.sys" {
			t.Errorf("%s: %+v, %+v", name, v.Power, v.Blame)
		}
		if v.Device == nil || len(v.Device.Stack) > 3 {
			t.Errorf("%s: %+v", name, v.Device)
		}
	}
}

// Any bytes where the blocks are: an answer, without a panic.
func TestPowerDamaged(t *testing.T) {
	for _, name := range []string{"power", "power_pnp", "power_directed"} {
		d := fixtures.BugCheckScenes()[name]
		r := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			b := bytes.Clone(d.Dump)
			for range 40 { // the blocks lie in the file's second half
				b[len(b)/2+r.IntN(len(b)/2)] = byte(r.Uint32())
			}
			judge(t, openBytes(t, name, b), triage.Options{})
		}
	}
}
