package sym

import (
	"bytes"
	"strings"
)

// WinFrame is a STACK WIN record: how the compiler laid out the frames of a piece
// of x86 code. Sizes are in bytes.
type WinFrame struct {
	RVA, Size    uint32
	Prolog       uint32
	Epilog       uint32
	Parameters   uint32
	Saved        uint32 // registers saved
	Locals       uint32
	MaxStack     uint32
	Program      string // of frame data, "" of FPO records
	AllocatesEBP bool   // of FPO records: EBP is used for something else
	Trap         bool   // the code runs on a trap frame
	TaskGate     bool   // it was entered through a task gate
}

// WinFrame returns the best record that covers an address.
func (f *File) WinFrame(rva uint32) (WinFrame, bool) {
	for _, w := range f.WinFrames(rva) {
		return w, true
	}
	return WinFrame{}, false
}

// WinFrames returns the records that cover an address: those of traps and task
// gates first, then frame data before FPO, as it says more.
func (f *File) WinFrames(rva uint32) []WinFrame {
	var out []WinFrame
	x := f.load()
	for i, list := range [][]place{x.win[2], x.win[3], x.win[1], x.win[0]} {
		if p, ok := covering(list, rva); ok {
			if w, ok := f.readWin(p); ok {
				w.Trap, w.TaskGate = i == 0, i == 1
				out = append(out, w)
			} else {
				f.note("STACK WIN", "cannot be read", p.off, nil)
			}
		}
	}
	return out
}

func (f *File) readWin(p place) (WinFrame, bool) {
	fl, _, done := f.record(p.off)
	defer done()
	for range 5 { // STACK WIN type rva size
		fl.word()
	}
	w := WinFrame{RVA: p.rva, Size: p.size}
	for _, to := range []*uint32{&w.Prolog, &w.Epilog, &w.Parameters, &w.Saved, &w.Locals, &w.MaxStack} {
		v, ok := fl.hex()
		if !ok {
			return w, false
		}
		*to = v
	}
	if fl.take("1") {
		w.Program = string(fl.rest())
		return w, w.Program != ""
	}
	if !fl.take("0") {
		return w, false
	}
	w.AllocatesEBP = fl.take("1")
	return w, true
}

// Rule says how a register of the caller is found: an expression in postfix
// notation. ".cfa" is the frame's address, ".ra" the return address.
type Rule struct{ Register, Expression string }

// Caps on the records of one range.
const (
	maxCFI   = 1 << 12
	maxRules = 256
)

// CFIStart returns where the code begins that CFI's rules for an address are of.
func (f *File) CFIStart(rva uint32) (uint32, bool) {
	p, ok := covering(f.load().cfi, rva)
	return p.rva, ok
}

// CFI returns the rules in force at an address, in the order in which the file
// first names their registers.
func (f *File) CFI(rva uint32) ([]Rule, bool) {
	p, ok := covering(f.load().cfi, rva)
	if !ok {
		return nil, false
	}
	s := newScanner(f.r, p.off, f.size, peekBlock)
	defer s.release()
	line, _, _ := s.next()
	fl := fields(line)
	for range 5 { // STACK CFI INIT rva size
		fl.word()
	}
	rules := merge(nil, fl.rest())
	for range maxCFI {
		line, _, ok := s.next()
		fl := fields(line)
		if !ok || !fl.take("STACK") || !fl.take("CFI") || fl.take("INIT") {
			break
		}
		from, ok := fl.hex()
		if !ok || from > rva {
			break
		}
		rules = merge(rules, fl.rest())
	}
	return rules, len(rules) > 0
}

// merge puts the rules of a record, "register: expression" each, over those in
// force.
func merge(rules []Rule, text []byte) []Rule {
	at := -1
	for _, w := range bytes.Fields(text) {
		name, isName := strings.CutSuffix(string(w), ":")
		switch {
		case !isName && at >= 0:
			if rules[at].Expression != "" {
				rules[at].Expression += " "
			}
			rules[at].Expression += string(w)
		case isName:
			if at = indexRule(rules, name); at < 0 {
				if len(rules) == maxRules {
					return rules
				}
				rules = append(rules, Rule{Register: name})
				at = len(rules) - 1
			}
			rules[at].Expression = ""
		}
	}
	return rules
}

func indexRule(rules []Rule, name string) int {
	for i := range rules {
		if rules[i].Register == name {
			return i
		}
	}
	return -1
}
