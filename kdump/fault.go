package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// faultRule says which parameters of a bugcheck (0 to 3, -1 none) point at the
// registers of the fault and describe it.
type faultRule struct {
	code             uint32
	context, trap    int // CONTEXT, KTRAP_FRAME
	record           int // EXCEPTION_RECORD
	number, location int // exception code, and address of the instruction, by value
}

// faultRules restates the public bug check reference.
var faultRules = [...]faultRule{
	{code: 0x0a, context: -1, trap: -1, record: -1, number: -1, location: 3},  // IRQL_NOT_LESS_OR_EQUAL
	{code: 0x1e, context: -1, trap: -1, record: -1, number: 0, location: 1},   // KMODE_EXCEPTION_NOT_HANDLED
	{code: 0x23, context: 2, trap: -1, record: 1, number: -1, location: -1},   // FAT_FILE_SYSTEM
	{code: 0x24, context: 2, trap: -1, record: 1, number: -1, location: -1},   // NTFS_FILE_SYSTEM
	{code: 0x26, context: 2, trap: -1, record: 1, number: -1, location: -1},   // CDFS_FILE_SYSTEM
	{code: 0x27, context: 2, trap: -1, record: 1, number: -1, location: -1},   // RDR_FILE_SYSTEM
	{code: 0x2b, context: -1, trap: 0, record: -1, number: -1, location: -1},  // PANIC_STACK_SWITCH
	{code: 0x30, context: -1, trap: 2, record: -1, number: -1, location: -1},  // SET_OF_INVALID_CONTEXT
	{code: 0x34, context: 2, trap: -1, record: 1, number: -1, location: -1},   // CACHE_MANAGER
	{code: 0x3b, context: 2, trap: -1, record: -1, number: 0, location: 1},    // SYSTEM_SERVICE_EXCEPTION
	{code: 0x50, context: -1, trap: -1, record: -1, number: -1, location: 2},  // PAGE_FAULT_IN_NONPAGED_AREA
	{code: 0x7e, context: 3, trap: -1, record: 2, number: 0, location: 1},     // SYSTEM_THREAD_EXCEPTION_NOT_HANDLED
	{code: 0x7f, context: -1, trap: -1, record: -1, number: -1, location: -1}, // UNEXPECTED_KERNEL_MODE_TRAP: see doubleFault
	{code: 0x8e, context: -1, trap: 2, record: -1, number: 0, location: 1},    // KERNEL_MODE_EXCEPTION_NOT_HANDLED
	{code: 0x9b, context: 2, trap: -1, record: 1, number: -1, location: -1},   // UDFS_FILE_SYSTEM
	{code: 0xbe, context: -1, trap: 2, record: -1, number: -1, location: -1},  // ATTEMPTED_WRITE_TO_READONLY_MEMORY
	{code: 0xc5, context: -1, trap: -1, record: -1, number: -1, location: 3},  // DRIVER_CORRUPTED_EXPOOL
	{code: 0xcc, context: -1, trap: -1, record: -1, number: -1, location: 2},  // PAGE_FAULT_IN_FREED_SPECIAL_POOL
	{code: 0xcd, context: -1, trap: -1, record: -1, number: -1, location: 2},  // PAGE_FAULT_BEYOND_END_OF_ALLOCATION
	{code: 0xce, context: -1, trap: -1, record: -1, number: -1, location: 2},  // DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS
	{code: 0xcf, context: -1, trap: -1, record: -1, number: -1, location: 2},  // TERMINAL_SERVER_DRIVER_MADE_INCORRECT_MEMORY_REFERENCE
	{code: 0xd0, context: -1, trap: -1, record: -1, number: -1, location: 3},  // DRIVER_CORRUPTED_MMPOOL
	{code: 0xd1, context: -1, trap: -1, record: -1, number: -1, location: 3},  // DRIVER_IRQL_NOT_LESS_OR_EQUAL
	{code: 0xd3, context: -1, trap: -1, record: -1, number: -1, location: 3},  // DRIVER_PORTION_MUST_BE_NONPAGED
	{code: 0xd4, context: -1, trap: -1, record: -1, number: -1, location: 3},  // SYSTEM_SCAN_AT_RAISED_IRQL_CAUGHT_IMPROPER_DRIVER_UNLOAD
	{code: 0xd5, context: -1, trap: -1, record: -1, number: -1, location: 2},  // DRIVER_PAGE_FAULT_IN_FREED_SPECIAL_POOL
	{code: 0xd6, context: -1, trap: -1, record: -1, number: -1, location: 2},  // DRIVER_PAGE_FAULT_BEYOND_END_OF_ALLOCATION
	{code: 0xdb, context: -1, trap: -1, record: -1, number: -1, location: 3},  // DRIVER_CORRUPTED_SYSPTES
	{code: 0xfc, context: -1, trap: 2, record: -1, number: -1, location: -1},  // ATTEMPTED_EXECUTE_OF_NOEXECUTE_MEMORY
	{code: 0x108, context: 2, trap: -1, record: 1, number: -1, location: -1},  // THIRD_PARTY_FILE_SYSTEM_FAILURE
	{code: 0x10f, context: 1, trap: -1, record: 0, number: -1, location: -1},  // RESOURCE_MANAGER_EXCEPTION_NOT_HANDLED
	{code: 0x12c, context: 2, trap: -1, record: 1, number: -1, location: -1},  // EXFAT_FILE_SYSTEM
	{code: 0x135, context: 1, trap: -1, record: -1, number: 0, location: -1},  // REGISTRY_FILTER_DRIVER_EXCEPTION
	{code: 0x139, context: -1, trap: 1, record: 2, number: -1, location: -1},  // KERNEL_SECURITY_CHECK_FAILURE
	{code: 0x149, context: 2, trap: -1, record: 1, number: -1, location: -1},  // REFS_FILE_SYSTEM
	{code: 0x151, context: -1, trap: 1, record: -1, number: -1, location: 0},  // UNSUPPORTED_INSTRUCTION_MODE
	{code: 0x18d, context: 3, trap: -1, record: 2, number: -1, location: -1},  // SECURE_FAULT_UNHANDLED
	{code: 0x1aa, context: 2, trap: -1, record: 3, number: -1, location: -1},  // EXCEPTION_ON_INVALID_STACK
	{code: 0x1ab, context: 2, trap: -1, record: -1, number: -1, location: -1}, // UNWIND_ON_INVALID_STACK
}

// fault is what the bugcheck's parameters lead to.
type fault struct {
	rule      *faultRule // nil for codes that none describes
	regs      dump.Registers
	source    dump.ContextSource
	parameter int // that points to regs, -1 none
	record    *ExceptionRecord
}

func (f *File) faultInfo() *fault {
	f.faultOnce.Do(func() {
		f.fault.parameter = -1
		if !f.hdr.code.ok || f.live {
			return
		}
		code := f.bugCheckCode()
		for i := range faultRules {
			if faultRules[i].code == code {
				f.readFault(&faultRules[i])
			}
		}
	})
	return &f.fault
}

func (f *File) readFault(rule *faultRule) {
	p := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return f.hdr.params[i]
	}
	f.fault.rule = rule
	if regs, ok := f.contextAt(p(rule.context)); ok {
		f.fault.regs, f.fault.source, f.fault.parameter = regs, dump.ContextParameter, rule.context
	} else if regs, ok := f.kernelFrame(p(rule.trap)); ok {
		f.fault.regs, f.fault.source, f.fault.parameter = regs, dump.ContextTrapFrame, rule.trap
	} else if regs, source, parameter, ok := f.doubleFault(rule.code); ok {
		f.fault.regs, f.fault.source, f.fault.parameter = regs, source, parameter
	}
	if r := f.recordAt(p(rule.record), threadcontext.ExceptionRecordSize(f.hdr.ptr)); r != nil {
		f.fault.record = parseExceptionRecord(cursor.New(r.all(), "EXCEPTION_RECORD", -1), f.hdr.ptr)
	}
	if f.fault.record == nil && rule.number >= 0 {
		f.fault.record = &ExceptionRecord{Code: uint32(p(rule.number)), Address: p(rule.location)}
		if rule.code == bugException {
			f.fault.record.Parameters = f.hdr.params[2:]
		}
	}
}

// FaultContext returns the registers at the fault when a parameter of the
// bugcheck points at a CONTEXT (ContextParameter) or a trap frame
// (ContextTrapFrame), or a task gate left them in a task state segment
// (ContextTask), and the dump holds it. A trap frame of x64 knows the program
// counter, stack pointer and volatile registers only.
func (f *File) FaultContext() (dump.Registers, dump.ContextSource, bool) {
	i := f.faultInfo()
	return i.regs, i.source, i.source != dump.ContextNone
}

// FaultParameter returns which parameter (0 to 3) a bugcheck of this code names
// the registers of its fault by, -1 when it names none. found is set when they
// could be read there.
func (f *File) FaultParameter() (parameter int, found bool) {
	i := f.faultInfo()
	switch {
	case i.parameter >= 0:
		return i.parameter, true
	case i.rule == nil:
		return -1, false
	case i.rule.context >= 0:
		return i.rule.context, false
	}
	return i.rule.trap, false
}

// FaultAddress returns the address of the instruction at fault that a parameter
// gives by value.
func (f *File) FaultAddress() (va uint64, parameter int, ok bool) {
	i := f.faultInfo()
	if i.rule == nil || i.rule.location < 0 || f.hdr.params[i.rule.location] == 0 {
		return 0, -1, false
	}
	return f.hdr.params[i.rule.location], i.rule.location, true
}

// Exception implements dump.Source: the exception that a bugcheck reports by its
// parameters, nil when it reports none. The header's record is not used, it is a
// stand-in.
func (f *File) Exception() *dump.Exception {
	i := f.faultInfo()
	if i.record == nil {
		return nil
	}
	e := &dump.Exception{Code: i.record.Code, Flags: i.record.Flags, Record: i.record.Record,
		Address: i.record.Address, Parameters: i.record.Parameters, Context: i.regs}
	if t := f.crashedThread(); t != nil {
		e.ThreadID = t.ID
	}
	return e
}

// crashedThread returns the header's thread.
func (f *File) crashedThread() *dump.Thread {
	threads := f.Threads()
	for i := range threads {
		if f.thread != nil && threads[i].Kernel.ETHREAD == f.thread.va {
			return &threads[i]
		}
	}
	return nil
}

// BugCheckEntry reports whether the header's registers stand at the first
// instruction of KeBugCheckEx, so that its return address is at the stack
// pointer: the stand-in exception's address is the program counter, and the
// argument registers still hold the bugcheck code and parameters. AMD64 only.
func (f *File) BugCheckEntry() bool {
	const standIn = 0x80000003
	regs, ok := f.HeaderContext()
	e := f.hdr.exception
	if !ok || f.hdr.arch != dump.AMD64 || e == nil || e.Code != standIn || !f.hdr.code.ok {
		return false
	}
	pc, _ := regs.PC()
	if pc != e.Address {
		return false
	}
	code, ok := regs.Get(dump.RCX)
	if !ok || uint32(code) != f.hdr.code.v && uint32(code) != f.bugCheckCode() {
		return false
	}
	for i, reg := range []dump.Reg{dump.RDX, dump.R8, dump.R9} {
		if v, ok := regs.Get(reg); !ok || v != f.hdr.params[i] {
			return false
		}
	}
	return true
}

// kernelFrame decodes a trap frame of a fault in the kernel. It holds no
// nonvolatile registers but the frame pointer, on x86 all of them.
func (f *File) kernelFrame(va uint64) (dump.Registers, bool) {
	size := trapFrameSize(f.hdr.arch)
	if f.hdr.arch == dump.X86 {
		size = threadcontext.TrapFrameKernelX86
	}
	r := f.recordAt(va, size)
	if r == nil {
		return dump.Registers{}, false
	}
	f.usedParts(va, len(r.b), usedTrapFrame(f.hdr.arch))
	regs := dump.Registers{Arch: f.hdr.arch}
	var slots []trapSlot
	switch f.hdr.arch {
	case dump.AMD64:
		tf, err := threadcontext.ParseTrapFrame(r.b)
		if err != nil || tf.CS == 0 || tf.CS&3 != 0 {
			return regs, false
		}
		slots = trapSlotsAMD64[:]
	case dump.ARM64:
		if spsr, _ := r.uint(0x90, 4); spsr&0xf == 0 {
			return regs, false
		}
		slots = trapSlotsARM64()
	default:
		tf, err := threadcontext.ParseTrapFrameX86(r.b)
		if err != nil || tf.Mode() != threadcontext.TrapKernel {
			return regs, false
		}
		regs = tf.Registers(va)
		slots = f.volatileSlotsX86()
	}
	for _, s := range slots {
		if v, ok := r.raw(s.off, s.size); ok {
			regs.Set(s.reg, v)
		}
	}
	return regs, believable(&regs)
}

type trapSlot struct {
	off, size int
	reg       dump.Reg
}

var trapSlotsAMD64 = [...]trapSlot{
	{0x30, 8, dump.RAX}, {0x38, 8, dump.RCX}, {0x40, 8, dump.RDX}, {0x48, 8, dump.R8}, {0x50, 8, dump.R9},
	{0x58, 8, dump.R10}, {0x60, 8, dump.R11}, {0x158, 8, dump.RBP}, {0x168, 8, dump.RIP}, {0x170, 2, dump.RegCS},
	{0x178, 4, dump.RegEFlags}, {0x180, 8, dump.RSP}, {0x188, 2, dump.RegSS},
}

// volatileSlotsX86: edx, ecx and eax lie in the head of the frame, which has one
// layout in the public symbols up to Windows 7 and another in those of Windows 10.
func (f *File) volatileSlotsX86() []trapSlot {
	const windows7, windows10 = 7601, 10240
	at := 0x3c
	switch {
	case f.hdr.build >= windows10:
		at = 0x38
	case f.hdr.build > windows7:
		return nil
	}
	return []trapSlot{{at, 4, dump.RDX}, {at + 4, 4, dump.RCX}, {at + 8, 4, dump.RAX}}
}

// trapSlotsARM64: X0 to X18 from 0xa0, then Lr, Fp, Pc.
func trapSlotsARM64() []trapSlot {
	s := []trapSlot{{0x90, 4, dump.ARM64CPSR}, {0x98, 8, dump.ARM64SP}, {0x138, 8, dump.ARM64LR}, {0x140, 8, dump.ARM64FP}, {0x148, 8, dump.ARM64PC}}
	for x := range 19 {
		s = append(s, trapSlot{0xa0 + 8*x, 8, dump.Reg(x)})
	}
	return s
}
