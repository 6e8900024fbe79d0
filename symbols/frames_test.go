package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dumptriage/symbols/pdb"
	"dumptriage/symbols/sym"
)

// Programs as llvm-pdbutil prints them, in symbols/pdb/testdata/inline-x86.fpo.txt.
// The records of a function's parts do not say where it begins; its symbol does.
func TestPDBFrames(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("pdb", "testdata", "inline-x86.pdb"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := pdb.Open(bytes.NewReader(b), int64(len(b)), "inline-x86.pdb")
	if err != nil {
		t.Fatal(err)
	}
	p := PDB{f}
	text, err := os.ReadFile(filepath.Join("pdb", "testdata", "inline-x86.fpo.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for rva, line := range map[uint32]string{0x1000: "00001000 |", 0x100c: "00001003 |"} {
		_, rest, ok := strings.Cut(string(text), line)
		row := strings.Split(strings.SplitN(rest, "\n", 2)[0], "|")
		if !ok || len(row) < 10 {
			t.Fatalf("the text has no %q", line)
		}
		got := p.Frames(rva)
		if len(got) != 1 || got[0].Kind != FrameProgram || got[0].Source != "FrameData" || got[0].Function != 0x1000 ||
			strings.TrimSpace(got[0].Program) != strings.TrimSpace(row[9]) {
			t.Errorf("%#x: %+v, want %q", rva, got, row)
		}
	}
	if start, ok := p.FunctionStart(0x100c); !ok || start != 0x1000 {
		t.Errorf("FunctionStart %#x %v", start, ok)
	}
	if got := p.Frames(0xfff); len(got) != 0 {
		t.Errorf("before the first: %+v", got)
	}
}

func TestSymFrames(t *testing.T) {
	const text = "MODULE windows x86 000000070000000000000000000000001 app.pdb\nFUNC 1000 40 8 f\nPUBLIC 1100 0 g\n" +
		"STACK WIN 4 1000 40 3 2 8 c 14 6 1 $T0 $ebp =\nSTACK WIN 0 1000 40 3 2 8 4 10 0 0 1\nSTACK WIN 0 1100 10 0 0 4 0 0 0 0 0\n" +
		"STACK WIN 1 1200 10 0 0 0 0 0 0 0 0\nSTACK WIN 2 1210 10 0 0 0 0 0 0 0 0\nSTACK WIN 0 1210 10 0 0 4 0 0 0 0 0\nSTACK WIN 3 1220 10 0 0 0 0 0 0 0 0\n" +
		"STACK CFI INIT 1000 40 .cfa: $esp 4 +\nSTACK CFI 1001 .cfa: $esp 8 +\n"
	f, err := sym.Open(strings.NewReader(text), int64(len(text)), "app.sym")
	if err != nil {
		t.Fatal(err)
	}
	want := []FrameRecord{
		{Kind: FrameProgram, Source: "STACK WIN", RVA: 0x1000, Size: 0x40, Function: 0x1000, Prolog: 3, Params: 8, SavedRegs: 12, Locals: 20, Program: "$T0 $ebp ="},
		{Kind: FrameFPO, Source: "STACK WIN", RVA: 0x1000, Size: 0x40, Function: 0x1000, Prolog: 3, Params: 8, SavedRegs: 4, Locals: 16, UsesEBP: true},
		{Kind: FrameCFI, Source: "STACK CFI", RVA: 0x1000, Function: 0x1000, Rules: []sym.Rule{{Register: ".cfa", Expression: "$esp 8 +"}}},
	}
	if got := (Sym{f}).Frames(0x1010); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// Types 1 and 2 are FRAME_TRAP and FRAME_TSS, before any other record; type 3 is
	// an ordinary frame, which needs no record.
	for rva, want := range map[uint32][]FrameKind{0x1208: {FrameTrap}, 0x1210: {FrameTaskGate, FrameFPO}, 0x1220: nil} {
		var kinds []FrameKind
		for _, r := range (Sym{f}).Frames(rva) {
			kinds = append(kinds, r.Kind)
		}
		if !reflect.DeepEqual(kinds, want) {
			t.Errorf("%#x: kinds %v, want %v", rva, kinds, want)
		}
	}
	// A public symbol does not tell that the code belongs to its function.
	if got := (Sym{f}).Frames(0x1108); len(got) != 1 || got[0].Function != 0 || got[0].Params != 4 {
		t.Errorf("%+v", got)
	}
}
