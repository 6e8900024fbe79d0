package triage

import (
	"testing"

	"dumptriage/fixtures/machine"
	"dumptriage/unwind"
)

// TestCallbackX86: the kernel stack that a 32-bit thread left for a callback leads to
// the frame that had called the service, and the thread's own stack is whole. One that
// leads elsewhere is not shown.
func TestCallbackX86(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86} {
		m := machine.BuildCallback(v)
		want := m.Processes[len(m.Processes)-1].Threads
		wantThread := want[len(want)-1]
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Process: "report", Callbacks: true})
		th := threadOf(t, inc, machine.CallbackThread)
		wantFrames(t, v.Name+" kernel", th.Kernel, wantThread.Kernel)
		wantFrames(t, v.Name+" user", th.User, wantThread.User)
		if !th.Stitched || len(th.Callbacks) != 1 {
			t.Fatalf("%s: stitched %v, %d callbacks", v.Name, th.Stitched, len(th.Callbacks))
		}
		c := &th.Callbacks[0]
		outer := wantThread.Outer[0]
		wantFrames(t, v.Name+" outer", c.Kernel, outer.Kernel[1:]) // KiCallUserMode's own frame is not recorded
		pc, _ := c.User.PC()
		sp, _ := c.User.SP()
		if c.Kernel == nil || c.Kernel.Stop.Reason != unwind.StopTrapFrame || pc != outer.User[0].PC || sp != outer.User[0].SP {
			t.Errorf("%s: %+v, %s, entered from %#x %#x", v.Name, c.Kernel, c.Note, pc, sp)
		}
		for i := range inc.Threads {
			if other := &inc.Threads[i]; other != th && len(other.Callbacks) != 0 {
				t.Errorf("%s: thread %#x has callbacks", v.Name, other.ID)
			}
		}
		// The stack that was left says nothing any more: there is a reason, and no frames.
		for va := outer.Kernel[0].SP; va < outer.Kernel[0].SP+0x80; va += 4 {
			m.Kernel.U32(va, 0)
		}
		inc = analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Process: "report", Callbacks: true})
		if c := threadOf(t, inc, machine.CallbackThread).Callbacks; len(c) != 1 || c[0].Kernel != nil || c[0].Note == "" {
			t.Errorf("%s: %+v", v.Name, c)
		}
	}
}
