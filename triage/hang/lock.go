package hang

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/triage"
)

// CriticalSection is an RTL_CRITICAL_SECTION as memory holds it.
type CriticalSection struct {
	DebugInfo      uint64
	LockCount      int32
	RecursionCount int32
	OwningThread   uint64
	SpinCount      uint64
	// Confirmed is set when its debug information points back to it.
	Confirmed bool
}

// noDebugInfo is what DebugInfo holds where there is none.
const noDebugInfo = ^uint64(0)

// Locked reports whether the fields agree that a thread is inside.
func (c *CriticalSection) Locked() bool {
	return c.OwningThread != 0 && c.RecursionCount > 0 && c.LockCount != -1
}

// plausible reports whether the fields can be those of a critical section.
func (c *CriticalSection) plausible() bool {
	const manyDeep = 1 << 20
	switch {
	case c.OwningThread > 0xffffffff || c.OwningThread&3 != 0: // thread ids are multiples of 4
		return false
	case c.RecursionCount < 0 || c.RecursionCount > manyDeep || (c.OwningThread == 0) != (c.RecursionCount == 0):
		return false
	case c.Confirmed:
		return true
	}
	return c.DebugInfo == 0 || c.DebugInfo == noDebugInfo || c.DebugInfo&3 == 0 && c.DebugInfo >= 0x10000
}

// readCritical reads the critical section at va; nil when memory lacks it.
func (a *analysis) readCritical(va uint64, arch dump.Arch) *CriticalSection {
	size := arch.PointerSize()
	b := make([]byte, 4*size+8)
	if _, err := a.space.ReadAt(b, va); err != nil {
		return nil
	}
	c := cursor.New(b, "critical section", -1)
	cs := &CriticalSection{DebugInfo: c.Pointer(size), LockCount: int32(c.U32()), RecursionCount: int32(c.U32()), OwningThread: c.Pointer(size)}
	c.Skip(size) // LockSemaphore
	cs.SpinCount = c.Pointer(size)
	if size == 4 && cs.DebugInfo == 0xffffffff {
		cs.DebugInfo = noDebugInfo
	}
	if cs.DebugInfo != 0 && cs.DebugInfo != noDebugInfo {
		// RTL_CRITICAL_SECTION_DEBUG.CriticalSection, behind two 16-bit fields.
		back, err := dump.ReadPointer(a.space, arch, cs.DebugInfo+uint64(arch.PointerSize()))
		cs.Confirmed = err == nil && back == va
	}
	return cs
}

// criticalSection fills in which critical section a thread waits for. The frame
// is that of the function that takes it.
func (a *analysis) criticalSection(w *Wait, h *triage.Half, regs []dump.Registers, m match) {
	o := &w.Object
	o.Kind = KindCritical
	candidates := a.preservedValues(h, regs, m.frame)
	if v, ev, ok := a.argument(h, regs, m.frame, m.arg); ok && v != 0 {
		o.Value, o.Evidence, o.Confidence = v, []Evidence{ev}, Medium
		for _, c := range candidates {
			if c.value == v { // the function that waits keeps it too
				o.Evidence, o.Confidence = append(o.Evidence, c.evidence), High
				break
			}
		}
		o.Lock = a.readCritical(v, h.Registers.Arch)
		if o.Lock != nil && !o.Lock.plausible() {
			o.Lock, o.Confidence = nil, Low // the value was something else, or the lock is destroyed
		}
	} else {
		a.searchCritical(o, h, candidates)
	}
	if o.Lock == nil {
		return
	}
	o.Evidence = append(o.Evidence, Evidence{Source: FromMemory, Frame: m.frame})
	if o.Lock.Locked() {
		o.Confidence = High
		w.Owner = a.ownerByID(uint32(o.Lock.OwningThread), Evidence{Source: FromMemory, Frame: m.frame})
		if !o.Lock.Confirmed && w.Owner.Index < 0 {
			w.Owner.Confidence = Medium
		}
		if w.Owner.Index >= 0 && &a.waits[w.Owner.Index] == w {
			w.Owner = nil // its owner may enter again: it was about to
		}
	}
}

// searchCritical looks among preserved registers for the one value that points
// at a held critical section.
func (a *analysis) searchCritical(o *Object, h *triage.Half, candidates []candidate) {
	for _, c := range candidates {
		if !a.afford(1) {
			return
		}
		lock := a.readCritical(c.value, h.Registers.Arch)
		if lock == nil || !lock.plausible() || !lock.Locked() || !lock.Confirmed && !a.has(uint32(lock.OwningThread)) {
			continue
		}
		if o.Value != 0 && o.Value != c.value { // two: which one is not known
			o.Value, o.Lock, o.Evidence, o.Confidence = 0, nil, nil, ""
			return
		}
		o.Value, o.Lock, o.Evidence, o.Confidence = c.value, lock, []Evidence{c.evidence}, High
	}
}

// has reports whether the process that is looked at has a thread.
func (a *analysis) has(id uint32) bool {
	i, _ := a.index(id)
	return i >= 0
}

// candidate is a value that a preserved register held in a frame.
type candidate struct {
	value    uint64
	evidence Evidence
}

// preservedValues lists what preserved registers held in the frames up to the
// caller of frame last, each value once, innermost first.
func (a *analysis) preservedValues(h *triage.Half, regs []dump.Registers, last int) []candidate {
	keep := []dump.Reg{dump.RBX, dump.RSI, dump.RDI, dump.RBP, dump.R12, dump.R13, dump.R14, dump.R15}
	switch h.Registers.Arch {
	case dump.X86:
		keep = []dump.Reg{dump.RBX, dump.RSI, dump.RDI}
	case dump.ARM64:
		keep = nil
		for r := dump.Reg(19); r <= 28; r++ {
			keep = append(keep, r)
		}
	}
	seen := map[uint64]bool{}
	var out []candidate
	for i := 0; i <= last && i < len(regs) && a.afford(len(keep)); i++ {
		for _, r := range keep {
			v, ok := regs[i].Get(r)
			if !ok || v < 0x10000 || v&3 != 0 || seen[v] {
				continue
			}
			seen[v] = true
			out = append(out, candidate{v, Evidence{Source: FromRegister, Frame: i, Reg: r}})
		}
	}
	return out
}
