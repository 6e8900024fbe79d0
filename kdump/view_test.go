package kdump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestModulesByVAD: where the loader's lists are not in the dump, or are paged out,
// the images that the processes mapped are known all the same.
func TestModulesByVAD(t *testing.T) {
	for _, v := range machine.Variants() {
		for _, kind := range []machine.Kind{machine.Summary, machine.KernelRange, machine.Full} {
			m := machine.Build(*v)
			state := "not_in_dump"
			if kind == machine.Full {
				state = "paged_out"
				for _, p := range m.Processes {
					if p.PEB != 0 {
						p.Space.Evict(p.PEB&^0xfff, m.Paging.PagedOut(1, 0x77))
					}
					if p.PEB32 != 0 {
						p.Space.Evict(p.PEB32, m.Paging.PagedOut(1, 0x78))
					}
				}
			}
			f := openBytes(t, m.Dump(kind))
			for i, want := range m.Processes {
				name := fmt.Sprintf("%s, kind %d, %s", v.Name, kind, want.Name)
				checkMapped(t, name, f.View(&f.Processes()[slices.IndexFunc(f.Processes(), func(p dump.Process) bool { return p.EPROCESS == m.Processes[i].EPROCESS })]), want, state)
			}
			wantNoDamage(t, f)
		}
	}
}

func checkMapped(t *testing.T, name string, v *View, want *machine.Process, state string) {
	t.Helper()
	if want.PEB == 0 {
		if len(v.Modules()) != 0 || v.Unreadable() != "" || v.ListMissing() != "" {
			t.Errorf("%s: %d modules, %s, %s", name, len(v.Modules()), v.Unreadable(), v.ListMissing())
		}
		return
	}
	if v.Unreadable() != state || !strings.Contains(v.ListMissing(), map[string]string{"not_in_dump": "not in the dump", "paged_out": "paged out"}[state]) {
		t.Errorf("%s: %s, %s", name, v.Unreadable(), v.ListMissing())
	}
	var got, wants []string
	for _, m := range v.Modules() {
		got = append(got, fmt.Sprintf("%x %x %v %s", m.Base, m.Size, m.Mapped, m.Path))
	}
	for _, r := range want.Views {
		if r.Type == "image" {
			wants = append(wants, fmt.Sprintf("%x %x true %s", r.First, r.Last-r.First+1, r.File))
		}
	}
	if !slices.Equal(got, wants) || len(got) < 2 {
		t.Errorf("%s: modules\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(wants, "\n"))
	}
}

// TestModulesOffTheList: an image that a process mapped and took off its loader's
// list is found beside those that are on it.
func TestModulesOffTheList(t *testing.T) {
	for _, v := range machine.Variants() {
		m := machine.Build(*v)
		p := m.Processes[slices.IndexFunc(m.Processes, func(p *machine.Process) bool { return p.Name == "report.exe" })]
		last := len(p.Modules) - 1
		m.Unlink(p, last)
		f := openBytes(t, m.Dump(machine.Full))
		i := slices.IndexFunc(f.Processes(), func(q dump.Process) bool { return q.EPROCESS == p.EPROCESS })
		mods := f.View(&f.Processes()[i]).Modules()
		if len(mods) != len(p.Modules) {
			t.Fatalf("%s: %d modules", v.Name, len(mods))
		}
		for _, got := range mods {
			want := p.Modules[slices.IndexFunc(p.Modules, func(m *machine.Module) bool { return m.Base == got.Base })]
			if off := want == p.Modules[last]; got.Mapped != off || got.TimeDateStamp != want.Stamp || got.CodeView.Signature != "RSDS" {
				t.Errorf("%s: %+v, want %+v", v.Name, got, want)
			}
		}
	}
}

// TestMappedImagesFit: what describes more than an image can have, or memory of the
// kernel, is none.
func TestMappedImagesFit(t *testing.T) {
	for _, c := range []struct {
		ptr         int
		first, last uint64 // pages
		want        bool
	}{
		{8, 0x7ff6_0000_0, 0x7ff6_0000_f, true},
		{8, 0x1_0000, 0x10_ffff, true}, // 4 GB
		{8, 0x1_0000, 0x11_0000, false},
		{8, 0, 1<<52 - 1, false}, // its size would be 0
		{8, 0xffff_f800_0000_0, 0xffff_f800_0000_f, false},
		{4, 0x400, 0x43f, true},
		{4, 0xb_fff0, 0xb_ffff, true}, // with /3GB
		{4, 0xb_fff0, 0xc_0000, false},
		{4, 0x10_0000, 0x10_000f, false}, // beyond 32 bits
	} {
		v := &View{File: &File{hdr: &header{headerLayout: &headerLayout{ptr: c.ptr}}}}
		if got := v.holdsImage(&vad{first: c.first, last: c.last}); got != c.want {
			t.Errorf("%d: pages %#x to %#x: %v", c.ptr, c.first, c.last, got)
		}
	}
	// One that ends at 4 PB is left out, the others are not.
	m := machine.Build(machine.Windows22H2)
	p := m.Processes[slices.IndexFunc(m.Processes, func(p *machine.Process) bool { return p.Name == "report.exe" })]
	m.Grow(p)
	f := openBytes(t, m.Dump(machine.Summary))
	i := slices.IndexFunc(f.Processes(), func(q dump.Process) bool { return q.EPROCESS == p.EPROCESS })
	mods := f.View(&f.Processes()[i]).Modules()
	for _, got := range mods {
		if got.Size > 1<<32 {
			t.Errorf("%#x bytes at %#x", got.Size, got.Base)
		}
	}
	if len(mods) == 0 {
		t.Error("the other images are gone, too")
	}
}

// TestHeaderOnlySays: the header alone is no damage, and no silence.
func TestHeaderOnlySays(t *testing.T) {
	for _, v := range machine.Variants() {
		f := openBytes(t, machine.Build(*v).Dump(machine.HeaderOnly))
		d := f.Damage()
		if len(d) != 1 || !d[0].Warning || !strings.Contains(d[0].Msg, "holds no memory") || len(f.Processes()) != 0 {
			t.Errorf("%s: %v, %d processes", v.Name, d, len(f.Processes()))
		}
	}
}
