package crash

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
)

const (
	// nullPage is the part at the bottom of the address space that Windows never
	// maps. The offset of a field or an element of an array may lead that far.
	nullPage = 0x10000
	// nullBelow is how far below 0 an address is one less a small offset.
	nullBelow = 0x1000
	// stackReach is how far from the stack pointer an instruction touches its own
	// stack frame.
	stackReach = 0x10000
)

// Protections and states of memory, from winnt.h.
const (
	pageReadable = 0x02 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80
	pageWritable = 0x04 | 0x08 | 0x40 | 0x80
	pageNoAccess = 0x01
	pageGuard    = 0x100
	memCommit    = 0x1000
	memFree      = 0x10000
	memPrivate   = 0x20000
	memMapped    = 0x40000
	memImage     = 0x1000000
)

// access judges an access that failed. Its parameters are: 0 read, 1 write,
// 8 execute; the address; and for in-page errors the status.
func (j *judge) access() {
	c, v := j.crash, j.v
	if len(c.Parameters) > 0 {
		v.Access = map[uint64]Access{0: Read, 1: Write, 8: Execute}[c.Parameters[0]]
	}
	if len(c.Parameters) > 1 {
		v.Address, v.HasAddress = j.arch.Narrow(c.Parameters[1]), true
	}
	if c.Code == codeInPageError && len(c.Parameters) > 2 {
		v.Status, v.HasStatus = uint32(c.Parameters[2]), true
	}
	if c.Code != codeAccessViolation {
		if v.HasAddress {
			v.Target = j.target(v.Address)
		}
		return
	}
	hidden := j.hiddenAddress()
	if !v.HasAddress {
		return
	}
	v.Pattern = patternAt(v.Address, j.arch)
	if v.Pattern == nil && hidden {
		v.Pattern = j.patternInOperand()
	}
	v.Target = j.target(v.Address)
	v.Class = j.accessClass(hidden)
	v.Constant = v.Class == NullPointer && v.Access != Execute && j.constantOperand()
}

// withheld reports whether the exception has the shape of the faults for which an
// x64 processor gives no address: Windows shows a read of ^0. ARM64 always gives one.
func (j *judge) withheld() bool {
	p := j.crash.Parameters
	return j.arch == dump.AMD64 && len(p) > 1 && p[0] == 0 && p[1] == ^uint64(0)
}

// hiddenAddress handles the faults for which the processor gives no address. It takes the address of the operand that
// must have caused it, or makes the address unknown, and reports whether there
// was anything hidden.
func (j *judge) hiddenAddress() bool {
	c, v := j.crash, j.v
	if !j.withheld() {
		return false
	}
	switch {
	case c.Adjusted != nil && c.Adjusted.Kind == "non-canonical":
		v.Address = c.Adjusted.Address
		if in := c.Instruction; in != nil {
			for _, a := range in.Accesses {
				if a.Known && a.Address == v.Address && a.Write {
					v.Access = Write
				}
			}
		}
	case j.misaligned():
	default:
		if pc, ok := c.Context.PC(); ok && !canonical(pc) {
			v.Address, v.Access = pc, Execute
		}
	}
	return true
}

// constantOperand reports whether the instruction's only operand in memory is an
// address without registers, as in "mov dword ptr [0x0], 0x1".
func (j *judge) constantOperand() bool {
	in := j.crash.Instruction
	if in == nil || len(in.Accesses) != 1 || !in.Accesses[0].Known || in.Accesses[0].Address != j.v.Address {
		return false
	}
	_, inner, ok := strings.Cut(in.Text, "[")
	return ok && strings.HasPrefix(inner, "0x")
}

// misaligned recognises an instruction on vectors whose operand must be aligned
// and is not: the processor reports it without an address too.
func (j *judge) misaligned() bool {
	in := j.crash.Instruction
	if in == nil {
		return false
	}
	for _, a := range in.Accesses {
		if a.Known && a.Align != 0 && a.Address%uint64(a.Align) != 0 && canonical(a.Address) {
			j.v.Address, j.v.HasAddress = a.Address, true
			if j.v.Access = Read; a.Write {
				j.v.Access = Write
			}
			return true
		}
	}
	return false
}

// canonical reports whether bits 47 to 63 of an address agree.
func canonical(va uint64) bool { return va+1<<47 < 1<<48 }

// patternInOperand looks for a pattern in the registers that the instruction
// names, for operands whose address could not be computed.
func (j *judge) patternInOperand() *Pattern {
	in := j.crash.Instruction
	if in == nil {
		return nil
	}
	for r := range dump.Reg(16) {
		name := j.arch.RegName(r)
		if val, ok := j.crash.Context.Get(r); ok && name != "" && namesRegister(in.Text, name) {
			if p := patternAt(val, j.arch); p != nil {
				return p
			}
		}
	}
	return nil
}

// namesRegister reports whether a register stands in an operand's brackets.
func namesRegister(text, reg string) bool {
	for {
		i := strings.IndexByte(text, '[')
		if i < 0 {
			return false
		}
		inner, rest, _ := strings.Cut(text[i+1:], "]")
		for _, part := range strings.FieldsFunc(inner, func(r rune) bool { return r == '+' || r == '*' || r == '-' }) {
			if part == reg {
				return true
			}
		}
		text = rest
	}
}

// accessClass is the class of an access violation whose address is known as
// well as it ever will be.
func (j *judge) accessClass(hidden bool) Class {
	v := j.v
	a, t := v.Address, v.Target
	switch {
	case v.Pattern != nil && !t.mapped():
		return v.Pattern.Class
	case a < nullPage, a >= j.top()-nullBelow && !(hidden && a == ^uint64(0)):
		return NullPointer
	case hidden && a == ^uint64(0):
		return NonCanonical // and which address is not known
	case hidden && canonical(a) && v.Access != Execute:
		return MisalignedData
	case j.arch.PointerSize() == 8 && !canonical(a):
		return NonCanonical
	case j.arch.PointerSize() == 8 && a>>63 != 0:
		return KernelAddress
	case j.outgrownStack():
		return StackOverflow
	case t.Kind == TargetUnloaded && !t.mapped():
		return UnloadedModule
	}
	return j.mappedClass(t)
}

// top is the end of the address space, less one.
func (j *judge) top() uint64 {
	if j.arch.PointerSize() == 4 {
		return 0xffffffff
	}
	return ^uint64(0)
}

// mappedClass judges by what is mapped at the address.
func (j *judge) mappedClass(t *Target) Class {
	r := t.Region
	if r == nil {
		switch {
		case j.v.Access == Execute && (t.Kind == TargetStack || t.Kind == TargetModule && t.knownData):
			return ExecuteData
		case j.v.Access == Write && t.Kind == TargetModule && t.Code:
			return WriteReadOnly
		case t.Kind == TargetNone:
			return WildPointer
		}
		return AccessViolation
	}
	switch {
	case r.State != memCommit:
		return WildPointer
	case r.Protect&pageGuard != 0:
		return GuardPage
	case j.v.Access == Execute && !r.Executable():
		return ExecuteData
	case j.v.Access == Write && r.Protect&pageWritable == 0 && r.Protect&pageReadable != 0:
		return WriteReadOnly
	}
	return AccessViolation
}

// outgrownStack recognises an access of the thread's own frame below what is
// left of its stack: the second overflow of a stack, for which there is no guard
// page any more.
func (j *judge) outgrownStack() bool {
	sp, ok := j.crash.Context.SP()
	if !ok || j.thread == nil || j.thread.StackLimit == 0 || j.v.Access == Execute {
		return false
	}
	a, limit := j.v.Address, j.thread.StackLimit
	if r := j.v.Target.Region; r != nil && r.State == memCommit && r.Protect&pageGuard == 0 && r.Protect&pageWritable != 0 {
		return false
	}
	const overshoot = 4 << 10 // what is committed below the limit at most
	return a < limit+overshoot && limit-min(a, limit) < stackReach && near64(a, sp, stackReach) && sp < limit+stackReach
}

func near64(a, b, reach uint64) bool { return a-b < reach || b-a < reach }

// bounds of the thread's stack that hold an address.
func onStack(t *triage.Thread, va uint64) bool {
	return t.StackBase != 0 && va >= t.StackLimit && va < t.StackBase
}
