package kdump

import (
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestMachineHandles lists the handles of the program on every machine.
func TestMachineHandles(t *testing.T) {
	for _, v := range machine.Variants() {
		m := machine.Build(*v)
		f := openBytes(t, m.Dump(machine.BitmapKernel))
		for _, want := range m.Processes {
			i := slices.IndexFunc(f.Processes(), func(p dump.Process) bool { return p.EPROCESS == want.EPROCESS })
			got := f.View(&f.Processes()[i]).Handles()
			if len(got) != len(want.Handles) || (got == nil) != (want.Handles == nil) {
				t.Errorf("%s: %s has the handles %+v, want %+v", v.Name, want.Name, got, want.Handles)
				continue
			}
			if n, ok := f.HandleCount(&f.Processes()[i]); ok != (want.Handles != nil) || n != len(want.Handles) {
				t.Errorf("%s: %s has %d handles (%v), want %d", v.Name, want.Name, n, ok, len(want.Handles))
			}
			for i, h := range want.Handles {
				g := got[i]
				if g.Value != uint64(h.Value) || g.Object != h.Object || g.Type != h.Type || g.Access != h.Access || h.Name != "" && g.Name != h.Name {
					t.Errorf("%s: handle %+v, want %+v", v.Name, g, h)
				}
			}
		}
	}
}

// TestHandleTableInPart: a page of the table is paged out. What the other names
// is listed, how many there are is not known, and that is said.
func TestHandleTableInPart(t *testing.T) {
	for _, gone := range []bool{false, true} {
		s := newSystem()
		const table, pages = 0xffffe00000100000, 0xffffe00000200000
		s.ku64(appProcess+0x570, table)
		s.ku64(table+8, pages|1)
		for i := range uint64(2) { // two pages of one handle each, to the thread and to the process
			page := pages + (i+1)<<12
			s.ku64(pages+8*i, page)
			s.ku64(page+16, ([]uint64{appThread, appProcess}[i]-0x30)>>4<<20|1)
			if i == 1 && gone {
				s.setEntry(s.pte(s.root, page), 0x1234<<32|2<<12|4<<5)
			}
		}
		f := openBytes(t, s.build())
		app := &f.Processes()[1]
		handles := f.View(app).Handles()
		n, whole := f.HandleCount(app)
		if !gone {
			if len(handles) != 2 || handles[0].Value != 4 || handles[1].Value != 0x404 || n != 2 || !whole {
				t.Errorf("handles %+v, %d, %v", handles, n, whole)
			}
			wantNoDamage(t, f)
			continue
		}
		if len(handles) != 1 || handles[0].Value != 4 || whole {
			t.Errorf("with a page paged out: handles %+v, %d, %v", handles, n, whole)
		}
		if d := f.Damage(); len(d) == 0 || !d[0].Warning || d[0].Stream != handleStream || !strings.Contains(d[0].Msg, "1 of 3 pages") {
			t.Errorf("damage %v", d)
		}
	}
}
