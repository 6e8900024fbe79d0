package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
)

// cfiSpace is a process whose module other.dll has no image, but STACK CFI.
func cfiSpace(rules ...RegisterRule) *framed {
	s := bare()
	return &framed{space: s, records: []sized{{FrameRecord{Kind: FrameCFI, Source: "STACK CFI", Module: "other.dll", RVA: 0x1000,
		Begin: noImageBase + 0x1000, Rules: rules}, noImageBase + 0x2000}}}
}

func stepCFI(s *framed, arch dump.Arch, r dump.Registers) (Frame, dump.Registers, Stop, bool) {
	w, opt := s.walker(arch), stackBounds
	r.Arch = arch
	f, _, _ := w.first(&r, &opt)
	stop, ok := w.Step(&r, &f, &opt)
	return f, r, stop, ok
}

// rbx is restored; rsi and rdi are preserved on Windows, so that without a rule
// they keep their values; rax is not; r12 is lost by its rule.
func TestCFIAMD64(t *testing.T) {
	s := cfiSpace(RegisterRule{".cfa", "$rsp 48 +"}, RegisterRule{".ra", ".cfa -8 + ^"}, RegisterRule{"$rbx", ".cfa 16 - ^"}, RegisterRule{"$r12", ".undef"},
		RegisterRule{"$xmm6", ".cfa 64 - ^"})
	ret := s.callAt(0x1540)
	s.poke(sp0+32, 0xbb, ret)
	r := at(noImageBase+0x1100, sp0)
	for reg, v := range map[dump.Reg]uint64{dump.RBX: 1, dump.RSI: 2, dump.RDI: 3, dump.R12: 4, dump.RAX: 5} {
		r.Set(reg, v)
	}
	f, out, stop, ok := stepCFI(s, dump.AMD64, r)
	if !ok || f.IP != ret || f.SP != sp0+48 || f.Method != MethodSymCFI || f.Method.String() != "sym_cfi" || f.Trust != TrustCFI || f.Detail != "by STACK CFI at other.dll+0x1000" {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &out, dump.RBX, 0xbb)
	wantReg(t, &out, dump.RSI, 2)
	wantReg(t, &out, dump.RDI, 3)
	if out.Known(dump.R12) || out.Known(dump.RAX) {
		t.Error("r12 or rax is known")
	}
}

// Where the image is at hand its own unwind data counts, whatever STACK CFI says.
func TestCFINotWithImage(t *testing.T) {
	s := &framed{space: newSpace(0x1000)}
	s.function(0x1100, 0x1200, []byte{1, 4, 1, 0, 4, 0x42}, nil) // sub rsp, 28h
	s.records = []sized{{FrameRecord{Kind: FrameCFI, Source: "STACK CFI", Begin: imageBase + 0x1100,
		Rules: []RegisterRule{{".cfa", "$rsp 8 +"}, {".ra", ".cfa 8 - ^"}}}, imageBase + 0x1200}}
	ret := s.callAt(0x1540)
	s.poke(sp0, ret)
	s.poke(sp0+0x28, ret)
	if f, _, _, ok := stepCFI(s, dump.AMD64, at(imageBase+0x1150, sp0)); !ok || f.SP != sp0+0x30 || f.Method != MethodPdata {
		t.Errorf("%+v", f)
	}
}

// Wrong rules are noticed, and the scan says why they were not used.
func TestCFIIsChecked(t *testing.T) {
	cfa, ra := RegisterRule{".cfa", "$rsp 48 +"}, RegisterRule{".ra", ".cfa 8 - ^"}
	for name, rules := range map[string][]RegisterRule{
		"no call before":     {{".cfa", "$rsp 16 +"}, ra},
		"no progress":        {{".cfa", "$rsp"}, {".ra", "$rsp 40 + ^"}},
		"beyond the stack":   {{".cfa", "$rsp 65536 +"}, {".ra", "$rsp 40 + ^"}},
		"memory not there":   {cfa, {".ra", "8 ^"}},
		"needs the unknown":  {{".cfa", "$r13 8 +"}, ra},
		"no address":         {ra},
		"no return address":  {cfa},
		"sp lost":            {cfa, ra, {"$rsp", ".undef"}},
		"two values":         {cfa, {".ra", "1 2"}},
		"divides by zero":    {cfa, {".ra", "1 0 /"}},
		"assigns a register": {cfa, {".ra", "$rax 5 = .cfa"}},
	} {
		s := cfiSpace(rules...)
		ret := s.callAt(0x1540)
		s.poke(sp0+8, imageBase+0x1333)
		s.poke(sp0+40, ret)
		f, _, stop, ok := stepCFI(s, dump.AMD64, at(noImageBase+0x1100, sp0))
		if (!ok || f.Method == MethodSymCFI) && name != "assigns a register" {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
		_, notes := s.walker(dump.AMD64).Explain(at(noImageBase+0x1100, sp0), stackBounds, 1)
		found := false
		for _, n := range notes {
			found = found || n.Kind == NoteRejected && n.Rule == MethodSymCFI && n.Detail != ""
		}
		if !found && name != "assigns a register" {
			t.Errorf("%s: not explained: %+v", name, notes)
		}
	}
}

// On ARM64 the return address loses its authentication code.
func TestCFIARM64(t *testing.T) {
	s := cfiSpace(RegisterRule{".cfa", "sp 32 +"}, RegisterRule{".ra", ".cfa 8 - ^"}, RegisterRule{"x29", ".cfa 16 - ^"}, RegisterRule{"x19", ".cfa 24 - ^"})
	const ret = noImageBase + 0x1500
	s.poke(sp0+8, 0x19, sp0+0x80, ret|0x5a<<48)
	r := dump.Registers{Arch: dump.ARM64}
	r.SetPC(noImageBase + 0x1100)
	r.SetSP(sp0)
	f, out, stop, ok := stepCFI(s, dump.ARM64, r)
	if !ok || f.IP != ret || f.Lookup != ret-4 || f.SP != sp0+32 || f.FP != sp0+0x80 || f.Method != MethodSymCFI || f.Trust != TrustCFI {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &out, 19, 0x19)
}

// FuzzCFI compiles and runs any rules over any stack.
func FuzzCFI(f *testing.F) {
	f.Add(".cfa", "$rsp 48 +", ".ra", ".cfa 8 - ^", uint8(0))
	f.Add(".cfa", "sp 16 +", ".ra", "x30", uint8(2))
	f.Add(".cfa", "$esp 4 +", "$eip", ".undef", uint8(1))
	f.Fuzz(func(t *testing.T, a, ea, b, eb string, how uint8) {
		arch := []dump.Arch{dump.AMD64, dump.X86, dump.ARM64}[how%3]
		s := cfiSpace(RegisterRule{a, ea}, RegisterRule{b, eb})
		fillStack(s.space, []byte(ea+eb+"\x00"), arch)
		s.records[0].Begin, s.records[0].end = s.base, s.base+0x10000
		s.image = nil
		r := dump.Registers{Arch: arch}
		r.SetPC(s.base + 0x1100)
		r.SetSP(sp0)
		opt := stackBounds
		opt.MaxFrames = 200
		checkStack(t, s.walker(arch).Walk(r, opt), arch)
	})
}

// compileRules puts the frame's address first, so that the others can count from it.
func TestCompileRulesOrder(t *testing.T) {
	rules, err := compileRules([]RegisterRule{{".ra", ".cfa 8 - ^"}, {"$rbx", ".cfa 16 - ^"}, {".cfa", "$rsp 8 +"}}, "STACK CFI", dump.AMD64)
	if err != nil || len(rules) != 3 || rules[0].reg != varCFA || rules[1].reg != varRA || rules[2].reg != variable(dump.RBX) {
		t.Errorf("%+v %v", rules, err)
	}
	if _, err := compileRules(nil, "STACK CFI", dump.AMD64); err == nil || !strings.Contains(err.Error(), "STACK CFI") {
		t.Error(err)
	}
}
