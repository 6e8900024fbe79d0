package crash

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
)

// Inconsistency is a way in which a crash cannot have happened as the dump
// tells it: hardware that fails, a debugger that changed things, or code that
// was changed. Its text is part of the JSON contract.
type Inconsistency string

// The inconsistencies. The first five are those of rust-minidump.
const (
	DivideNotPossible    Inconsistency = "int_div_by_zero_not_possible"
	NotPrivileged        Inconsistency = "priv_instruction_crash_without_priv_instruction"
	FalselyNonCanonical  Inconsistency = "non_canonical_address_falsely_reported"
	AccessWasAllowed     Inconsistency = "access_violation_when_access_allowed"
	AccessNotInstruction Inconsistency = "crashing_access_not_found_in_memory_accesses"
	StackPointerAway     Inconsistency = "stack_pointer_outside_stack"
)

// inconsistencies finds what does not fit together. Whatever is not known fits.
func (j *judge) inconsistencies() {
	add := func(is bool, what Inconsistency) {
		if is {
			j.v.Inconsistencies = append(j.v.Inconsistencies, what)
		}
	}
	in := j.crash.Instruction
	switch j.crash.Code {
	case codeDivideByZero:
		add(in != nil && !divides(in, j.arch), DivideNotPossible)
	case codePrivileged:
		// Of ARM64 it is the system's settings that decide.
		add(in != nil && j.arch != dump.ARM64 && !mnemonicIn(in, privileged...), NotPrivileged)
	case codeAccessViolation:
		j.accessInconsistencies(add)
	}
	add(j.stackPointerAway(), StackPointerAway)
}

func (j *judge) accessInconsistencies(add func(bool, Inconsistency)) {
	c, v := j.crash, j.v
	in := c.Instruction
	if j.withheld() {
		add(v.Class == NonCanonical && v.Address == ^uint64(0) && v.Pattern == nil && explicit(in), FalselyNonCanonical)
		return
	}
	if !v.HasAddress {
		return
	}
	if r := v.Target.Region; r != nil && v.Access != "" {
		add(permits(r, v.Access), AccessWasAllowed)
	}
	add(v.Access != Execute && explicit(in) && !touches(in, v.Address), AccessNotInstruction)
}

// divides reports whether an instruction can raise a division by zero. ARM64 divides
// by zero without a word; compilers put a check in front that ends here.
func divides(in *triage.Instruction, arch dump.Arch) bool {
	if arch == dump.ARM64 {
		return in.Text == "brk #0xf004"
	}
	return mnemonicIn(in, "div", "idiv")
}

// explicit reports whether every memory access of an instruction is one of its
// operands, with its address known.
func explicit(in *triage.Instruction) bool {
	if in == nil || mnemonicIn(in, implicit...) || strings.HasPrefix(in.Text, "rep") {
		return false
	}
	for _, a := range in.Accesses {
		if !a.Known || a.Size == 0 {
			return false
		}
	}
	return true
}

// touches reports whether an operand covers an address.
func touches(in *triage.Instruction, va uint64) bool {
	for _, a := range in.Accesses {
		if va-a.Address < uint64(a.Size) {
			return true
		}
	}
	return false
}

// implicit are the instructions that touch memory without naming it.
var implicit = []string{"push", "pusha", "pushad", "pushf", "pushfd", "pushfq", "pop", "popa", "popad", "popf", "popfd", "popfq",
	"call", "lcall", "ret", "lret", "retf", "iret", "iretd", "iretq", "enter", "leave", "int", "int1", "int3", "into", "syscall", "sysenter", "sysexit", "sysret",
	"movsb", "movsw", "movsd", "movsq", "stosb", "stosw", "stosd", "stosq", "lodsb", "lodsw", "lodsd", "lodsq",
	"cmpsb", "cmpsw", "cmpsd", "cmpsq", "scasb", "scasw", "scasd", "scasq", "insb", "insw", "insd", "outsb", "outsw", "outsd",
	"xlatb", "xlat", "maskmovq", "maskmovdqu", "fxsave", "fxsave64", "fxrstor", "fxrstor64", "xsave", "xsave64", "xrstor", "xrstor64", "xsaveopt", "xsaveopt64",
	"fnsave", "frstor", "fldenv", "fnstenv", "jmp", "ljmp", "bound", "bt", "bts", "btr", "btc"}

// privileged are the instructions that user code may not execute, those that
// depend on IOPL or on what the system allows among them.
var privileged = []string{"hlt", "cli", "sti", "in", "insb", "insw", "insd", "out", "outsb", "outsw", "outsd", "rdmsr", "wrmsr", "rdpmc", "rdtsc", "rdtscp",
	"lgdt", "lidt", "lldt", "ltr", "lmsw", "clts", "invd", "wbinvd", "invlpg", "invpcid", "swapgs", "sysret", "sysexit", "mov", "xsetbv", "monitor", "mwait", "smsw", "sgdt", "sidt", "str", "sldt", "iret", "iretd", "iretq", "popf", "popfd", "popfq"}

// mnemonicIn reports whether an instruction's mnemonic, behind a lock prefix,
// is one of a list.
func mnemonicIn(in *triage.Instruction, list ...string) bool {
	text := strings.TrimPrefix(in.Text, "lock ")
	word, rest, _ := strings.Cut(text, " ")
	for _, m := range list {
		if m != word {
			continue
		}
		// A mov is privileged where a control or debug register is in it.
		if m == "mov" && !strings.Contains(rest, "cr") && !strings.Contains(rest, "dr") {
			return false
		}
		return true
	}
	return false
}

// stackPointerAway reports whether the stack pointer is on no stack that the
// thread is known to have. Fibers have their own, in private memory.
func (j *judge) stackPointerAway() bool {
	sp, ok := j.crash.Context.SP()
	if !ok || j.thread == nil || j.thread.StackBase == 0 || j.v.Class == StackOverflow {
		return false
	}
	if sp >= j.thread.StackLimit-min(j.thread.StackLimit, stackReach) && sp <= j.thread.StackBase {
		return false
	}
	r := j.mem.Region(sp)
	return len(j.mem.Regions) > 0 && (r == nil || r.State != memCommit || r.Type != memPrivate)
}
