package triage

import (
	"fmt"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// x64Machines are those whose images have unwind data, so that every frame of a
// stack is known.
func x64Machines() (out []*machine.Variant) {
	for _, v := range machine.Variants() {
		if v.Arch == machine.AMD64 {
			out = append(out, v)
		}
	}
	return out
}

// TestFullStacks walks every thread of machines in full dumps, kernel half and
// user half, with no other file.
func TestFullStacks(t *testing.T) {
	for _, v := range x64Machines() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			m := machine.Build(*v)
			inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.BitmapFull)), Options{AllProcesses: true})
			byEthread := map[uint64]*Thread{}
			for i := range inc.Threads {
				byEthread[inc.Threads[i].KernelInfo.ETHREAD] = &inc.Threads[i]
			}
			for _, p := range m.Processes {
				for _, want := range p.Threads {
					th := byEthread[want.ETHREAD]
					if th == nil {
						t.Errorf("no thread %x.%x", p.PID, want.ID)
						continue
					}
					checkThread(t, fmt.Sprintf("%x.%x", p.PID, want.ID), th, want)
				}
			}
			for _, e := range inc.Errors {
				t.Errorf("damage: %v", e)
			}
			if inc.Crashing < 0 || inc.Threads[inc.Crashing].ID != 0x1f48 {
				t.Errorf("crashing thread is %d", inc.Crashing)
			}
		})
	}
}

func checkThread(t *testing.T, name string, th *Thread, want *machine.Thread) {
	t.Helper()
	if want.Unreadable != "" {
		if th.Kernel != nil && len(th.Kernel.Frames) > 0 || !strings.Contains(th.KernelInfo.Note, want.Unreadable) {
			t.Errorf("%s: kernel half %+v, note %q; want %s", name, th.Kernel, th.KernelInfo.Note, want.Unreadable)
		}
		return
	}
	wantHalf(t, name+" kernel", th.Kernel, want.Kernel)
	switch {
	case want.Wow64 != nil:
		if want.User != nil {
			wantHalf(t, name+" 64-bit", th.Wow64, want.User)
		} else if th.Wow64 != nil { // it was in 32-bit code: what its registers hold of the other stack is no place in code
			t.Errorf("%s: 64-bit half %+v", name, th.Wow64)
		}
		if th.User == nil || len(th.User.Frames) != len(want.Wow64) {
			t.Errorf("%s: 32-bit half %+v", name, th.User)
			break
		}
		for i, f := range want.Wow64 {
			if got := &th.User.Frames[i]; got.IP != uint64(f.PC) {
				t.Errorf("%s: 32-bit frame %d at %#x, want %#x (%s)", name, i, got.IP, f.PC, f.Function)
			}
		}
	case want.User != nil:
		wantHalf(t, name+" user", th.User, want.User)
	default:
		if th.User != nil && len(th.User.Frames) > 0 {
			t.Errorf("%s: user half of a thread that has none: %+v", name, th.User)
		}
		return
	}
	if !th.Stitched {
		t.Errorf("%s: not stitched: %+v", name, th.Seam)
	}
}

// TestStackNotInMemory: a walk that needs a page of the user stack says what became
// of it, by the entry or by the process's VADs.
func TestStackNotInMemory(t *testing.T) {
	for _, v := range x64Machines() {
		m := machine.Build(*v)
		wants := map[uint32]string{0x1f38: "paged out to a page file at 0x55000", 0x1f3c: "reserved, not committed", 0x1f44: "demand-zero: never touched"}
		if v.Build >= 17763 {
			wants[0x1f38] = "paged out to page file 1 at 0x55000"
		}
		entries := map[uint32]uint64{0x1f38: m.Paging.PagedOut(1, 0x55), 0x1f44: m.Paging.DemandZero()}
		for _, p := range m.Processes {
			for _, th := range p.Threads {
				if wants[th.ID] != "" {
					p.Space.Evict(th.User[0].SP&^0xfff, entries[th.ID])
				}
			}
		}
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{})
		for i := range inc.Threads {
			th := &inc.Threads[i]
			if want := wants[th.ID]; want != "" && (th.User == nil || th.User.Stop.Reason != "stack_missing" || !strings.Contains(th.User.Stop.Detail, want)) {
				t.Errorf("%s: thread %#x: %+v, want %s", v.Name, th.ID, th.User, want)
			}
			delete(wants, th.ID)
		}
		if len(wants) != 0 {
			t.Errorf("%s: no threads %v", v.Name, wants)
		}
	}
}

// TestFullDefault: without a choice, the threads of the process that stopped the
// system, and what the processors ran.
func TestFullDefault(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	b := m.Dump(machine.Full)
	for _, c := range []struct {
		opt     Options
		process string
		threads int
	}{
		{Options{}, "report.exe", 0},
		{Options{Process: "acmesvc"}, "acmesvc.exe", 1},
		{Options{Process: "LEGACY32.EXE"}, "legacy32.exe", 2},
		{Options{Process: "0x5a8"}, "acmesvc.exe", 1},
		{Options{Process: "1448"}, "acmesvc.exe", 1},
		{Options{Process: fmt.Sprintf("%#x", m.Processes[0].EPROCESS)}, "System", len(m.Processes[0].Threads)},
		{Options{Thread: ptrTo(uint32(0x22c8))}, "legacy32.exe", 1},
	} {
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", b), c.opt)
		if inc.Process.Name != c.process || c.threads != 0 && len(inc.Threads) != c.threads {
			t.Errorf("%+v: process %q with %d threads, want %q with %d", c.opt, inc.Process.Name, len(inc.Threads), c.process, c.threads)
		}
		for i := range inc.Threads {
			if th := &inc.Threads[i]; c.opt.Process == "" && c.opt.Thread == nil && th.KernelInfo.CPU < 0 && th.KernelInfo.PID != 0x1f30 {
				t.Errorf("thread %x.%x is none of the process's and was not running", th.KernelInfo.PID, th.ID)
			}
		}
	}
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", b), Options{})
	running := 0
	for i := range inc.Threads {
		if inc.Threads[i].KernelInfo.CPU >= 0 {
			running++
		}
	}
	if running != len(m.CPUs) {
		t.Errorf("%d threads that ran, of %d processors", running, len(m.CPUs))
	}
	inc = analyze(t, nil, openBytes(t, "MEMORY.DMP", b), Options{Process: "nosuch"})
	if len(inc.Threads) != 0 || len(inc.Errors) != 1 || inc.Errors[0].Code != dump.OutOfRange {
		t.Errorf("no such process: %d threads, %v", len(inc.Threads), inc.Errors)
	}
}

func ptrTo[T any](v T) *T { return &v }

// TestFullKernelOnly: without user memory the kernel halves are whole, and the
// user halves say where they begin.
func TestFullKernelOnly(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.BitmapKernel)), Options{AllProcesses: true})
	for _, p := range m.Processes {
		for _, want := range p.Threads {
			th := threadOf(t, inc, want.ID)
			if want.Unreadable != "" || len(want.Kernel) == 0 {
				continue
			}
			wantHalf(t, fmt.Sprintf("%x.%x", p.PID, want.ID), th.Kernel, want.Kernel)
			if len(want.User) > 0 && (th.User == nil || len(th.User.Frames) == 0 || th.User.Frames[0].IP != want.User[0].PC) {
				t.Errorf("%x.%x: user half %+v", p.PID, want.ID, th.User)
			}
		}
	}
	for _, e := range inc.Errors {
		t.Errorf("damage: %v", e)
	}
}

// TestFullPair joins a user dump to the full kernel dump of its system, though
// another process stopped it.
func TestFullPair(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	kernel := openBytes(t, "MEMORY.DMP", m.Dump(machine.BitmapKernel)) // without user memory
	whole := openBytes(t, "other.dmp", m.Dump(machine.Full))
	p := whole.processByID(0x5a8)
	want := m.Processes[1].Threads[0]
	if p == nil || want.ID != 0x5b0 {
		t.Fatalf("process %+v, thread %#x", p, want.ID)
	}
	view := whole.ProcessView(p)
	first := want.User[0]
	user := &fake{process: dump.Process{PID: p.PID, HasPID: true, Name: p.Name}, modules: view.Modules(), memory: view.Memory(),
		threads: []dump.Thread{{ID: want.ID, TEB: want.TEB, Context: regsAt(first.PC, first.SP)}}}
	inc := analyze(t, user.user(t), kernel, Options{})
	if len(inc.Threads) != 1 || inc.Process.EPROCESS != p.EPROCESS || inc.Pairing == nil || len(inc.Pairing.Warnings) != 0 {
		t.Fatalf("%d threads of %+v, pairing %+v", len(inc.Threads), inc.Process, inc.Pairing)
	}
	th := &inc.Threads[0]
	wantHalf(t, "kernel", th.Kernel, want.Kernel)
	wantHalf(t, "user", th.User, want.User)
	if !th.Stitched {
		t.Errorf("not stitched: %+v", th.Seam)
	}
	if !kernel.Holds(0x5a8) || kernel.Holds(0x7777) || user.user(t).Holds(0x5a8) {
		t.Error("the kernel dump alone holds process 0x5a8, and none 0x7777")
	}
	stranger := &fake{process: dump.Process{PID: 0x7777, HasPID: true}}
	if _, err := Analyze(stranger.user(t), kernel, "given", Options{}); err == nil {
		t.Error("a process that the system does not have was paired")
	}
}

// TestFullARM64: without unwind data the chain of frame records leads through
// both halves.
func TestFullARM64(t *testing.T) {
	m := machine.Build(machine.WindowsARM)
	inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.CompleteRange)), Options{AllProcesses: true})
	for _, p := range m.Processes {
		for _, want := range p.Threads {
			th := threadOf(t, inc, want.ID)
			wantHalf(t, fmt.Sprintf("%x.%x kernel", p.PID, want.ID), th.Kernel, want.Kernel)
			if want.User != nil {
				wantHalf(t, fmt.Sprintf("%x.%x user", p.PID, want.ID), th.User, want.User)
			}
			if th.Stitched != (want.User != nil) {
				t.Errorf("%x.%x: stitched %v", p.PID, want.ID, th.Stitched)
			}
		}
	}
}

// TestSameProcessOfASystem: a user dump goes with the dump of a system that has its
// process, whichever process stopped the system.
func TestSameProcessOfASystem(t *testing.T) {
	system := openBytes(t, "MEMORY.DMP", machine.Build(machine.Windows22H2).Dump(machine.Full))
	for _, c := range []struct {
		process dump.Process
		want    bool
	}{
		{dump.Process{PID: 0x1f30, HasPID: true}, true},  // stopped it
		{dump.Process{PID: 0x5a8, HasPID: true}, true},   // another
		{dump.Process{PID: 0x9999, HasPID: true}, false}, // none of it
		{dump.Process{}, true},                           // not known
	} {
		user := (&fake{process: c.process}).at(t, "app.dmp")
		if a, b := SameProcess(user, system), SameProcess(system, user); a != c.want || b != c.want {
			t.Errorf("process %#x: %v, and the other way round %v, want %v", c.process.PID, a, b, c.want)
		}
	}
}
