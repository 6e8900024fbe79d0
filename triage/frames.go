package triage

import (
	"dumptriage/symbols"
	"dumptriage/unwind"
)

var frameKinds = [...]unwind.FrameKind{
	symbols.FrameProgram: unwind.FrameProgram, symbols.FrameFPO: unwind.FrameFPO, symbols.FrameEBP: unwind.FrameEBP,
	symbols.FrameTrap: unwind.FrameTrap, symbols.FrameTaskGate: unwind.FrameTaskGate, symbols.FrameCFI: unwind.FrameCFI,
}

// FrameRecords implements unwind.FrameSpace by the module's debug information,
// if it is proved to be of the very build.
func (s *space) FrameRecords(va uint64) []unwind.FrameRecord {
	m, d, rva := s.framer(va)
	if d == nil {
		return nil
	}
	var out []unwind.FrameRecord
	for _, r := range d.Frames(rva) {
		u := unwind.FrameRecord{Kind: frameKinds[r.Kind], Source: r.Source, Module: m.Name(), Begin: m.Base + uint64(r.RVA), RVA: r.RVA,
			End:    m.Base + uint64(r.RVA) + uint64(r.Size),
			Locals: r.Locals, Params: r.Params, SavedRegs: r.SavedRegs, Prolog: r.Prolog, UsesEBP: r.UsesEBP, Program: r.Program}
		if r.Function != 0 {
			u.Function = m.Base + uint64(r.Function)
		}
		for _, rule := range r.Rules {
			u.Rules = append(u.Rules, unwind.RegisterRule{Register: rule.Register, Expression: rule.Expression})
		}
		out = append(out, u)
	}
	return out
}

// FunctionStart implements unwind.FrameSpace.
func (s *space) FunctionStart(va uint64) (uint64, bool) {
	m, d, rva := s.framer(va)
	if d == nil {
		return 0, false
	}
	start, ok := d.FunctionStart(rva)
	return m.Base + uint64(start), ok
}

// framer finds the proved debug information for an address.
func (s *space) framer(va uint64) (*Module, symbols.Framer, uint32) {
	m := s.find(va)
	if m == nil || va-m.Base > 0xffffffff {
		return nil, nil, 0
	}
	d, _ := s.debugOf(m).(symbols.Framer)
	if m.Symbols != symbols.DebugLoaded {
		d = nil
	}
	return m, d, uint32(va - m.Base)
}
