package kdump

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// waitClasses are the reader's words for the writer's.
var waitClasses = map[string]string{"mutant": "mutex", "event": "event", "thread": "thread", "alpc": "alpc", "resource": "resource",
	"queue": "idle_worker", "delay": "sleep", "alert": "address", "multiple": "objects", "irp": "io", "suspended": "suspended", "paging": "paging"}

// TestMachineWaits finds what every thread of every machine waits for, and who
// holds it up.
func TestMachineWaits(t *testing.T) {
	for _, v := range machine.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			m := machine.Build(*v)
			for _, kind := range []machine.Kind{machine.Full, machine.BitmapKernel} {
				f := openBytes(t, m.Dump(kind))
				got := map[uint64]*dump.KernelThread{}
				for _, th := range f.Threads() {
					got[th.Kernel.ETHREAD] = th.Kernel
				}
				for _, p := range m.Processes {
					for _, want := range p.Threads {
						checkWait(t, got[want.ETHREAD], want)
					}
				}
			}
		})
	}
}

func checkWait(t *testing.T, kt *dump.KernelThread, want *machine.Thread) {
	t.Helper()
	switch {
	case kt == nil:
		t.Errorf("thread %#x was not found", want.ID)
		return
	case want.Wait == nil:
		if kt.Wait != nil {
			t.Errorf("thread %#x runs and waits for %+v", want.ID, kt.Wait)
		}
		return
	case kt.Wait == nil:
		t.Errorf("thread %#x waits for nothing, not %+v", want.ID, want.Wait)
		return
	}
	w := kt.Wait
	if class := waitClasses[want.Wait.Class]; w.Class != class {
		t.Errorf("thread %#x: class %q, want %q", want.ID, w.Class, class)
	}
	seen := map[uint64]bool{}
	for _, o := range w.Objects {
		seen[o.Address] = true
		if o.Note != "" {
			t.Errorf("thread %#x: object %#x: %s", want.ID, o.Address, o.Note)
		}
	}
	for _, irp := range w.IRPs {
		seen[irp.Address] = true
	}
	if w.Message != nil {
		seen[w.Message.Address] = true
	}
	for _, o := range want.Wait.Objects {
		if !seen[o] {
			t.Errorf("thread %#x (%s): %#x is not among what it waits for: %+v", want.ID, want.Wait.Class, o, w)
		}
	}
	owner := uint32(0)
	if o := w.Owner(); o != nil {
		owner = o.TID
	}
	if owner != want.Wait.Owner {
		t.Errorf("thread %#x (%s): owner %#x, want %#x", want.ID, want.Wait.Class, owner, want.Wait.Owner)
	}
	if w.Note != "" {
		t.Errorf("thread %#x: %s", want.ID, w.Note)
	}
}

// TestWaitNames reads the names around a wait: the mutant's, the driver's, the
// file's, the port's.
func TestWaitNames(t *testing.T) {
	for _, v := range []*machine.Variant{&machine.Windows7, &machine.Windows22H2, &machine.WindowsLA57} {
		f := openBytes(t, machine.Build(*v).Dump(machine.Full))
		waits := map[uint32]*dump.KernelWait{}
		for _, th := range f.Threads() {
			waits[th.ID] = th.Kernel.Wait
		}
		mutant := waits[0x1f38].Objects[0]
		if mutant.Name != `\BaseNamedObjects\ReportTurn` || mutant.Type != "mutant" || mutant.Owner.Process != "report.exe" || mutant.Owner.PID != 0x1f30 {
			t.Errorf("%s: mutant %+v, owner %+v", v.Name, mutant, mutant.Owner)
		}
		irps := waits[0x1f34].IRPs
		if want := (dump.PendingIRP{Address: irps[0].Address, Major: 3, Driver: `\Driver\condrv`, Device: `\Device\ConDrv`, File: `\Input`}); irps[0] != want {
			t.Errorf("%s: IRP %+v, want %+v", v.Name, irps[0], want)
		}
		msg := waits[0x1f40].Message
		if msg.Port != `\RPC Control\AcmePort` || msg.Owner.Process != "acmesvc.exe" || msg.Server.TID != 0x5b0 || msg.Server.PID != 0x5a8 {
			t.Errorf("%s: message %+v", v.Name, msg)
		}
		if objects := waits[0x1f54].Objects; len(objects) != 2 || objects[0].Name != `\BaseNamedObjects\ReportCancel` || objects[1].Name != `\BaseNamedObjects\ReportTurn` || waits[0x1f54].All {
			t.Errorf("%s: objects %+v", v.Name, objects)
		}
		if o := waits[0x1f44].Objects[0]; !o.Own || o.Type != "notification timer" {
			t.Errorf("%s: sleep %+v", v.Name, o)
		}
	}
}

// TestStaleWaitBlocks: of a kernel whose count of wait blocks is not known, the
// block of an earlier wait is no object that is waited for now.
func TestStaleWaitBlocks(t *testing.T) {
	m := machine.Build(machine.WindowsARM)
	const waitBlock, size = 0x138, 0x30 // KTHREAD.WaitBlock, KWAIT_BLOCK
	for _, p := range m.Processes {
		for _, th := range p.Threads {
			if th.Wait == nil || len(th.Wait.Objects) != 1 || th.State != stateWaiting {
				continue
			}
			stale := th.ETHREAD + waitBlock + size
			m.Kernel.U16(stale+0x10, 1|5<<8) // WaitAny, inactive; behind it lies KTHREAD.State
			m.Kernel.U64(stale+0x18, th.ETHREAD)
			m.Kernel.U64(stale+0x20, p.EPROCESS)
			f := openBytes(t, m.Dump(machine.BitmapFull))
			for _, got := range f.Threads() {
				if got.Kernel.ETHREAD != th.ETHREAD {
					continue
				}
				if w := got.Kernel.Wait; w == nil || len(w.Objects) != 1 || w.Objects[0].Address != th.Wait.Objects[0] {
					t.Errorf("%d waits for %+v, want %#x alone", th.ID, w, th.Wait.Objects)
				}
			}
			return
		}
	}
	t.Fatal("no thread of the machine waits for one object")
}
