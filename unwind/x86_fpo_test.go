package unwind

import (
	"strings"
	"testing"
)

// An FPO record can be right where the program is wrong.
func TestFPOAfterFrameData(t *testing.T) {
	s := record86(FrameRecord{Program: "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + ="})
	fpo := function(FrameRecord{Kind: FrameFPO, Locals: 8, SavedRegs: 4})
	fpo.Source = "FPO_DATA"
	s.records = append(s.records, fpo)
	s.poke32(esp0+12, ret86)
	if f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, 0x1c)); !ok || f.IP != ret86 || f.Trust != TrustCFI || !strings.Contains(f.Detail, "FPO_DATA") {
		t.Errorf("%+v %+v", f, stop)
	}
}

// The caller's ebp by an FPO record: unchanged; where the code saves it; at the
// customary place, when it can be a frame's; else not known.
func TestFPOEBP(t *testing.T) {
	const frame = esp0 + 0x200
	for name, c := range map[string]struct {
		record FrameRecord
		code   []byte
		words  []uint32 // from esp
		fp     uint64   // 0: not known
		detail string
	}{
		"not used":      {FrameRecord{Locals: 4, SavedRegs: 4}, nil, []uint32{1, 2, ret86}, esp0 + 0x180, ""},
		"by the code":   {FrameRecord{Locals: 4, SavedRegs: 12, UsesEBP: true}, []byte{0x55, 0x56, 0x57, 0x51}, []uint32{0, 1, 2, frame, ret86}, frame, ""},
		"customary":     {FrameRecord{Locals: 4, SavedRegs: 12, UsesEBP: true}, nil, []uint32{1, frame, 3, 0, ret86}, frame, "customary"},
		"alone":         {FrameRecord{Locals: 4, SavedRegs: 4, UsesEBP: true}, nil, []uint32{frame, 0, ret86}, frame, "customary"},
		"not a frame's": {FrameRecord{Locals: 4, SavedRegs: 4, UsesEBP: true}, nil, []uint32{7, 0, ret86}, 0, ""},
		// Compilers that optimise at link time record no saved registers.
		"saved size 0": {FrameRecord{Locals: 4, UsesEBP: true}, nil, []uint32{7, ret86}, esp0 + 0x180, "customary"},
	} {
		c.record.Kind = FrameFPO
		s := record86(c.record)
		s.put(0x1300, c.code...)
		s.poke32(esp0, c.words...)
		f, _, stop, ok := s.step(regs86(exeBase+0x1304, esp0, esp0+0x180))
		if !ok || f.IP != ret86 || f.HasFP != (c.fp != 0) || f.FP != c.fp || f.Trust != TrustCFI || c.detail != "" && !strings.Contains(f.Detail, c.detail) {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// FRAME_NONFPO is an ordinary frame.
func TestNonFPO(t *testing.T) {
	s := record86(FrameRecord{Kind: FrameEBP, Prolog: 3})
	s.poke32(esp0+0x20, esp0+0x80, ret86)
	if f, _, stop, ok := s.step(regs86(exeBase+0x1320, esp0, esp0+0x20)); !ok || f.IP != ret86 || f.FP != esp0+0x80 || f.Trust != TrustCFI {
		t.Errorf("%+v %+v", f, stop)
	}
}
