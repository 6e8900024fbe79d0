package kdump

import (
	"fmt"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestHiddenProcesses takes processes out of one register of the kernel, out of
// the other, out of both.
func TestHiddenProcesses(t *testing.T) {
	for _, v := range []machine.Variant{machine.Windows7, machine.Windows24H2, machine.WindowsLA57} {
		for _, tt := range []struct {
			hide, forget bool
			want         string // how it is found and its state
		}{
			{want: "list+cid_table  scanned 0"},
			{hide: true, want: "cid_table unlisted scanned 0"},
			{forget: true, want: "list no_id scanned 0"},
			{hide: true, forget: true, want: "scan unlisted scanned 1"},
		} {
			m := machine.Build(v)
			p := m.Processes[len(m.Processes)-1]
			if tt.hide {
				m.Hide(p)
			}
			if tt.forget {
				m.Forget(p)
			}
			f := openBytes(t, m.Dump(machine.BitmapFull))
			scanned := f.ScanProcesses()
			got := "not found"
			for _, q := range append(scanned, f.Processes()...) {
				ordinary := dump.ProcessActive
				if !q.Exited.IsZero() {
					ordinary = dump.ProcessEnded
				}
				if q.EPROCESS == p.EPROCESS {
					got = fmt.Sprintf("%s %s scanned %d", q.How, q.State, len(scanned))
				} else if q.State != ordinary {
					t.Errorf("%s: %s is %q", v.Name, q.Name, q.State)
				}
			}
			if got != tt.want {
				t.Errorf("%s, hidden %v, forgotten %v: %q, want %q", v.Name, tt.hide, tt.forget, got, tt.want)
			}
		}
	}
}

// TestProcessesOfBrokenRegisters: what a damaged register lacks says nothing.
func TestProcessesOfBrokenRegisters(t *testing.T) {
	m := machine.Build(machine.Windows24H2)
	last := m.Processes[len(m.Processes)-1]
	m.Kernel.U64(last.EPROCESS+m.Offsets()["EPROCESS.ActiveProcessLinks"], 0)
	m.Kernel.U64(m.Processes[2].EPROCESS+m.Offsets()["EPROCESS.ActiveProcessLinks"], 0)
	f := openBytes(t, m.Dump(machine.BitmapFull))
	for _, p := range f.Processes() {
		if p.State == dump.ProcessUnlisted || p.State == dump.ProcessWithout {
			t.Errorf("%s is %q", p.Name, p.State)
		}
	}
	if len(f.Processes()) != len(m.Processes) || len(f.Damage()) == 0 {
		t.Errorf("%d processes, damage %v", len(f.Processes()), f.Damage())
	}
}
