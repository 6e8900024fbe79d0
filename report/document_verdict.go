package report

// AnalysisJSON is the verdict: what happened, in general and in one sentence,
// and who is to blame. Its parts say the rest.
type AnalysisJSON struct {
	Class      string             `json:"class,omitempty" jsonschema_description:"crash, bugcheck, live_dump, hang or snapshot"`
	Reason     string             `json:"reason,omitempty" jsonschema_description:"one sentence"`
	Blame      string             `json:"blame,omitempty" jsonschema_description:"module!function held responsible"`
	Confidence string             `json:"confidence,omitempty" jsonschema_description:"of the blame: high, medium or low"`
	NextSteps  []string           `json:"next_steps,omitempty" jsonschema_description:"what would tell more"`
	Crash      *CrashAnalysisJSON `json:"crash,omitempty" jsonschema_description:"of a dump with an exception"`
	Hang       *HangAnalysisJSON  `json:"hang,omitempty" jsonschema_description:"what the threads do to each other"`
	Raising    []EarlierJSON      `json:"raising,omitempty" jsonschema_description:"exceptions that threads were raising or handling, of a dump without one of its own"`
	Stack      []string           `json:"stack,omitempty" jsonschema_description:"the innermost call sites (triage --brief)"`
}

// CrashAnalysisJSON is what a crash was.
type CrashAnalysisJSON struct {
	Class          string           `json:"class" jsonschema_description:"such as null_pointer, stack_overflow, heap_corruption; docs/triage.md lists them"`
	Access         string           `json:"access,omitempty" jsonschema_description:"what was tried: read, write or execute"`
	Address        string           `json:"address,omitempty" jsonschema_description:"where it was tried, computed where the exception does not say"`
	Target         *TargetJSON      `json:"target,omitempty" jsonschema_description:"what lies there"`
	Pattern        string           `json:"pattern,omitempty" jsonschema_description:"32 bits of the pattern of bad memory that the address comes from"`
	PatternMeaning string           `json:"pattern_meaning,omitempty"`
	SubCode        string           `json:"subcode,omitempty" jsonschema_description:"of a fast fail"`
	Status         string           `json:"status,omitempty" jsonschema_description:"of an in-page error"`
	Detail         string           `json:"detail,omitempty" jsonschema_description:"module or procedure that the exception names"`
	Constant       bool             `json:"constant_address,omitempty" jsonschema_description:"the address stands in the instruction: such crashes are deliberate"`
	Rule           string           `json:"rule,omitempty" jsonschema_description:"file:line of the rule about frames that gave the class"`
	Exception      *ThrownJSON      `json:"exception,omitempty" jsonschema_description:"object of a C++ or .NET exception"`
	Heap           *HeapFailureJSON `json:"heap_failure,omitempty" jsonschema_description:"what the heap found when it ended the program"`
	Earlier        []EarlierJSON    `json:"earlier_exceptions,omitempty" jsonschema_description:"that the thread was raising or handling, innermost first"`
	Recursion      *RecursionJSON   `json:"recursion,omitempty"`
	Registers      []RegisterJSON   `json:"registers,omitempty" jsonschema_description:"that point somewhere"`
	Blame          *CrashBlameJSON  `json:"blame,omitempty"`
}

// TargetJSON is what an address points to.
type TargetJSON struct {
	Kind     string  `json:"kind,omitempty" jsonschema_description:"module, stack, guard, private, mapped, image, reserved, free, unloaded, memory; absent: nothing that the dump knows of"`
	Module   string  `json:"module,omitempty"`
	Offset   string  `json:"offset,omitempty" jsonschema_description:"in module"`
	Function string  `json:"function,omitempty"`
	Unloaded string  `json:"unloaded_module,omitempty" jsonschema_description:"that had been there"`
	ThreadID *uint32 `json:"thread_id,omitempty" jsonschema_description:"whose stack it is"`
	State    string  `json:"state,omitempty"`
	Type     string  `json:"type,omitempty"`
	Protect  string  `json:"protect,omitempty"`
	Text     string  `json:"text,omitempty" jsonschema_description:"beginning of the text that stands there"`
}

// ThrownJSON is the object of a language's exception.
type ThrownJSON struct {
	Type    string   `json:"type,omitempty"`
	Types   []string `json:"types,omitempty" jsonschema_description:"that it can be caught as"`
	Message string   `json:"message,omitempty"`
	HResult string   `json:"hresult,omitempty"`

	TypesByHResult []string `json:"types_by_hresult,omitempty" jsonschema_description:"types of .NET exceptions that have this hresult by default, where the object was not read"`

	Address  string `json:"address,omitempty"`
	Rethrown bool   `json:"rethrown,omitempty" jsonschema_description:"raised again without an object: this is the one whose record is on the stack"`
}

// HeapFailureJSON is what a heap found to be damaged.
type HeapFailureJSON struct {
	Type    uint32 `json:"type"`
	Name    string `json:"name,omitempty" jsonschema_description:"of the type, as in ntdll's _HEAP_FAILURE_TYPE"`
	Meaning string `json:"meaning,omitempty"`
	Heap    string `json:"heap"`
	Block   string `json:"block,omitempty"`
}

// RecursionJSON is a run of frames that repeats.
type RecursionJSON struct {
	Frames   []string `json:"frames" jsonschema_description:"of one round, innermost first"`
	From     int      `json:"from" jsonschema_description:"index of the first frame of the first round"`
	Rounds   int      `json:"rounds"`
	AtLeast  bool     `json:"at_least,omitempty" jsonschema_description:"there are more rounds than were walked"`
	Bytes    uint64   `json:"bytes,omitempty" jsonschema_description:"of stack that a round takes"`
	Estimate uint64   `json:"estimate,omitempty" jsonschema_description:"rounds by the size of the stack"`
}

// RegisterJSON is a register of the fault and what it points to.
type RegisterJSON struct {
	Name           string      `json:"name"`
	Value          string      `json:"value"`
	PatternMeaning string      `json:"pattern_meaning,omitempty"`
	Target         *TargetJSON `json:"target,omitempty"`
}

// CrashBlameJSON is the frame held responsible for a crash.
type CrashBlameJSON struct {
	Frame        int     `json:"frame" jsonschema_description:"index in crashing_thread.frames"`
	Module       string  `json:"module,omitempty"`
	ModuleOffset string  `json:"module_offset,omitempty"`
	Version      string  `json:"version,omitempty"`
	Function     string  `json:"function,omitempty"`
	File         string  `json:"file,omitempty"`
	Line         *uint32 `json:"line,omitempty"`
	Trust        string  `json:"trust"`
	Rule         string  `json:"rule" jsonschema_description:"why it and not another"`
	Source       string  `json:"source,omitempty" jsonschema_description:"file:line of the rule that named it"`
	Confidence   string  `json:"confidence"`
}

// BitFlipJSON is an address one bit away at which the access would have been
// allowed; names and meaning are rust-minidump's.
type BitFlipJSON struct {
	Address        string             `json:"address"`
	Confidence     float64            `json:"confidence"`
	SourceRegister string             `json:"source_register,omitempty"`
	Details        BitFlipDetailsJSON `json:"details"`
}

// BitFlipDetailsJSON is what speaks for and against a bit flip.
type BitFlipDetailsJSON struct {
	WasNonCanonical bool `json:"was_non_canonical"`
	IsNull          bool `json:"is_null"`
	WasLow          bool `json:"was_low"`
	PoisonRegisters bool `json:"poison_registers"`
	NearbyRegisters int  `json:"nearby_registers"`
}
