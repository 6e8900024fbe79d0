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
// stands and what it read.
func TestExplainOtherMachines(t *testing.T) {
	for _, c := range []struct {
		arch dump.Arch
		pc   uint64
		fp   uint64
	}{{dump.X86, exeBase + 0x1140, sp0 + 0x40}, {dump.X86, exeBase + 0x1140, 3}, {dump.X86, 0x500000, sp0 + 0x40}, {dump.ARM64, noImageBase + 0x2000, sp0 + 0x40}, {dump.ARM64, noImageBase + 0x2000, 3}} {
		s := bare()
		fillStack(s, []byte{1, 0x21, 8, 3, 0x85, 1}, c.arch)
		regs := dump.Registers{Arch: c.arch}
		regs.SetPC(c.pc)
		regs.SetSP(sp0)
		regs.Set(c.arch.FPReg(), c.fp)
		w := s.walkerFor(c.arch)
		plain := w.Walk(regs, stackBounds)
		for n := 1; n <= len(plain.Frames); n++ {
			st, notes := s.walkerFor(c.arch).Explain(regs, stackBounds, n)
			if !reflect.DeepEqual(st, plain) {
				t.Errorf("%s %#x, frame %d: %+v, without looking %+v", c.arch, c.pc, n, st, plain)
			}
			if len(notes) < 2 || notes[0].Kind != NoteSite {
				t.Errorf("%s %#x, frame %d: %+v", c.arch, c.pc, n, notes)
			}
			if n < len(plain.Frames) && !slices.ContainsFunc(notes, func(x Note) bool {
				return x.Kind == NoteReturn && x.Value == plain.Frames[n].IP && x.SP == plain.Frames[n].SP
			}) {
				t.Errorf("%s %#x, frame %d: no return address among %+v", c.arch, c.pc, n, notes)
			}
		}
	}
}
