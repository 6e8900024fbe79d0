package oracle

import (
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// preserved lists the general registers a function gives back as it got them.
var preserved = []dump.Reg{dump.RBX, dump.RBP, dump.RSI, dump.RDI, dump.R12, dump.R13, dump.R14, dump.R15}

const firstPreservedXMM = 6

// truth is the caller's state, which every boundary's unwinding must give.
type truth struct {
	ip, sp  uint64
	slot    uint64 // of the return address
	gpr     [17]uint64
	xmm     [16][2]uint64
	goCode  bool
	machine bool // the caller was interrupted
	homes
}

// homes are the stack slots that took a preserved value since the entry, by the
// value, which is random and so stands for its register.
type homes map[uint64][]uint64

// note keeps in mind where the function put a preserved register.
func (h homes) note(p *process, va, size uint64) {
	for at := va &^ 7; at < va+size; at += 8 {
		v := p.word(at)
		if slots, ok := h[v]; ok && !slices.Contains(slots, at) {
			h[v] = append(slots, at)
		}
	}
}

// watch starts to note where preserved registers go.
func (t *truth) watch() {
	t.homes = homes{}
	for _, r := range preserved {
		t.homes[t.gpr[r]] = nil
	}
	for _, x := range t.xmm[firstPreservedXMM:] {
		t.homes[x[0]], t.homes[x[1]] = nil, nil
	}
}

// destroyed reports whether a preserved value was saved and every copy has been
// overwritten since, as happens on paths that no real run takes.
func (h homes) destroyed(p *process, v uint64) bool {
	slots := h[v]
	return len(slots) > 0 && !slices.ContainsFunc(slots, func(at uint64) bool { return p.word(at) == v })
}

// verdict is the comparison of one unwound frame with the truth.
type verdict struct {
	wrong  string // what differs, "" nothing
	lost   bool   // and the truth is nowhere to be found any more
	marked bool   // and the frame says that it is a guess
	right  bool   // and only that is held against it
	method unwind.Method
	detail string
}

// compare judges the caller that one step gave.
func (t *truth) compare(p *process, regs *dump.Registers, f *unwind.Frame, stop unwind.Stop, ok bool) verdict {
	v := verdict{method: f.Method, detail: f.Detail}
	if !ok {
		v.wrong, v.marked = fmt.Sprintf("no caller: %s: %s", stop.Reason, stop.Detail), true
	} else {
		v.marked = f.Trust != unwind.TrustCFI
		v.wrong, v.lost = t.diff(p, regs, f)
		if v.wrong == "" && v.marked {
			v.right, v.wrong = true, "right, but by a guess: "+f.Detail
		}
	}
	if v.wrong != "" && !t.machine && p.word(t.slot) != t.ip {
		v.lost = true
	}
	return v
}

func (t *truth) diff(p *process, regs *dump.Registers, f *unwind.Frame) (wrong string, lost bool) {
	switch {
	case f.IP != t.ip:
		return fmt.Sprintf("rip %#x", f.IP), false
	case f.SP != t.sp:
		return fmt.Sprintf("rsp off by %d", int64(f.SP-t.sp)), false
	}
	for _, r := range preserved {
		if t.goCode && r != dump.RBP {
			continue
		}
		if v, known := regs.Get(r); !known || v != t.gpr[r] {
			return fmt.Sprintf("%s %#x (known %t)", dump.AMD64.RegName(r), v, known), t.destroyed(p, t.gpr[r])
		}
	}
	for i := firstPreservedXMM; i < len(t.xmm) && !t.goCode; i++ {
		if v, known := regs.GetXMM(i); !known || v != dump.XMM(t.xmm[i]) {
			return fmt.Sprintf("xmm%d %#x (known %t)", i, v, known), t.destroyed(p, t.xmm[i][0]) || t.destroyed(p, t.xmm[i][1])
		}
	}
	return "", false
}
