package kdump

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// kinds are the dumps that are written of every machine, and whether they hold
// user memory.
var kinds = map[machine.Kind]bool{machine.Full: true, machine.Summary: false, machine.BitmapFull: true, machine.BitmapKernel: false,
	machine.KernelRange: false, machine.KernelActive: true, machine.CompleteRange: true}

// TestMachines reads dumps of every kind of every machine that the separate
// writer builds, and finds what it put in.
func TestMachines(t *testing.T) {
	for _, v := range machine.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			m := machine.Build(*v)
			for kind, user := range kinds {
				f := openBytes(t, m.Dump(kind))
				name := fmt.Sprintf("kind %d", kind)
				checkMachineProcesses(t, name, f, m, user)
				checkMachineThreads(t, name, f, m)
				checkMachineModules(t, name, f, m)
				if user {
					checkProbes(t, name, f, m)
				}
				for _, e := range f.Damage() {
					t.Errorf("%s: damage: %v", name, e)
				}
				if mode, how := f.PageTables(); how != "header" {
					t.Errorf("%s: tables %q by %q", name, mode, how)
				}
			}
		})
	}
}

func checkMachineProcesses(t *testing.T, name string, f *File, m *machine.Machine, user bool) {
	t.Helper()
	byEPROCESS := map[uint64]*dump.Process{}
	for i, p := range f.Processes() {
		byEPROCESS[p.EPROCESS] = &f.Processes()[i]
	}
	for _, want := range m.Processes {
		p := byEPROCESS[want.EPROCESS]
		if p == nil {
			t.Errorf("%s: %s (%d) was not found", name, want.Name, want.PID)
			continue
		}
		if p.PID != want.PID || p.ParentPID != want.Parent || p.Name != want.Name || p.PEB != want.PEB || p.DirBase != f.pageTableRoot(want.DirBase) {
			t.Errorf("%s: %s is %+v", name, want.Name, p)
		}
		if !p.Created.IsZero() && !p.Created.Equal(want.Created) {
			t.Errorf("%s: %s created %v, want %v", name, want.Name, p.Created, want.Created)
		}
		if m.Arch == machine.AMD64 && p.Wow64 != (want.PEB32 != 0) {
			t.Errorf("%s: %s wow64 %v", name, want.Name, p.Wow64)
		}
		if !user {
			continue
		}
		if cmd := f.CommandLine(p); cmd != want.CommandLine {
			t.Errorf("%s: %s command line %q, want %q", name, want.Name, cmd, want.CommandLine)
		}
		var got, wants []string
		for _, mod := range f.View(p).Modules() {
			got = append(got, fmt.Sprintf("%x %x %x %s", mod.Base, mod.Size, mod.TimeDateStamp, mod.Path))
		}
		for _, mod := range slices.Concat(want.Modules, want.Modules32) {
			wants = append(wants, fmt.Sprintf("%x %x %x %s", mod.Base, mod.Size, mod.Stamp, mod.Path))
		}
		slices.Sort(got)
		slices.Sort(wants)
		if !slices.Equal(got, slices.Compact(wants)) {
			t.Errorf("%s: %s modules\n%s\nwant\n%s", name, want.Name, strings.Join(got, "\n"), strings.Join(wants, "\n"))
		}
	}
	if len(byEPROCESS) != len(m.Processes) {
		t.Errorf("%s: %d processes, want %d", name, len(byEPROCESS), len(m.Processes))
	}
}

func checkMachineThreads(t *testing.T, name string, f *File, m *machine.Machine) {
	t.Helper()
	found := map[uint64]*dump.Thread{}
	for i := range f.Threads() {
		found[f.threads[i].Kernel.ETHREAD] = &f.threads[i]
	}
	for _, p := range m.Processes {
		for _, want := range p.Threads {
			th := found[want.ETHREAD]
			if th == nil {
				t.Errorf("%s: thread %x.%x was not found", name, p.PID, want.ID)
				continue
			}
			k := th.Kernel
			if th.ID != want.ID || k.PID != p.PID || k.EPROCESS != p.EPROCESS || th.TEB != want.TEB || k.State != want.State || k.CPU != want.CPU ||
				k.StackBase != want.StackBase || k.StackLimit != want.StackLimit || k.InitialStack != want.InitialStack {
				t.Errorf("%s: thread %x.%x is %+v %+v", name, p.PID, want.ID, th, k)
			}
			if len(want.Kernel) == 0 || want.Unreadable != "" {
				continue
			}
			frame := want.Kernel[0]
			pc, sp := pcsp(&th.Context)[0], pcsp(&th.Context)[1]
			if pc != frame.PC || sp != frame.SP {
				t.Errorf("%s: thread %x.%x stands at %#x, %#x (%d, %s), want %#x, %#x", name, p.PID, want.ID, pc, sp, th.ContextSource, k.Note, frame.PC, frame.SP)
			}
		}
	}
}

func checkMachineModules(t *testing.T, name string, f *File, m *machine.Machine) {
	t.Helper()
	var got, want []string
	for _, mod := range f.Modules() {
		got = append(got, fmt.Sprintf("%x %x %x %s", mod.Base, mod.Size, mod.TimeDateStamp, mod.Path))
	}
	for _, mod := range m.Drivers {
		want = append(want, fmt.Sprintf("%x %x %x %s", mod.Base, mod.Size, mod.Stamp, mod.Path))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: drivers\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkProbes reads pages whose entries are of every kind.
func checkProbes(t *testing.T, name string, f *File, m *machine.Machine) {
	t.Helper()
	for _, p := range m.Probes {
		mem := f.Memory()
		if p.Process != nil {
			mem = f.processSpace(&dump.Process{EPROCESS: p.Process.EPROCESS, DirBase: p.Process.DirBase})
		}
		b := make([]byte, max(len(p.Data), 16))
		_, err := mem.ReadAt(b, p.VA)
		var pe *PageError
		switch {
		case p.Data != nil && (err != nil || !bytes.Equal(b, p.Data)):
			t.Errorf("%s: %s: %#x: %v", name, p.Why, p.VA, err)
		case p.Data == nil && (!errors.As(err, &pe) || pe.State < PageDemandZero):
			t.Errorf("%s: %s: %#x: %v", name, p.Why, p.VA, err)
		}
		page := mem.(interface{ Page(va uint64) Page }).Page(p.VA)
		if p.State != "" && (page.State.Key() != p.State || pe != nil && pe.State != page.State || page.File() != p.File) {
			t.Errorf("%s: %s: %#x is %s, file %q, want %s %q (%v)", name, p.Why, p.VA, page.Describe(), page.File(), p.State, p.File, err)
		}
		if place := page.PageFile; p.Offset != 0 && (place == nil || place.Offset != p.Offset || place.Number >= 0 && place.Number != p.PageFile) {
			t.Errorf("%s: %s: %#x: %+v, want %#x of file %d", name, p.Why, p.VA, place, p.Offset, p.PageFile)
		}
	}
}
