package report

// ThreadJSON is one thread. frames is the user half, kernel_frames the kernel
// half; the joined stack is kernel_frames and then frames.
type ThreadJSON struct {
	ThreadID       uint32            `json:"thread_id"`
	ThreadName     string            `json:"thread_name,omitempty"`
	FrameCount     int               `json:"frame_count"`
	Frames         []FrameJSON       `json:"frames"`
	KernelFrames   []FrameJSON       `json:"kernel_frames,omitempty"`
	Wow64Frames    []FrameJSON       `json:"wow64_frames,omitempty"`
	HandlerFrames  []FrameJSON       `json:"handler_frames,omitempty"`
	Stitched       bool              `json:"stitched"`
	Seam           *SeamJSON         `json:"seam,omitempty"`
	Stop           *StopJSON         `json:"stop,omitempty"`
	KernelStop     *StopJSON         `json:"kernel_stop,omitempty"`
	LastErrorValue string            `json:"last_error_value,omitempty" jsonschema_description:"name of the last error, else its code"`
	LastErrorCode  string            `json:"last_error_code,omitempty"`
	TEB            string            `json:"teb,omitempty"`
	SuspendCount   *uint32           `json:"suspend_count,omitempty"`
	Stack          *StackJSON        `json:"stack,omitempty"`
	Times          *TimesJSON        `json:"times,omitempty"`
	StartAddress   string            `json:"start_address,omitempty"`
	Wait           *WaitJSON         `json:"wait,omitempty"`
	Kernel         *KernelThreadJSON `json:"kernel,omitempty"`
	Callbacks      []CallbackJSON    `json:"callbacks,omitempty" jsonschema_description:"with --callbacks: kernel stacks that the thread left to be called back into user mode, from the inside out"`
	Managed        *ManagedThread    `json:"managed,omitempty"`
	Truncated      bool              `json:"truncated,omitempty"`
	ThreadsIndex   *int              `json:"threads_index,omitempty" jsonschema_description:"in crashing_thread only: index in threads"`
}

// CallbackJSON is a kernel stack that a thread left. user_ip and user_sp are of
// the frame in frames that had entered the kernel by it.
type CallbackJSON struct {
	KernelFrames []FrameJSON `json:"kernel_frames,omitempty"`
	UserIP       string      `json:"user_ip,omitempty"`
	UserSP       string      `json:"user_sp,omitempty"`
	Stack        *StackJSON  `json:"stack"`
	Note         string      `json:"note,omitempty" jsonschema_description:"why there are no frames"`
}

// FrameJSON is one frame.
type FrameJSON struct {
	Frame           int               `json:"frame"`
	Trust           string            `json:"trust" jsonschema:"enum=context,enum=cfi,enum=frame_pointer,enum=cfi_scan,enum=scan,enum=inline,enum=none"`
	TrustDetail     string            `json:"trust_detail,omitempty"`
	Proof           string            `json:"proof,omitempty" jsonschema:"enum=proven,enum=unproven,enum=refuted" jsonschema_description:"of a frame behind a scan: whether it is on the stack; absent where no scan lies on the way"`
	Unwind          string            `json:"unwind,omitempty"`
	Offset          string            `json:"offset" jsonschema_description:"ip in frame 0, ip-1 in callers"`
	IP              string            `json:"ip" jsonschema_description:"program counter in frame 0, return address in callers"`
	ChildSP         string            `json:"child_sp,omitempty"`
	Module          string            `json:"module,omitempty"`
	ModuleOffset    string            `json:"module_offset,omitempty"`
	Function        string            `json:"function,omitempty" jsonschema_description:"qualified name without arguments"`
	FunctionFull    string            `json:"function_full,omitempty" jsonschema_description:"the whole declaration, where it is known and says more than function"`
	FunctionOffset  string            `json:"function_offset,omitempty"`
	File            string            `json:"file,omitempty"`
	Line            *uint32           `json:"line,omitempty"`
	Inlines         []InlineJSON      `json:"inlines,omitempty"`
	SymbolSource    string            `json:"symbol_source,omitempty" jsonschema:"enum=pdb,enum=sym,enum=dwarf,enum=coff,enum=export,enum=pdata,enum=clr,enum=none"`
	Managed         *ManagedFrame     `json:"managed,omitempty"`
	UnloadedModules []UnloadedHitJSON `json:"unloaded_modules,omitempty"`
	MissingSymbols  bool              `json:"missing_symbols"`
	Registers       map[string]string `json:"registers,omitempty"`
}

// InlineJSON is a function inlined into a frame, innermost first.
type InlineJSON struct {
	Function string  `json:"function,omitempty"`
	File     string  `json:"file,omitempty"`
	Line     *uint32 `json:"line,omitempty"`
}

// UnloadedHitJSON says that a frame lies where a module had been.
type UnloadedHitJSON struct {
	Module  string   `json:"module"`
	Offsets []string `json:"offsets"`
}

// SeamJSON is where a kernel half meets its user half.
type SeamJSON struct {
	Rule   string `json:"rule,omitempty"`
	UserIP string `json:"user_ip,omitempty"`
	UserSP string `json:"user_sp,omitempty"`
	Note   string `json:"note,omitempty"`
}

// StopJSON says why a walk ended.
type StopJSON struct {
	Reason string `json:"reason" jsonschema:"enum=end_of_stack,enum=no_unwind_data,enum=stack_missing,enum=bad_unwind_info,enum=no_progress,enum=limit,enum=trap_frame"`
	Detail string `json:"detail,omitempty"`
}

// StackJSON bounds a stack: it grows down from base.
type StackJSON struct {
	Base  string `json:"base"`
	Limit string `json:"limit"`
}

// TimesJSON is a thread's accounting; times of day are RFC 3339 in UTC.
type TimesJSON struct {
	Created       string   `json:"created,omitempty"`
	Exited        string   `json:"exited,omitempty"`
	KernelSeconds *float64 `json:"kernel_seconds,omitempty"`
	UserSeconds   *float64 `json:"user_seconds,omitempty"`
}

// KernelThreadJSON is what the kernel dump says of a thread.
type KernelThreadJSON struct {
	ETHREAD    string          `json:"ethread,omitempty"`
	State      string          `json:"state,omitempty"`
	WaitReason string          `json:"wait_reason,omitempty"`
	PID        *uint32         `json:"pid,omitempty" jsonschema_description:"of its process, in a dump of a whole system"`
	EPROCESS   string          `json:"eprocess,omitempty"`
	CPU        *int            `json:"cpu,omitempty"`
	Wait       *KernelWaitJSON `json:"wait,omitempty" jsonschema_description:"what the thread waits for, by the kernel's structures"`
	Note       string          `json:"note,omitempty"`
}
