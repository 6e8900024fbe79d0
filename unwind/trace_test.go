package unwind

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
)

// The notes of one step say what was read where. The function saves rsi at
// [rsp+0x38], allocates 0x20 bytes and pushes rbx.
func TestExplain(t *testing.T) {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1, 9, 4, 0, 9, 0x64, 7, 0, 5, 0x32, 1, 0x30}, nil)
	ret := s.callAt(0x1180)
	s.poke(sp0+0x20, 0xbb, ret) // saved rbx, return address
	s.poke(sp0+0x38, 0x51)      // rsi, in the home area above
	st, notes := s.walker().Explain(at(imageBase+0x1150, sp0), stackBounds, 1)
	if len(st.Frames) < 2 || st.Frames[1].IP != ret {
		t.Fatalf("%+v", st)
	}
	want := []Note{
		{Kind: NoteSite, Rule: MethodPdata, Addr: imageBase + 0x1150, Module: "app.exe", Base: imageBase, HasEntry: true, Entry: s.image.table[0], Detail: siteText[sitePdata]},
		{Kind: NoteEpilog, Rule: MethodEpilog, Detail: "the code here is no epilog"},
		{Kind: NoteUndo, Op: "save", Reg: dump.RSI, Addr: sp0 + 0x38, Value: 0x51, Known: true, SP: sp0},
		{Kind: NoteUndo, Op: "alloc", Addr: sp0, Value: 0x20, Known: true, SP: sp0 + 0x20},
		{Kind: NoteUndo, Op: "pop", Reg: dump.RBX, Addr: sp0 + 0x20, Value: 0xbb, Known: true, SP: sp0 + 0x28},
		{Kind: NoteReturn, Rule: MethodPdata, Addr: sp0 + 0x28, Value: ret, Known: true, SP: sp0 + 0x30},
	}
	if !reflect.DeepEqual(notes, want) {
		t.Errorf("%+v\nwant %+v", notes, want)
	}
}

// Where better rules failed, the notes say why, in the order of the rules.
func TestExplainFallback(t *testing.T) {
	s := bare()
	s.poke(sp0+8, imageBase+0x1333) // code, but no CALL before it
	s.poke(sp0+0x20, s.callAt(0x1580))
	r := at(jitPage+0x10, sp0)
	r.Set(dump.RBP, 0x1c)
	_, notes := s.walker().Explain(r, stackBounds, 1)
	want := []struct {
		kind   NoteKind
		rule   Method
		detail string
	}{
		{NoteSite, MethodNone, "in no loaded module"},
		{NoteRejected, MethodDynamicTable, "lies in no module"},
		{NoteRejected, MethodRBP, "does not lead"},
		{NoteCandidate, MethodScan, "no CALL"},
		{NoteReturn, MethodScan, ""},
	}
	for i, n := range notes {
		if i >= len(want) || n.Kind != want[i].kind || n.Rule != want[i].rule || !strings.Contains(n.Detail, want[i].detail) {
			t.Errorf("note %d: %+v", i, n)
		}
	}
	if len(notes) != len(want) {
		t.Errorf("%d notes, want %d", len(notes), len(want))
	}
}

// Looking does not change what is seen: for every frame of some stacks, and
// the end of each, Explain walks as Walk does and has something to say.
func TestExplainChangesNothing(t *testing.T) {
	d, _ := jitScene()
	d.poke(sp0+0x18, jitPage+0x23)
	d.poke(sp0+0x38, jitPage+0x55)
	d.poke(sp0+0x80, sp0+0xc0, jitPage+0x155)
	d.poke(sp0+0xc0, sp0+0x100, jitPage+0x255)
	d.poke(sp0+0x100, sp0+0x180, jitPage+0x1aa)
	d.poke(sp0+0x180, 0x1c, d.callAt(0x1540))
	for _, ip := range []uint64{noImageBase + 0x2000, imageBase + 0x1150, imageBase + 0x1300, jitPage + 0x10, 0} {
		w := newWalker(d, dump.AMD64, d.walker().find)
		plain := w.Walk(at(ip, sp0), stackBounds)
		for n := 1; n <= len(plain.Frames); n++ {
			st, notes := w.Explain(at(ip, sp0), stackBounds, n)
			if !reflect.DeepEqual(st, plain) {
				t.Errorf("%#x, frame %d: %+v, without looking %+v", ip, n, st, plain)
			}
			if len(notes) == 0 {
				t.Errorf("%#x, frame %d: no notes", ip, n)
			}
		}
		if w.trace != nil {
			t.Error("the trace stays on")
		}
	}
}

// Looking changes nothing on x86 and ARM64 either, and every step says where it
// stands and what it read. On x86 three frames are chained by ebp and a fourth is
// found by a scan; on ARM64, in a module without an image, by x29 and by a scan.
func TestExplainOtherMachines(t *testing.T) {
	x86 := space86()
	x86.poke32(esp0+0x20, esp0+0x40, uint32(x86.callAt(0x1540)))
	x86.poke32(esp0+0x40, 3, uint32(x86.callAt(0x1580)))
	x86.poke32(esp0+0x60, uint32(x86.callAt(0x15c0)))
	arm := bare()
	arm.put(0x1540-4, 0, 0, 0, 0x94) // bl
	arm.put(0x1580-4, 0, 0, 0, 0x94)
	arm.poke(sp0+0x20, sp0+0x40, imageBase+0x1540)
	arm.poke(sp0+0x40, 3, 5, 0, imageBase+0x1580)
	armRegs := dump.Registers{Arch: dump.ARM64}
	armRegs.SetPC(noImageBase + 0x2000)
	armRegs.SetSP(sp0)
	armRegs.Set(dump.ARM64FP, sp0+0x20)
	for _, c := range []struct {
		s      *space
		regs   dump.Registers
		frames int
	}{{x86, regs86(exeBase+0x1300, esp0, esp0+0x20), 4}, {arm, armRegs, 3}} {
		arch := c.regs.Arch
		plain := c.s.walkerFor(arch).Walk(c.regs, stackBounds)
		if len(plain.Frames) != c.frames {
			t.Fatalf("%s: %+v, want %d frames", arch, plain, c.frames)
		}
		for n := 1; n <= len(plain.Frames); n++ {
			st, notes := c.s.walkerFor(arch).Explain(c.regs, stackBounds, n)
			if !reflect.DeepEqual(st, plain) {
				t.Errorf("%s, frame %d: %+v, without looking %+v", arch, n, st, plain)
			}
			if len(notes) < 2 || notes[0].Kind != NoteSite {
				t.Errorf("%s, frame %d: %+v", arch, n, notes)
			}
			if n == len(plain.Frames) {
				continue
			}
			f := plain.Frames[n]
			if !slices.ContainsFunc(notes, func(x Note) bool { return x.Kind == NoteReturn && x.Value == f.IP && x.SP == f.SP && x.Addr != 0 }) {
				t.Errorf("%s, frame %d: no return address among %+v", arch, n, notes)
			}
			if f.Method == MethodScan && !slices.ContainsFunc(notes, func(x Note) bool { return x.Kind == NoteRejected }) {
				t.Errorf("%s, frame %d: a scan, and no word on why: %+v", arch, n, notes)
			}
		}
	}
}
