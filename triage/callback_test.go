package triage

import (
	"slices"
	"testing"

	"dumptriage/fixtures/machine"
)

// TestCallbacks finds the kernel stack that a thread left to be called back, on
// every x64 machine that links such stacks, and that it leads to the user frame
// that had called the service.
func TestCallbacks(t *testing.T) {
	for _, v := range x64Machines() {
		m := machine.Build(*v)
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Callbacks: true})
		for _, p := range m.Processes {
			for _, want := range p.Threads {
				i := slices.IndexFunc(inc.Threads, func(th Thread) bool { return th.KernelInfo != nil && th.KernelInfo.ETHREAD == want.ETHREAD })
				if i < 0 {
					continue
				}
				outer := want.Outer
				if v.Build < 9200 {
					outer = nil // Windows 7 keeps the former stack elsewhere
				}
				checkCallbacks(t, v.Name, &inc.Threads[i], outer)
			}
		}
	}
}

func checkCallbacks(t *testing.T, name string, th *Thread, want []machine.Segment) {
	t.Helper()
	if len(th.Callbacks) != len(want) {
		t.Errorf("%s: thread %#x has %d outer stacks, want %d", name, th.ID, len(th.Callbacks), len(want))
		return
	}
	for i, w := range want {
		c := &th.Callbacks[i]
		if c.Kernel == nil || len(c.Kernel.Frames) != len(w.Kernel) {
			t.Errorf("%s: thread %#x: outer stack %+v, %s", name, th.ID, c.Kernel, c.Note)
			continue
		}
		for k, f := range c.Kernel.Frames {
			// Which instruction of KiCallUserMode it was is not recorded.
			if k > 0 && f.IP != w.Kernel[k].PC || f.SP != w.Kernel[k].SP || f.Name.Function != w.Kernel[k].Function && k < len(c.Kernel.Frames)-1 {
				t.Errorf("%s: thread %#x, outer frame %d: %#x %#x %s, want %+v", name, th.ID, k, f.IP, f.SP, f.Name.Function, w.Kernel[k])
			}
		}
		pc, _ := c.User.PC()
		sp, _ := c.User.SP()
		if pc != w.User[0].PC || sp != w.User[0].SP {
			t.Errorf("%s: thread %#x: the outer stack was entered from %#x %#x, want %#x %#x", name, th.ID, pc, sp, w.User[0].PC, w.User[0].SP)
		}
	}
}
