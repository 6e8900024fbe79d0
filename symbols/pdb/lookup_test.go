package pdb

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"
)

// everything is a module with each kind of code record.
func everything() image {
	site := symbol(0x114D, func(w *writer) {
		// Two rows: [4,9) at line +2, [9,12) at line +3: "code and line" with delta 4 and
		// line 2 (2<<1<<4 | 4), then delta 5 and line 1 (1<<1<<4 | 5), then a length of 3.
		w.u32(0, 0, 0x1001).u8(11, 0x44, 11, 0x25, 4, 3)
	})
	cold := symbol(0x114D, func(w *writer) {
		// In the function's separated chunk 1: [2,6), line +7.
		w.u32(0, 0, 0x1001).u8(2, 1, 6, 14, 3, 2, 4, 4)
	})
	end := symbol(0x114E, func(*writer) {})
	var s []byte
	s = append(s, proc(0x100, 0x40, "hot", slices.Concat(site, end, cold, end))...)
	s = append(s, symbol(0x1132, func(w *writer) { w.u32(0, 0, 0x20, 0, 0x800, 0x100).u16(1, 1) })...)
	s = append(s, symbol(0x0006, func(*writer) {})...)
	s = append(s, symbol(0x1102, func(w *writer) { w.u32(0, 0, 0, 0x140).u16(1, 6).u8(0).str("jump") })...)
	s = append(s, symbol(0x0006, func(*writer) {})...)
	s = append(s, symbol(0x112C, func(w *writer) { w.u16(0, 5).u32(0x150, 0x100).u16(1, 1) })...)
	s = append(s, symbol(0x1105, func(w *writer) { w.u32(0x160).u16(1).u8(0).str("label") })...)
	return image{
		symbols: s,
		names:   []string{`c:\a.c`, `c:\b.h`}, // at 1 and 8
		c13: slices.Concat(checksum(1, 8),
			lineRows(0x100, 0x40, 0, [2]uint32{0, 10}, [2]uint32{4, 12}, [2]uint32{12, 13}, [2]uint32{0x30, 0xF00F00}),
			subsection(0xF6, bytesOf(func(w *writer) { w.u32(0, 0x1001, 8, 100) }))),
		ids: [][]byte{
			symbol(0x1605, func(w *writer) { w.u32(0).str("outer::space") }),
			symbol(0x1601, func(w *writer) { w.u32(0x1000, 0).str("inlined") }),
		},
		publics: []testPublic{
			{0x100, "?hot@@YAXXZ", 2}, {0x170, "?first@@3HA", 0}, {0x170, "?second@@YAXXZ", 2}, {0x900, "?far@@YAXXZ", 2},
		},
		contribs: [][2]uint32{{0x100, 0x100}, {0x800, 0x20}, {0x900, 0x10}, {0x920, 0x10}},
	}
}

func TestLookupKinds(t *testing.T) {
	f := openBuilt(t, everything())
	inlined := func(line uint32) []Inline { return []Inline{{"outer::space::inlined", `c:\b.h`, line}} }
	for _, c := range []struct {
		rva  uint32
		want Location
	}{
		{0x1100, Location{Function: "hot", FunctionRVA: 0x1100, Size: 0x40, File: `c:\a.c`, Line: 10, Source: SourceProc}},
		{0x1104, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 4, Size: 0x40, File: `c:\a.c`, Line: 12, Source: SourceProc, Inlines: inlined(102)}},
		{0x1108, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 8, Size: 0x40, File: `c:\a.c`, Line: 12, Source: SourceProc, Inlines: inlined(102)}},
		{0x110B, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 11, Size: 0x40, File: `c:\a.c`, Line: 12, Source: SourceProc, Inlines: inlined(103)}},
		{0x110C, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 12, Size: 0x40, File: `c:\a.c`, Line: 13, Source: SourceProc}},
		{0x1130, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 0x30, Size: 0x40, Source: SourceProc}}, // a hidden line is none
		{0x1801, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 0x701, Size: 0x40, Source: SourceProc}},
		{0x1802, Location{Function: "hot", FunctionRVA: 0x1100, Offset: 0x702, Size: 0x40, Source: SourceProc, Inlines: inlined(107)}},
		{0x1141, Location{Function: "jump", FunctionRVA: 0x1140, Offset: 1, Size: 6, Source: SourceThunk}},
		{0x1152, Location{FunctionRVA: 0x1150, Offset: 2, Size: 5, Source: SourceTrampoline}},
		{0x1168, Location{Function: "label", FunctionRVA: 0x1160, Offset: 8, Source: SourceLabel}},
		{0x1175, Location{Function: "?second@@YAXXZ", FunctionRVA: 0x1170, Offset: 5, Source: SourcePublic, SamePiece: true}}, // the function of two
		{0x1907, Location{Function: "?far@@YAXXZ", FunctionRVA: 0x1900, Offset: 7, Source: SourcePublic, SamePiece: true}},
	} {
		c.want.Module = "a.obj"
		if got := lookup(t, f, c.rva); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#x:\n got %+v\nwant %+v", c.rva, got, c.want)
		}
	}
	// 0x1922 is another contribution than ?far's: what is below does not reach it.
	for _, rva := range []uint32{0, 0xFFF, 0x1922, 0x3000, 0xFFFFFFFF} {
		if loc, ok := f.Lookup(rva); ok {
			t.Errorf("%#x: %+v", rva, loc)
		}
	}
	if d := f.Damage(); len(d) > 0 {
		t.Error("damage:", d)
	}
}

// Assembler has public symbols, and labels that are places inside its functions: a
// label names an address only where nothing else does.
func TestLabelsComeLast(t *testing.T) {
	label := func(at uint32, name string) []byte {
		return symbol(0x1105, func(w *writer) { w.u32(at).u16(1).u8(0).str(name) })
	}
	f := openBuilt(t, image{
		symbols:  slices.Concat(label(0x208, "alone"), label(0x310, "table"), label(0x320, "exit")),
		publics:  []testPublic{{0x300, "compare", 2}},
		contribs: [][2]uint32{{0x200, 0x80}, {0x300, 0x80}},
	})
	for _, c := range []struct {
		rva  uint32
		want Location
	}{
		{0x1210, Location{Function: "alone", FunctionRVA: 0x1208, Offset: 8, Source: SourceLabel}},
		{0x1304, Location{Function: "compare", FunctionRVA: 0x1300, Offset: 4, Source: SourcePublic, SamePiece: true}},
		{0x1310, Location{Function: "compare", FunctionRVA: 0x1300, Offset: 0x10, Source: SourcePublic, SamePiece: true}},
		{0x1333, Location{Function: "compare", FunctionRVA: 0x1300, Offset: 0x33, Source: SourcePublic, SamePiece: true}},
	} {
		c.want.Module = "a.obj"
		if got := lookup(t, f, c.rva); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#x:\n got %+v\nwant %+v", c.rva, got, c.want)
		}
	}
}

// What an index skips inside a procedure is found all the same: its end is proved
// by the record there. An end that is none, or lies before, is not followed.
func TestEndsOfProcedures(t *testing.T) {
	const signature = 4 // before the records, and offsets count it
	var ends, last uint32
	for at := uint32(0); at < uint32(len(everything().symbols)); {
		r := everything().symbols[at:]
		if last = at; ends == 0 && binary.LittleEndian.Uint16(r[2:]) == 0x0006 {
			ends = at
		}
		at += uint32(binary.LittleEndian.Uint16(r)) + 2
	}
	for _, end := range []uint32{ends + signature, 0, 4, 8, last + signature, last + signature + 1, 0xFFFFFFFF, 0xFFFFFFFC} {
		im := everything()
		binary.LittleEndian.PutUint32(im.symbols[8:], end) // behind length, kind and parent
		f := openBuilt(t, im)
		for rva, want := range map[uint32]string{0x1101: "hot", 0x1810: "hot", 0x1141: "jump", 0x1168: "label"} {
			if got := lookup(t, f, rva); got.Function != want {
				t.Errorf("end %#x: %#x is %q, want %q", end, rva, got.Function, want)
			}
		}
		if got := lookup(t, f, 0x1104); len(got.Inlines) != 1 {
			t.Errorf("end %#x: %d inlined", end, len(got.Inlines))
		}
	}
}

// Rearranged: the code from 0x1100 to 0x1180 moved to 0x2100, and 0x1180 on was
// dropped; 0x2000 to 0x2100 was added.
func TestOMAP(t *testing.T) {
	im := everything()
	im.debug = map[int][]byte{
		debugOmapToSource:     bytesOf(func(w *writer) { w.u32(0x2000, 0, 0x2100, 0x1100, 0x2180, 0) }),
		debugOmapFromSource:   bytesOf(func(w *writer) { w.u32(0x1100, 0x2100, 0x1180, 0) }),
		debugSectionsOriginal: section(".text", 0x1000, 0x2000),
	}
	f := openBuilt(t, im)
	if !f.Rearranged() {
		t.Error("not seen as rearranged")
	}
	want := Location{Function: "hot", FunctionRVA: 0x2100, Offset: 4, Size: 0x40, File: `c:\a.c`, Line: 12, Source: SourceProc, Module: "a.obj",
		Inlines: []Inline{{"outer::space::inlined", `c:\b.h`, 102}}}
	if got := lookup(t, f, 0x2104); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, rva := range []uint32{0x1104, 0x2050, 0x2190} {
		if loc, ok := f.Lookup(rva); ok {
			t.Errorf("%#x: %+v", rva, loc)
		}
	}
	var publics []uint32
	for p := range f.Publics() {
		publics = append(publics, p.RVA)
	}
	if want := []uint32{0x2100, 0x2170, 0x2170}; !slices.Equal(publics, want) { // ?far was dropped
		t.Errorf("publics at %#x, want %#x", publics, want)
	}
}

// An FPO record: 0x30 bytes at 0x1100, 2 locals, 3 parameters, a prolog of 5
// bytes, 2 saved registers, with SEH and ebp in use.
func TestFPO(t *testing.T) {
	f := openBuilt(t, image{debug: map[int][]byte{
		debugFPO: bytesOf(func(w *writer) { w.u32(0x1100, 0x30, 2).u16(3, 5|2<<8|1<<11|1<<12|1<<14) }),
	}})
	want := FrameData{RVA: 0x1100, Size: 0x30, LocalSize: 8, ParamSize: 12, PrologSize: 5, SavedRegsSize: 8, HasSEH: true, UsesEBP: true, FunctionStart: true, FPO: FPOTrap}
	if got, ok := f.FrameData(0x112F); !ok || got != want {
		t.Errorf("got %+v %v", got, ok)
	}
	if got, ok := f.FrameData(0x1130); ok {
		t.Errorf("behind it: %+v", got)
	}
}

func TestFlavours(t *testing.T) {
	if i := openBuilt(t, image{flags: 2}).Info(); !i.Stripped || i.Increments {
		t.Errorf("stripped: %+v", i)
	}
	if i := openBuilt(t, image{flags: 1, features: []uint32{20140508, 0x494E494D}}).Info(); !i.FastLink || !i.Increments {
		t.Errorf("FASTLINK: %+v", i)
	}
	i := openBuilt(t, image{features: []uint32{20140508}}).Info()
	if i.FastLink || i.Stripped || i.Age != 3 || i.InfoAge != 1 || i.Stamp != 0x5F000000 || string(i.GUID[:]) != "0123456789abcdef" {
		t.Errorf("plain: %+v", i)
	}
}
