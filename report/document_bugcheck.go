package report

// BugCheckJSON is a bugcheck.
type BugCheckJSON struct {
	Code             string              `json:"code"`
	RawCode          string              `json:"raw_code"`
	Name             string              `json:"name,omitempty"`
	Class            string              `json:"class,omitempty" jsonschema_description:"driver, memory, hardware, storage, process, power, hang, video, verifier, security, requested, live or other"`
	Summary          string              `json:"summary,omitempty" jsonschema_description:"one sentence"`
	Parameters       []string            `json:"parameters" jsonschema:"minItems=4,maxItems=4"`
	ParameterMeaning []string            `json:"parameter_meaning,omitempty" jsonschema:"minItems=4,maxItems=4"`
	ParameterDetails []ParameterJSON     `json:"parameter_details,omitempty" jsonschema:"minItems=4,maxItems=4" jsonschema_description:"what the parameters' values say"`
	Documented       string              `json:"parameters_documented,omitempty" jsonschema_description:"none when the public reference says that there are none, undocumented when no public description of them is known; absent when there is one"`
	Unverified       bool                `json:"unverified,omitempty" jsonschema_description:"the meaning of the parameters was not checked against the public reference"`
	Live             bool                `json:"live"`
	BrokenDriver     string              `json:"broken_driver,omitempty" jsonschema_description:"that the kernel itself held responsible"`
	Blame            *BlameJSON          `json:"blame,omitempty"`
	Fault            *FaultJSON          `json:"fault,omitempty" jsonschema_description:"where the fault was and where its stack is walked from"`
	Exception        *BugCheckExcJSON    `json:"exception,omitempty" jsonschema_description:"that the parameters report"`
	Drivers          []DriverOnStackJSON `json:"drivers_on_stack,omitempty" jsonschema_description:"innermost first, then those that only a search of the stack found"`
	UnloadedHits     []BugUnloadedJSON   `json:"unloaded_hits,omitempty" jsonschema_description:"addresses where a driver had been"`
	IRPs             []BugIRPJSON        `json:"irps,omitempty" jsonschema_description:"that parameters point to"`
	Device           *DeviceNodeJSON     `json:"device,omitempty" jsonschema_description:"of a power failure: that the physical device object of the parameters belongs to"`
	Power            *PowerTriageJSON    `json:"power,omitempty" jsonschema_description:"what the power manager, or Plug and Play, was at"`
	Hung             *HungCPUJSON        `json:"hung_processor,omitempty" jsonschema_description:"that does not answer to clock interrupts"`
	Profile          *ProfileJSON        `json:"dpc_profile,omitempty" jsonschema_description:"what the DPC watchdog captured"`
	StackUse         *StackUseJSON       `json:"stack_use,omitempty" jsonschema_description:"of a double fault: how full the kernel stack was"`
	HardwareError    *HardwareErrorJSON  `json:"hardware_error,omitempty" jsonschema_description:"WHEA error record"`
	SecondaryData    []SecondaryDataJSON `json:"secondary_data,omitempty" jsonschema_description:"records that bugcheck callbacks added to the dump"`
}

// ParameterJSON is what a parameter's value says.
type ParameterJSON struct {
	Kind    string `json:"kind,omitempty" jsonschema_description:"addr, ip, status, trap, cxr, exr, dec, irql, val, sub, fastfail, tag, thread, process, irp, device, driver, text, unicode, whea, power, pnp, fxdevice, dpc, prcb, kasan, boot, serial"`
	Name    string `json:"name,omitempty" jsonschema_description:"of the value, or of what it points to"`
	Text    string `json:"text,omitempty" jsonschema_description:"that it points to"`
	Module  string `json:"module,omitempty" jsonschema_description:"that the address is in"`
	Offset  string `json:"offset,omitempty"`
	Symbol  string `json:"symbol,omitempty"`
	Missing bool   `json:"missing,omitempty" jsonschema_description:"what it points to is not in the dump, or is not what it must be"`
	Region  string `json:"region,omitempty" jsonschema_description:"of the address space that an address of data is in: null (the first 64 KB), user, kernel or not_canonical"`
	Unnamed bool   `json:"unnamed,omitempty" jsonschema_description:"the value is one of several kinds, and the public reference does not name it"`
}

// BlameJSON is who is held responsible for a bugcheck.
type BlameJSON struct {
	Culprit    string `json:"culprit,omitempty" jsonschema_description:"driver, hardware, process, kernel (for want of anybody else) or nobody (somebody asked for the dump)"`
	Name       string `json:"name,omitempty"`
	Module     string `json:"module,omitempty"`
	Version    string `json:"version,omitempty"`
	Offset     string `json:"offset,omitempty"`
	Symbol     string `json:"symbol,omitempty"`
	Frame      *int   `json:"frame,omitempty" jsonschema_description:"index in the thread's kernel_frames"`
	Parameter  *int   `json:"parameter,omitempty" jsonschema_description:"1 to 4: that led to it"`
	Step       string `json:"step,omitempty" jsonschema_description:"of the ladder in docs/bugchecks.md"`
	Rule       string `json:"rule,omitempty"`
	Source     string `json:"source,omitempty" jsonschema_description:"file:line of the rule that bounds the confidence"`
	Confidence string `json:"confidence,omitempty"`
}

// FaultJSON is where a bugcheck's fault was.
type FaultJSON struct {
	Context   string `json:"context" jsonschema_description:"the registers that the walk starts from: context_record, trap_frame, task_state (of x86, left by a task gate), or header (at the bugcheck itself)"`
	Parameter *int   `json:"parameter,omitempty" jsonschema_description:"1 to 4: that points to the registers or gives the address"`
	Missing   bool   `json:"missing,omitempty" jsonschema_description:"what the parameter points to is not in the dump"`
	TrapFrame string `json:"trap_frame,omitempty" jsonschema_description:"found on the stack"`
	Address   string `json:"address,omitempty" jsonschema_description:"of the instruction at fault"`
	Module    string `json:"module,omitempty"`
	Offset    string `json:"offset,omitempty"`
	Symbol    string `json:"symbol,omitempty"`
	Frame     *int   `json:"frame,omitempty" jsonschema_description:"index in the thread's kernel_frames; the frames before it belong to the bugcheck"`
}

// BugCheckExcJSON is the exception that a bugcheck's parameters report.
type BugCheckExcJSON struct {
	Code       string   `json:"code"`
	Name       string   `json:"name,omitempty"`
	Address    string   `json:"address,omitempty"`
	Parameters []string `json:"parameters,omitempty"`
}

// DriverOnStackJSON is a driver whose addresses are on the stack.
type DriverOnStackJSON struct {
	Module     string `json:"module"`
	Frames     int    `json:"frames" jsonschema_description:"of it on the stack"`
	FirstFrame *int   `json:"first_frame,omitempty" jsonschema_description:"index in the thread's kernel_frames"`
	Address    string `json:"address"`
	Found      string `json:"found" jsonschema_description:"unwound, scan (frames found by a search), or stack (an address on the stack)"`
	AfterCall  bool   `json:"after_call,omitempty" jsonschema_description:"a call stands before the address"`
}

// BugUnloadedJSON is an address where a driver had been.
type BugUnloadedJSON struct {
	Module    string `json:"module"`
	Offset    string `json:"offset"`
	Parameter *int   `json:"parameter,omitempty" jsonschema_description:"1 to 4: that holds the address"`
	Frame     *int   `json:"frame,omitempty" jsonschema_description:"index in the thread's kernel_frames"`
}

// HardwareErrorJSON is a WHEA error record.
type HardwareErrorJSON struct {
	Severity  string             `json:"severity"`
	Notify    string             `json:"notify,omitempty" jsonschema_description:"what reported it"`
	Timestamp string             `json:"timestamp,omitempty"`
	Truncated bool               `json:"truncated,omitempty" jsonschema_description:"the dump holds less of it than its header says"`
	Sections  []ErrorSectionJSON `json:"sections,omitempty"`
}

// ErrorSectionJSON is a section of an error record.
type ErrorSectionJSON struct {
	GUID     string `json:"guid"`
	Type     string `json:"type,omitempty"`
	Severity string `json:"severity"`
	Primary  bool   `json:"primary,omitempty"`
	FRU      string `json:"fru,omitempty" jsonschema_description:"part to replace"`
	Text     string `json:"text,omitempty" jsonschema_description:"what the section says"`
	Status   string `json:"status,omitempty" jsonschema_description:"MCi_STATUS of a machine check"`
	Bank     *int   `json:"bank,omitempty"`
	CPU      *int   `json:"cpu,omitempty"`
	Address  string `json:"address,omitempty" jsonschema_description:"physical"`
}

// SecondaryDataJSON is a record of secondary data.
type SecondaryDataJSON struct {
	GUID  string `json:"guid"`
	Name  string `json:"name,omitempty"`
	Holds string `json:"holds,omitempty"`
	Size  int64  `json:"size"`
}

// StackUseJSON is how much of a kernel stack was used when a double fault came.
type StackUseJSON struct {
	Size     uint64            `json:"size" jsonschema_description:"in bytes"`
	Left     int64             `json:"left" jsonschema_description:"bytes between the stack pointer and the stack's limit, negative beyond it"`
	Overflow bool              `json:"overflow"`
	Modules  []ModuleStackJSON `json:"modules,omitempty" jsonschema_description:"whose frames take most, the largest first"`
}

// ModuleStackJSON is what the frames of a module take of a stack.
type ModuleStackJSON struct {
	Module string `json:"module"`
	Bytes  uint64 `json:"bytes"`
	Frames int    `json:"frames"`
}
