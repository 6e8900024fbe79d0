package hang

import (
	"bytes"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
	"dumptriage/internal/input"
	"dumptriage/triage"
)

// wholeSystem analyses every process of a machine from a full dump of it.
func wholeSystem(t *testing.T, m *machine.Machine) *triage.Incident {
	t.Helper()
	b := m.Dump(machine.Full)
	f, err := input.New(bytes.NewReader(b), int64(len(b)), "MEMORY.DMP", input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	inc, err := triage.Analyze(nil, d, "", triage.Options{AllProcesses: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inc.Close() })
	return inc
}

// The machine's own word on who holds up whom, against what a full kernel dump
// of it gives, whatever the half that knows.
func TestOwnersOfAFullKernelDump(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	inc := wholeSystem(t, m)
	v := Of(inc, builtinRules(t))
	owned := 0
	for _, p := range m.Processes {
		for _, th := range p.Threads {
			if th.Wait == nil {
				continue
			}
			i := -1
			for k := range inc.Threads {
				if inc.Threads[k].KernelInfo != nil && inc.Threads[k].KernelInfo.ETHREAD == th.ETHREAD {
					i = k
				}
			}
			if i < 0 {
				t.Errorf("thread %#x is missing", th.ID)
				continue
			}
			w := &v.Waits[i]
			owner := uint32(0)
			if w.Owner != nil {
				owner = w.Owner.ThreadID
			}
			if th.Wait.Owner != 0 {
				owned++
			}
			if owner != th.Wait.Owner {
				t.Errorf("thread %#x (%s: %s): owner %#x, want %#x", th.ID, th.Wait.Class, w.Class, owner, th.Wait.Owner)
			}
			want, ok := map[string]Class{"queue": ClassIdleWorker, "irp": ClassIO, "mutant": ClassMutex, "thread": ClassThread, "alpc": ClassALPC,
				"delay": ClassSleep, "multiple": ClassObjects, "event": ClassEvent, "suspended": ClassSuspended, "resource": ClassResource,
				"alert": ClassCondition, "paging": ClassPaging}[th.Wait.Class]
			if w.Class != want || !ok {
				t.Errorf("thread %#x waits for %s: %s by %s", th.ID, th.Wait.Class, w.Class, w.Rule)
			}
		}
	}
	if owned == 0 {
		t.Error("no thread of the machine has an owner to find")
	}
	// Reader 1f34 holds the mutex that others wait for, in a chain of three.
	if v.State != Blocked || inc.Threads[v.Subject].ID != 0x1f34 || ids(inc, v.Chain()) != "[0x1f3c 0x1f38 0x1f34]" {
		t.Errorf("%s about %#x, chain %s", v.State, inc.Threads[v.Subject].ID, ids(inc, v.Chain()))
	}
	if k := v.Waits[v.Subject].InKernel; k == nil || len(k.IRPs) != 1 || k.IRPs[0].Major != 3 { // IRP_MJ_READ
		t.Errorf("in the kernel %+v", k)
	}
}

// Each thread's locks are read in the memory of its own process: there lie its stack
// and the image that its user half begins in.
func TestThreadsAreReadInTheirProcess(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	inc := wholeSystem(t, m)
	a := &analysis{inc: inc}
	spaces := map[*triage.View]uint64{}
	for i := range inc.Threads {
		th := &inc.Threads[i]
		if th.User == nil || len(th.User.Frames) < 2 {
			continue
		}
		a.enter(th)
		owner, seen := spaces[a.space]
		if spaces[a.space] = a.process(i); seen && owner != a.process(i) && th.Wow64 == nil {
			t.Errorf("threads of the processes %#x and %#x are read in one memory", owner, a.process(i))
		}
		if a.space.Module(th.User.Frames[0].IP) == nil {
			t.Errorf("thread %#x: no module at %#x in the memory that is read", th.ID, th.User.Frames[0].IP)
		}
		if _, err := dump.ReadUint32(a.space, th.User.Frames[1].SP-8); err != nil {
			t.Errorf("thread %#x: its stack: %v", th.ID, err)
		}
	}
	if len(spaces) < 3 {
		t.Errorf("%d address spaces, want those of three programs at least", len(spaces))
	}
}
