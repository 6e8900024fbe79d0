package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
)

// framed is a space with frame records, by the end of the code that each is for.
type framed struct {
	*space
	records []sized
	asked   int
}

type sized struct {
	FrameRecord
	end uint64
}

func (f *framed) FrameRecords(va uint64) []FrameRecord {
	f.asked++
	var out []FrameRecord
	for _, r := range f.records {
		if va >= r.Begin && va < r.end {
			out = append(out, r.FrameRecord)
		}
	}
	return out
}

func (f *framed) FunctionStart(va uint64) (uint64, bool) {
	for _, r := range f.FrameRecords(va) {
		return r.Function, r.Function != 0
	}
	return 0, false
}

func (f *framed) walker(arch dump.Arch) *Walker {
	return newWalker(f, arch, func(va uint64) (Table, uint64) {
		if f.image != nil && va >= f.base && va-f.base < 0x10000 {
			return f.image, f.base
		}
		return nil, 0
	})
}

// function is a record for the function at RVA 0x1300, of 0x100 bytes.
func function(r FrameRecord) sized {
	r.Source, r.Module, r.RVA = "FrameData", "app.exe", 0x1300
	r.Begin, r.Function = exeBase+0x1300, exeBase+0x1300
	return sized{r, exeBase + 0x1400}
}

// record86 is a space with the function and a call to it that returns to 0x1540.
func record86(r FrameRecord) *framed {
	s := space86()
	s.callTo(0x1540, 0x1300)
	return &framed{space: s, records: []sized{function(r)}}
}

// callTo makes the instruction that ends at an RVA a call to another.
func (s *space) callTo(rva, target uint32) uint64 {
	rel := target - rva
	s.put(rva-5, 0xe8, byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24))
	return s.base + uint64(rva)
}

func (f *framed) step(r dump.Registers) (Frame, dump.Registers, Stop, bool) {
	w, opt := f.walker(dump.X86), stackBounds
	fr, _, _ := w.first(&r, &opt)
	stop, ok := w.Step(&r, &fr, &opt)
	return fr, r, stop, ok
}

const (
	searchProgram = "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebx $T0 4 - ^ ="
	ret86         = exeBase + 0x1540
)

// A function with 8 bytes of locals above which it saved ebx; it uses ebp for
// something else than frames.
func TestFrameData(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram + " $ebp $T0 8 - ^ =", Locals: 8, SavedRegs: 8, Prolog: 4})
	s.poke32(esp0+8, 0x77, 0xbb, ret86) // ebp, ebx, return address
	r := regs86(exeBase+0x1320, esp0, 0x1c)
	r.Set(dump.RSI, 0x51)
	f, out, stop, ok := s.step(r)
	if !ok || f.IP != ret86 || f.SP != esp0+0x14 || f.Method != MethodFPO || f.Trust != TrustCFI || f.Detail != "by FrameData at app.exe+0x1300" {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &out, dump.RBX, 0xbb)
	wantReg(t, &out, dump.RBP, 0x77)
	wantReg(t, &out, dump.RSI, 0x51) // all that the function saves is named
}

// Old compilers name ebx and ebp alone: what happened to esi and edi is then not
// known when more was saved than is named. An ebp that is followed does not
// count among the saved registers.
func TestFrameDataRegistersNotNamed(t *testing.T) {
	for program, kept := range map[string]bool{
		searchProgram: false,
		"$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $ebx $T0 4 - ^ =":                                     false,
		"$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $ebx $T0 4 - ^ = $esi $T0 8 - ^ =":                    true,
		"$T0 $ebp 4 + = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 4 - ^ = $ebx $T0 8 - ^ =":                                 true,
		"$T0 $ebp 4 + = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 4 - ^ = $ebx $T0 8 - ^ = $eax $T0 8 - ^ = $ecx $T0 8 - =": true,
	} {
		s := record86(FrameRecord{Program: program, Locals: 0x18, SavedRegs: 8})
		s.poke32(esp0+0x20, esp0+0x80, ret86)
		r := regs86(exeBase+0x1320, esp0, esp0+0x20)
		r.Set(dump.RDI, 0xd1)
		f, out, stop, ok := s.step(r)
		if !ok || f.IP != ret86 || f.Trust != TrustCFI || out.Known(dump.RDI) != kept || !out.Known(dump.RBX) {
			t.Errorf("%s: %+v %+v: edi known: %v", program, f, stop, out.Known(dump.RDI))
		}
		if out.Known(dump.RAX) || out.Known(dump.RCX) {
			t.Errorf("%s: volatile registers are known", program)
		}
	}
}

// walk2 walks from the function through its caller at 0x1500, which has a record
// too; what it called took arguments, which its own record does not count.
func TestFrameDataCalleeArguments(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram, Locals: 4, SavedRegs: 4, Params: 8})
	caller := function(FrameRecord{Program: searchProgram, Locals: 0x10, SavedRegs: 4})
	caller.Begin, caller.Function, caller.end = exeBase+0x1500, exeBase+0x1500, exeBase+0x1580
	s.records = append(s.records, caller)
	outer := uint32(s.callTo(0x1740, 0x1500))
	stale := uint32(s.callAt(0x1760))
	s.poke32(esp0+4, 0xb1, ret86, 1, 2) // ebx, return address, two arguments
	s.poke32(esp0+0xc+8+0x10, 0xb2, outer)
	s.poke32(esp0+0xc+0x14, stale) // where it would be without the arguments: in the caller's locals
	st := s.walker(dump.X86).Walk(regs86(exeBase+0x1320, esp0, 0), stackBounds)
	if len(st.Frames) < 3 || st.Frames[2].IP != uint64(outer) || st.Frames[2].SP != esp0+0xc+8+0x18 || st.Frames[2].Trust != TrustCFI || strings.Contains(st.Frames[2].Detail, ";") {
		t.Errorf("%+v", st)
	}
}

// A compiler that reserves room for arguments counts it among the locals: the
// return address is then the callee's parameters below the expected place.
func TestFrameDataReservedArguments(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram, Locals: 4, SavedRegs: 4, Params: 8})
	caller := function(FrameRecord{Program: searchProgram, Locals: 0x10, SavedRegs: 4})
	caller.Begin, caller.Function, caller.end = exeBase+0x1500, exeBase+0x1500, exeBase+0x1580
	s.records = append(s.records, caller)
	outer := uint32(s.callTo(0x1740, 0x1500))
	s.poke32(esp0+4, 0xb1, ret86)
	s.poke32(esp0+0xc+0x10, 0xb2, outer)
	st := s.walker(dump.X86).Walk(regs86(exeBase+0x1320, esp0, 0), stackBounds)
	if len(st.Frames) < 3 || st.Frames[2].IP != uint64(outer) || st.Frames[2].Trust != TrustCFI {
		t.Errorf("%+v", st)
	}
}

// More may lie on the stack than the record knows. A call to the very function
// proves the return address, though a stale one lies nearer; without such proof
// the frame says that it was searched for.
func TestFrameDataSearch(t *testing.T) {
	for name, c := range map[string]struct {
		words []uint32 // from where the return address should be
		at    uint64
		trust Trust
	}{
		"pushed words above it":     {[]uint32{1, 2, ret86}, 8, TrustCFI},
		"a stale one first":         {[]uint32{exeBase + 0x1760, 2, ret86}, 8, TrustCFI},
		"an indirect call":          {[]uint32{1, exeBase + 0x1790}, 4, TrustCFIScan},
		"an indirect call in place": {[]uint32{exeBase + 0x1790, exeBase + 0x1760}, 0, TrustCFI},
	} {
		s := record86(FrameRecord{Program: searchProgram, Locals: 8, SavedRegs: 4})
		s.callAt(0x1760)
		s.put(0x178e, 0xff, 0xd0) // call eax
		s.poke32(esp0+12, c.words...)
		f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, 0))
		if !ok || f.SP != esp0+12+c.at+4 || f.Trust != c.trust || strings.Contains(f.Detail, "above where the record") != (c.at > 0) {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// Without code a word elsewhere than expected must be in code that debug
// information knows: a pointer to data in a module looks the same otherwise.
func TestFrameDataSearchWithoutCode(t *testing.T) {
	s := record86(FrameRecord{Kind: FrameFPO})
	s.image = nil
	s.records = append(s.records, sized{FrameRecord{Source: "FrameData", Begin: exeBase + 0x1500, Function: exeBase + 0x1500}, exeBase + 0x1600})
	s.poke32(esp0, 1, exeBase+0x4780, ret86)
	f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, 0))
	if !ok || f.IP != ret86 || f.Trust != TrustCFIScan || !strings.Contains(f.Detail, "no code at hand") {
		t.Errorf("%+v %+v", f, stop)
	}
}

// An argument that was pushed may point to data of a module: where nothing tells
// it from a return address, the frame is a guess.
func TestFrameDataPushedPointer(t *testing.T) {
	for known, want := range map[bool]uint64{true: ret86, false: exeBase + 0x4780} {
		s := record86(FrameRecord{Kind: FrameFPO})
		s.image = nil
		if known {
			s.records = append(s.records, sized{FrameRecord{Source: "FrameData", Begin: exeBase + 0x1500, Function: exeBase + 0x1500}, exeBase + 0x1600})
		}
		s.poke32(esp0, exeBase+0x4780, ret86)
		if f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, 0)); !ok || f.IP != want || f.Trust != TrustCFIScan {
			t.Errorf("%v: %+v %+v", known, f, stop)
		}
	}
}

// An aligned frame has no fixed size: its return address is above the saved ebp.
func TestFrameDataAligned(t *testing.T) {
	s := record86(FrameRecord{Program: "$T1 .raSearch = $T0 $T1 4 - 8 @ = $ebp $T1 4 - ^ = $eip $T1 ^ = $esp $T1 4 + = $ebx $T0 4 - ^ =", Locals: 8, SavedRegs: 4})
	s.poke32(esp0+12, uint32(s.callAt(0x1760))) // what the sizes lead to
	s.poke32(esp0+0x3c, 0, esp0+0x80, ret86)
	s.poke32(esp0+0x3c, 0xb1) // $T0 is 0x40 below: ebx at 0x3c
	f, out, stop, ok := s.step(regs86(exeBase+0x1320, esp0, esp0+0x40))
	if !ok || f.IP != ret86 || f.SP != esp0+0x48 || f.FP != esp0+0x80 {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &out, dump.RBX, 0xb1)
}

// Where a record does not hold the code says how the stack lies: in the prologue
// (here push esi; sub esp, 10h) and in the function's end. At the first
// instruction nothing has been pushed, whatever the program says.
func TestFrameDataPrologAndEnd(t *testing.T) {
	const program = "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + ="
	code := []byte{0x56, 0x83, 0xec, 0x10, 0x90, 0x83, 0xc4, 0x10, 0x5e, 0xc2, 8, 0} // ... add esp, 10h; pop esi; ret 8
	for name, c := range map[string]struct {
		eip    uint64
		ret    uint64 // where the return address is, from esp
		sp     uint64
		detail string
	}{
		"first instruction":  {0x1300, 0, 4, "first instruction"},
		"after the push":     {0x1301, 4, 8, "by running"},
		"before the release": {0x1305, 0x14, 0x20, "function's end"},
		"before the pop":     {0x1308, 4, 0x10, "function's end"},
		"before the return":  {0x1309, 0, 0xc, "return"},
	} {
		s := record86(FrameRecord{Program: program, Locals: 0x10, SavedRegs: 4, Prolog: 4})
		s.put(0x1300, code...)
		s.poke32(esp0+c.ret, ret86)
		s.poke32(esp0+0x100, esp0+0x200, uint32(s.callAt(0x1760))) // where ebp leads
		f, _, stop, ok := s.step(regs86(exeBase+c.eip, esp0, esp0+0x100))
		if !ok || f.IP != ret86 || f.SP != esp0+c.sp || f.FP != esp0+0x100 || !strings.Contains(f.Detail, c.detail) {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// What the end of a function pops is known, and what it takes off the stack does
// not count again when its caller is unwound by a record.
func TestFunctionEndRegisters(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram, SavedRegs: 4, Params: 8})
	caller := function(FrameRecord{Program: searchProgram, Locals: 0x10, SavedRegs: 4})
	caller.Begin, caller.Function, caller.end = exeBase+0x1500, exeBase+0x1500, exeBase+0x1580
	s.records = append(s.records, caller)
	s.put(0x1320, 0x5e, 0x5f, 0xc2, 8, 0) // pop esi; pop edi; ret 8
	outer, stale := s.callAt(0x1760), uint32(s.callAt(0x1790))
	s.poke32(esp0, 0x51, 0xd1, ret86, 1, 2)
	s.poke32(esp0+0x14+0x10, 0xb1, uint32(outer), 3, stale) // which counting twice would find
	w, opt, r := s.walker(dump.X86), stackBounds, regs86(exeBase+0x1320, esp0, 0)
	f, _, _ := w.first(&r, &opt)
	if stop, ok := w.Step(&r, &f, &opt); !ok || f.IP != ret86 || f.SP != esp0+0x14 {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &r, dump.RSI, 0x51)
	wantReg(t, &r, dump.RDI, 0xd1)
	if stop, ok := w.Step(&r, &f, &opt); !ok || f.IP != outer || f.SP != esp0+0x14+0x18 {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A function's start that debug information knows needs no call to prove it,
// though nothing before it looks like another function's end.
func TestSimulatedFromKnownStart(t *testing.T) {
	for known, method := range map[bool]Method{true: MethodFPO, false: MethodEBP} {
		s := record86(FrameRecord{Kind: FrameTrap})
		s.records[0].Begin, s.records[0].Function = exeBase+0x1303, exeBase+0x1303
		s.put(0x1300, 0x40, 0x40, 0x40, 0x56, 0x83, 0xec, 0x10, 0x90) // inc eax; ... push esi; sub esp, 10h
		if !known {
			s.records = nil
		}
		s.put(0x178e, 0xff, 0xd0) // call eax
		s.poke32(esp0+0x14, exeBase+0x1790)
		s.poke32(esp0+0x40, esp0+0x80, uint32(s.callAt(0x1760)))
		f, _, stop, ok := s.step(regs86(exeBase+0x1307, esp0, esp0+0x40))
		if !ok || f.Method != method || known && (f.IP != exeBase+0x1790 || f.Trust != TrustFramePointer) {
			t.Errorf("%v: %+v %+v", known, f, stop)
		}
	}
}

// Records of compilers that describe the prologue instruction by instruction
// hold there.
func TestFrameDataOfPrologInstructions(t *testing.T) {
	s := record86(FrameRecord{Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =", Prolog: 2})
	part := function(FrameRecord{Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $esi $T0 4 - ^ =", Prolog: 3, SavedRegs: 4})
	part.Begin = exeBase + 0x1301
	s.records = []sized{part, s.records[0]}
	s.poke32(esp0, 0x51, ret86)
	f, out, stop, ok := s.step(regs86(exeBase+0x1301, esp0, 0))
	if !ok || f.IP != ret86 || f.Trust != TrustCFI {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &out, dump.RSI, 0x51)
}

// STACK CFI of x86, as compilers that write DWARF have it.
func TestCFI86(t *testing.T) {
	s := record86(FrameRecord{Kind: FrameCFI, Rules: []RegisterRule{{".ra", ".cfa 4 - ^"}, {"$ebp", ".cfa 8 - ^"}, {".cfa", "$esp 12 +"}}})
	s.records[0].Source = "STACK CFI"
	s.poke32(esp0+4, esp0+0x80, ret86)
	if f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, 3)); !ok || f.IP != ret86 || f.SP != esp0+12 || f.FP != esp0+0x80 || f.Method != MethodFPO || f.Detail != "by STACK CFI at app.exe+0x1300" {
		t.Errorf("%+v %+v", f, stop)
	}
}

// The notes of a step tell the record, its program and what each assignment read.
func TestExplainFrameData(t *testing.T) {
	s := record86(FrameRecord{Program: searchProgram, Locals: 8, SavedRegs: 4, Params: 12})
	s.poke32(esp0+8, 0xbb, ret86)
	_, notes := s.walker(dump.X86).Explain(regs86(exeBase+0x1320, esp0, 0), stackBounds, 1)
	want := []Note{
		{Kind: NoteSite, Addr: exeBase + 0x1320, Module: "app.exe", Base: exeBase, Detail: "in an image's code"},
		{Kind: NoteEpilog, Rule: MethodEBP, Detail: "the code here is no function's entry, prologue or return that the stack confirms"},
		{Kind: NoteRecord, Rule: MethodFPO, Detail: "FrameData at app.exe+0x1300: locals 8, saved registers 4, parameters 12: " + searchProgram},
		{Kind: NoteAssign, Name: "$T0", Value: esp0 + 12, Known: true},
		{Kind: NoteAssign, Name: "eip", Addr: esp0 + 12, Value: ret86, Known: true},
		{Kind: NoteAssign, Name: "esp", Value: esp0 + 16, Known: true},
		{Kind: NoteAssign, Name: "ebx", Addr: esp0 + 8, Value: 0xbb, Known: true},
	}
	if len(notes) != len(want) {
		t.Fatalf("%+v", notes)
	}
	for i := range want {
		if notes[i] != want[i] {
			t.Errorf("%+v, want %+v", notes[i], want[i])
		}
	}
}

// BenchmarkStepFrameData is a warm step by a program.
func BenchmarkStepFrameData(b *testing.B) {
	s := record86(FrameRecord{Program: searchProgram, Locals: 8, SavedRegs: 4})
	ret := uint32(s.callTo(0x1390, 0x1300)) // the function calls itself
	for va := uint64(esp0 + 12); va < stackHigh-0x40; va += 16 {
		s.poke32(va, ret)
	}
	w, opt := s.walker(dump.X86), stackBounds
	var regs dump.Registers
	var f Frame
	start := regs86(exeBase+0x1390, esp0, 0)
	begin := func() { regs, f = start, Frame{IP: exeBase + 0x1390, Lookup: exeBase + 0x138f, SP: esp0} }
	begin()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := w.Step(&regs, &f, &opt); !ok || f.Method != MethodFPO {
			begin()
		}
	}
}
