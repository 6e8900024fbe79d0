package triage

import (
	"fmt"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/fixtures/machine"
	"dumptriage/unwind"
)

// faultsX86 are bugchecks of 32-bit systems, by where their fault's registers are:
// source is what the walk starts from, parameter which one leads to the fault.
var faultsX86 = []struct {
	code      uint32
	source    dump.ContextSource
	parameter int
	handler   int // frames that lead from the fault to the bugcheck, which stand apart when the walk starts at the fault
}{
	{machine.IrqlNotLessOrEqual, dump.ContextHeader, 3, 0},
	{machine.DriverIrqlNotLessOrEqual, dump.ContextHeader, 3, 0},
	{machine.PageFaultInNonpagedArea, dump.ContextHeader, 2, 0},
	{machine.KernelModeException, dump.ContextTrapFrame, 2, 3},
	{machine.SystemThreadException, dump.ContextParameter, 3, 3},
	{machine.UnexpectedKernelTrap, dump.ContextTask, 1, 2},
	{machine.GeneralProtectionInsideBug, dump.ContextHeader, -1, 0},
}

// TestFaultsX86: each bugcheck leads to the driver's instruction, and its stack
// from there out of the kernel.
func TestFaultsX86(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86} {
		for _, c := range faultsX86 {
			name := fmt.Sprintf("%s, %#x", v.Name, c.code)
			m := machine.BuildFault(v, c.code)
			inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{})
			want := m.CPUs[0].Thread
			th := threadOf(t, inc, want.ID)
			f := &inc.BugCheck.Fault
			if f.Source != c.source || f.Parameter != c.parameter || f.At == nil || f.At.IP != want.Fault()[0].PC || f.At.Name.Function != "AcmeDeviceControl" {
				t.Errorf("%s: fault %+v", name, f)
			}
			if c.source == dump.ContextHeader {
				wantFrames(t, name, th.Kernel, want.Kernel)
				if th.Handler != nil || f.Index < 0 || th.Kernel.Frames[f.Index].IP != want.Fault()[0].PC {
					t.Errorf("%s: frame %d, handler %+v", name, f.Index, th.Handler)
				}
			} else {
				wantFrames(t, name, th.Kernel, want.Fault())
				if th.Handler == nil || len(th.Handler.Frames) != c.handler {
					t.Errorf("%s: handler %+v", name, th.Handler)
				}
			}
			wantFrames(t, name+" user", th.User, want.User)
			if th.Kernel.Stop.Reason != unwind.StopTrapFrame || !th.Stitched {
				t.Errorf("%s: %+v, stitched %v", name, th.Kernel.Stop, th.Stitched)
			}
			for _, e := range inc.Errors {
				t.Errorf("%s: damage: %v", name, e)
			}
		}
	}
}

// TestFaultsX86Triage: the same from small memory dumps, which hold no code: that
// the registers are right is all that leads on.
func TestFaultsX86Triage(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86} {
		for _, c := range faultsX86 {
			name := fmt.Sprintf("%s, %#x", v.Name, c.code)
			m := machine.BuildFault(v, c.code)
			inc := analyze(t, nil, openBytes(t, "mini.dmp", m.Triage()), Options{})
			want := m.CPUs[0].Thread
			th := threadOf(t, inc, want.ID)
			f := &inc.BugCheck.Fault
			if f.Source != c.source || f.Parameter != c.parameter || f.At == nil || f.At.IP != want.Fault()[0].PC || f.At.Module.Name() != "acmefilt.sys" {
				t.Errorf("%s: fault %+v", name, f)
			}
			if c.source == dump.ContextHeader {
				wantFrames(t, name, th.Kernel, want.Kernel)
			} else {
				wantFrames(t, name, th.Kernel, want.Fault())
			}
			// User memory is not in the dump: where the user half begins is all.
			if th.User == nil || len(th.User.Frames) != 1 || th.User.Frames[0].IP != want.User[0].PC || !th.Stitched {
				t.Errorf("%s: user half %+v", name, th.User)
			}
			if c.code == machine.UnexpectedKernelTrap {
				wantFrames(t, name+" handler", th.Handler, m.DoubleFault)
			}
			for _, e := range inc.Errors {
				t.Errorf("%s: damage: %v", name, e)
			}
		}
	}
}

// TestNullCallX86: a driver that called address 0 stood in the kernel all the same.
func TestNullCallX86(t *testing.T) {
	m := machine.BuildFault(machine.WindowsPAE, machine.KernelModeException)
	want := m.CPUs[0].Thread
	fault := want.Fault()[0]
	tf := fault.SP - 0x74
	back := fault.PC - 0xc + 0x1d // behind the driver's call
	m.Kernel.U32(fault.SP, uint32(back))
	for _, off := range []uint64{4, 0x68} { // DbgEip, Eip
		m.Kernel.U32(tf+off, 0)
	}
	m.Parameters[1] = 0
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{})
	th := threadOf(t, inc, want.ID)
	frames := append([]fixtures.WalkFrame{{PC: 0, SP: fault.SP}, {PC: back, SP: fault.SP + 4}}, want.Fault()[1:]...)
	wantFrames(t, "kernel", th.Kernel, frames)
	wantFrames(t, "user", th.User, want.User)
}
