package crash

// Class is the kind of a crash. Its text is part of the JSON contract.
type Class string

// Classes of accesses that failed. Verdict.Access says what was tried.
const (
	NullPointer     Class = "null_pointer"         // in the pages at 0 that are never mapped
	NonCanonical    Class = "non_canonical"        // an address that the processor refuses before any look at its pages
	WildPointer     Class = "wild_pointer"         // not mapped, and nothing says why
	UseAfterFree    Class = "use_after_free"       // through a pattern that marks freed memory
	Uninitialized   Class = "uninitialized_memory" // through a pattern that marks memory never written
	OutOfBounds     Class = "out_of_bounds"        // through a pattern that surrounds blocks of memory
	UnloadedModule  Class = "unloaded_module"      // where a module had been
	ExecuteData     Class = "execute_data"         // mapped, and not for execution
	WriteReadOnly   Class = "write_read_only"      // mapped, and not for writing
	KernelAddress   Class = "kernel_address"       // in the system's half of the address space
	GuardPage       Class = "guard_page"
	MisalignedData  Class = "misaligned_data"
	AccessViolation Class = "access_violation" // nothing is known of the address
	StackOverflow   Class = "stack_overflow"
	InPageError     Class = "in_page_error" // the file or disk behind mapped memory failed
)

// Classes of what programs and their runtimes end themselves with.
const (
	HeapCorruption    Class = "heap_corruption"
	FailFast          Class = "fail_fast" // with Verdict.SubCode
	StackCookie       Class = "stack_cookie"
	ControlFlowGuard  Class = "control_flow_guard"
	CorruptList       Class = "corrupt_list"
	InvalidParameter  Class = "invalid_parameter"
	Abort             Class = "abort"
	Assertion         Class = "assertion"
	PureCall          Class = "pure_virtual_call"
	Terminate         Class = "terminate" // std::terminate
	OutOfMemory       Class = "out_of_memory"
	CxxException      Class = "cxx_exception"
	CLRException      Class = "clr_exception"
	LanguageException Class = "language_exception" // of another language's runtime
	RaisedException   Class = "raised_exception"   // a code of the program's own
	StatusRaised      Class = "status_raised"      // a system status, raised by software
	DelayLoad         Class = "delay_load"
	LoaderFailure     Class = "loader_failure"
	InvalidHandle     Class = "invalid_handle"
	BadHandler        Class = "bad_exception_handling"
	Deliberate        Class = "deliberate_crash"
	HangReported      Class = "hang_reported" // the system ended a window that did not answer
)

// Classes of what the processor refused, and of debuggers.
const (
	DivideByZero          Class = "divide_by_zero"
	ArithmeticOverflow    Class = "arithmetic_overflow"
	FloatingPoint         Class = "floating_point"
	IllegalInstruction    Class = "illegal_instruction"
	PrivilegedInstruction Class = "privileged_instruction"
	Breakpoint            Class = "breakpoint"
	DebuggerBreak         Class = "debugger_break" // no fault: a debugger at start, or attaching
	SingleStep            Class = "single_step"
	DumpRequested         Class = "dump_requested" // no fault: the program asked for a dump of itself
	Unknown               Class = "unknown_exception"
)

// Exception codes that are looked into.
const (
	codeAccessViolation = 0xc0000005
	codeInPageError     = 0xc0000006
	codeFailFast        = 0xc0000409
	codeGuardPage       = 0x80000001
	codeMisaligned      = 0x80000002
	codeHeapCorruption  = 0xc0000374
	codeDivideByZero    = 0xc0000094
	codePrivileged      = 0xc0000096
	codeBreakpoint      = 0x80000003
	codeWx86Breakpoint  = 0x4000001f
	codeCxx             = 0xe06d7363
	codeGCC             = 0x20474343
	codeCLR             = 0xe0434352
	codeCLROld          = 0xe0434f4d
	codeDelayModule     = 0xc06d007e
	codeDelayProcedure  = 0xc06d007f
	codeBreakpad        = 0xc000000d // with an assertion record
)

// classOfCode is the class of a code that needs no look at anything else.
var classOfCode = map[uint32]Class{
	codeAccessViolation: AccessViolation,
	codeInPageError:     InPageError,
	codeGuardPage:       GuardPage,
	codeMisaligned:      MisalignedData,
	codeBreakpoint:      Breakpoint,
	codeWx86Breakpoint:  Breakpoint,
	0x80000004:          SingleStep,
	0x4000001e:          SingleStep, // STATUS_WX86_SINGLE_STEP
	0xc0000008:          InvalidHandle,
	0xc0000017:          OutOfMemory, // STATUS_NO_MEMORY
	0xc000001d:          IllegalInstruction,
	0xc0000025:          BadHandler, // EXCEPTION_NONCONTINUABLE_EXCEPTION
	0xc0000026:          BadHandler, // EXCEPTION_INVALID_DISPOSITION
	0xc000008c:          OutOfBounds,
	0xc000008d:          FloatingPoint,
	0xc000008e:          FloatingPoint,
	0xc000008f:          FloatingPoint,
	0xc0000090:          FloatingPoint,
	0xc0000091:          FloatingPoint,
	0xc0000092:          FloatingPoint,
	0xc0000093:          FloatingPoint,
	codeDivideByZero:    DivideByZero,
	0xc0000095:          ArithmeticOverflow,
	codePrivileged:      PrivilegedInstruction,
	0xc00000fd:          StackOverflow,
	0xc000012d:          OutOfMemory,   // STATUS_COMMITMENT_LIMIT
	0xc0000135:          LoaderFailure, // STATUS_DLL_NOT_FOUND
	0xc0000138:          LoaderFailure, // STATUS_ORDINAL_NOT_FOUND
	0xc0000139:          LoaderFailure, // STATUS_ENTRYPOINT_NOT_FOUND
	0xc0000142:          LoaderFailure, // STATUS_DLL_INIT_FAILED
	0xc00002b4:          FloatingPoint, // STATUS_FLOAT_MULTIPLE_FAULTS
	0xc00002b5:          FloatingPoint, // STATUS_FLOAT_MULTIPLE_TRAPS
	codeHeapCorruption:  HeapCorruption,
	codeFailFast:        FailFast,
	0xc0000417:          InvalidParameter, // STATUS_INVALID_CRUNTIME_PARAMETER
	0xc0000420:          Assertion,        // STATUS_ASSERTION_FAILURE
	0xc0000602:          FailFast,         // STATUS_FAIL_FAST_EXCEPTION
	0xcfffffff:          HangReported,     // STATUS_APPLICATION_HANG
	0x40000015:          Abort,            // STATUS_FATAL_APP_EXIT
	codeDelayModule:     DelayLoad,
	codeDelayProcedure:  DelayLoad,
	codeCxx:             CxxException,
	codeGCC:             CxxException,
	codeCLR:             CLRException,
	codeCLROld:          CLRException,
	0x0eedface:          LanguageException, // Delphi
	0x0eedfade:          LanguageException,
	0x21474343:          CxxException,
	0x22474343:          CxxException,
	0xe0000008:          OutOfMemory, // Chromium's and its kin's
	0x0517a7ed:          DumpRequested,
	0xffffffff:          DumpRequested, // Breakpad's, for a dump without a crash
}

// classOfFailFast is the class of a fast-fail subcode that says more than that
// the program ended itself. Source: winnt.h, FAST_FAIL_*.
var classOfFailFast = map[uint64]Class{
	0:    StackCookie, // FAST_FAIL_LEGACY_GS_VIOLATION
	2:    StackCookie, // FAST_FAIL_STACK_COOKIE_CHECK_FAILURE
	3:    CorruptList, // FAST_FAIL_CORRUPT_LIST_ENTRY
	6:    StackCookie, // FAST_FAIL_GS_COOKIE_INIT
	7:    Abort,       // FAST_FAIL_FATAL_APP_EXIT: abort()
	0xa:  ControlFlowGuard,
	0xb:  ControlFlowGuard,
	0x1d: CorruptList,    // FAST_FAIL_INVALID_BALANCED_TREE
	0x32: HeapCorruption, // FAST_FAIL_HEAP_METADATA_CORRUPTION
}

// classOf is the class by the exception's code alone. Bit 29 of a code is set
// by whoever defines codes of his own.
func classOf(code uint32) Class {
	if c, ok := classOfCode[code]; ok {
		return c
	}
	const customer = 1 << 29
	switch {
	case code&customer != 0:
		return RaisedException
	case code>>30 == 3:
		return StatusRaised
	}
	return Unknown
}

// accessClasses are the classes of a failed access.
func (c Class) isAccess() bool {
	switch c {
	case NullPointer, NonCanonical, WildPointer, UseAfterFree, Uninitialized, OutOfBounds, UnloadedModule,
		ExecuteData, WriteReadOnly, KernelAddress, GuardPage, MisalignedData, AccessViolation:
		return true
	}
	return false
}
