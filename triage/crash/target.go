package crash

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"dumptriage/dump"
	"dumptriage/triage"
)

// TargetKind says what an address points to. Its text is part of the JSON
// contract.
type TargetKind string

// The kinds, in the order in which they are looked for.
const (
	TargetNone     TargetKind = ""         // nothing that the dump knows of
	TargetModule   TargetKind = "module"   // a loaded module
	TargetStack    TargetKind = "stack"    // the stack of a thread
	TargetGuard    TargetKind = "guard"    // a guard page
	TargetPrivate  TargetKind = "private"  // memory the process allocated: heaps and the like
	TargetMapped   TargetKind = "mapped"   // a mapped file
	TargetImage    TargetKind = "image"    // an image that the module list does not have
	TargetReserved TargetKind = "reserved" // set aside, nothing is there
	TargetFree     TargetKind = "free"     // nothing is there, by the dump's list of memory
	TargetUnloaded TargetKind = "unloaded" // where a module had been
	TargetMemory   TargetKind = "memory"   // memory in the dump of which nothing else is known
)

// Target is what an address points to.
type Target struct {
	Kind     TargetKind
	Module   *triage.Module
	Unloaded *triage.UnloadedHit // also set beside other kinds
	Offset   uint64              // in Module
	Code     bool                // Module: the address is in code
	Frame    triage.Frame        // Module, Code: its name
	ThreadID uint32              // Stack
	Region   *dump.Region        // nil when the dump does not say
	Text     string              // that stands there, "" when there is no text

	knownData bool // Module: the address is not in code
}

// mapped reports whether something is known to be at the address.
func (t *Target) mapped() bool {
	if t == nil {
		return false
	}
	if t.Region != nil {
		return t.Region.State == memCommit
	}
	switch t.Kind {
	case TargetModule, TargetStack, TargetMemory:
		return true
	}
	return false
}

// target finds out what an address points to.
func (j *judge) target(va uint64) *Target {
	t := &Target{Region: j.mem.Region(va)}
	if f, x, known := j.mem.Glance(va); f.Module != nil {
		t.Kind, t.Module, t.Offset, t.Frame = TargetModule, f.Module, va-f.Module.Base, f
		t.Code, t.knownData = x && known, known && !x
	} else if len(f.Unloaded) > 0 {
		t.Unloaded = &f.Unloaded[0]
	}
	if t.Kind == TargetNone {
		t.Kind = j.otherKind(t, va)
	}
	if !t.Code {
		t.Text = j.text(va)
	}
	return t
}

func (j *judge) otherKind(t *Target, va uint64) TargetKind {
	r := t.Region
	if r != nil && r.State == memCommit && r.Protect&pageGuard != 0 {
		return TargetGuard
	}
	for i := range j.inc.Threads {
		if th := &j.inc.Threads[i]; onStack(th, va) {
			t.ThreadID = th.ID
			return TargetStack
		}
	}
	if r != nil {
		switch {
		case r.State == memCommit && r.Type == memPrivate:
			return TargetPrivate
		case r.State == memCommit && r.Type == memMapped:
			return TargetMapped
		case r.State == memCommit && r.Type == memImage:
			return TargetImage
		case r.State == memCommit:
			return TargetMemory
		}
	}
	var b [1]byte
	switch n, _ := j.mem.ReadAt(b[:], va); {
	case n > 0:
		return TargetMemory
	case t.Unloaded != nil:
		return TargetUnloaded
	case r == nil:
		return TargetNone
	case r.State == memFree:
		return TargetFree
	}
	return TargetReserved
}

// Text at an address: so many characters are taken, and fewer are no text.
const (
	maxText = 48
	minText = 4
)

// text returns the beginning of the string at an address, in UTF-8 or UTF-16.
func (j *judge) text(va uint64) string {
	var b [2 * maxText]byte
	n, _ := j.mem.ReadAt(b[:], va)
	if s := narrowText(b[:n]); s != "" {
		return s
	}
	return wideText(b[:n])
}

// narrowText is the text that b begins with, up to a zero or the limit.
func narrowText(b []byte) string {
	out := make([]byte, 0, maxText)
	for len(b) > 0 && b[0] != 0 && len(out) < maxText {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError || !printable(r) {
			return ""
		}
		out, b = append(out, b[:size]...), b[size:]
	}
	return long(string(out))
}

func wideText(b []byte) string {
	var units []uint16
	for len(b) >= 2 && b[0]|b[1] != 0 && len(units) < maxText {
		u := uint16(b[0]) | uint16(b[1])<<8
		if u > 0x24f || !printable(rune(u)) { // bytes that are no text look like ideographs
			return ""
		}
		units, b = append(units, u), b[2:]
	}
	return long(string(utf16.Decode(units)))
}

func printable(r rune) bool { return unicode.IsPrint(r) || r == '\t' || r == '\n' || r == '\r' }

func long(s string) string {
	if utf8.RuneCountInString(s) < minText {
		return ""
	}
	return s
}

// Register is a register of the fault and what it points to.
type Register struct {
	Reg     dump.Reg
	Value   uint64
	Pattern *Pattern
	Target  *Target
}

// registers lists the general registers, those that say nothing left out.
func (j *judge) registers() {
	for _, r := range generalRegisters(j.arch) {
		val, ok := j.crash.Context.Get(r)
		if !ok {
			continue
		}
		reg := Register{Reg: r, Value: val, Pattern: patternAt(val, j.arch)}
		if val >= nullPage {
			if t := j.target(val); t.Kind != TargetNone {
				reg.Target = t
			}
		}
		if reg.Pattern != nil || reg.Target != nil {
			j.v.Registers = append(j.v.Registers, reg)
		}
	}
}

// generalRegisters are those that hold pointers, in the processor's order.
func generalRegisters(arch dump.Arch) []dump.Reg {
	n := 16
	switch arch {
	case dump.X86:
		n = 8
	case dump.ARM64:
		n = 32
	}
	out := make([]dump.Reg, n)
	for i := range out {
		out[i] = dump.Reg(i)
	}
	return out
}
