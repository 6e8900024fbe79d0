package report

// Document is the JSON object that every verb prints; a verb fills the fields
// it has facts for. The order of fields is the order in the output. Addresses
// are "0x%016x" strings, padded to the pointer width of system_info.cpu_arch.
type Document struct {
	Schema          string             `json:"schema"`
	Tool            Tool               `json:"tool"`
	Status          string             `json:"status" jsonschema:"enum=OK,enum=PARTIAL,enum=ERROR"`
	Errors          []ErrorJSON        `json:"errors"`
	Inputs          []InputJSON        `json:"inputs"`
	Batch           *BatchJSON         `json:"batch,omitempty" jsonschema_description:"of a record of batch"`
	PID             *uint32            `json:"pid,omitempty"`
	ProcessUptime   *float64           `json:"process_uptime,omitempty" jsonschema_description:"seconds that the process had run"`
	Process         *ProcessJSON       `json:"process,omitempty"`
	SystemInfo      *SystemJSON        `json:"system_info,omitempty"`
	Captured        string             `json:"captured,omitempty" jsonschema_description:"when the dump was written, RFC 3339, UTC"`
	ManagedRuntime  *RuntimeJSON       `json:"managed_runtime,omitempty" jsonschema_description:"the .NET runtime of the process, when one was found"`
	CrashInfo       *CrashJSON         `json:"crash_info,omitempty"`
	Analysis        *AnalysisJSON      `json:"analysis,omitempty"`
	BugCheck        *BugCheckJSON      `json:"bugcheck,omitempty"`
	ThreadCount     *int               `json:"thread_count,omitempty"`
	ModuleCount     *int               `json:"module_count,omitempty"`
	Explanation     *ExplanationJSON   `json:"explanation,omitempty" jsonschema_description:"how one frame was found (explain)"`
	Threads         []ThreadJSON       `json:"threads,omitempty"`
	CrashingThread  *ThreadJSON        `json:"crashing_thread,omitempty"`
	Modules         []ModuleJSON       `json:"modules,omitempty"`
	UnloadedModules []UnloadedJSON     `json:"unloaded_modules,omitempty"`
	Handles         []HandleJSON       `json:"handles,omitempty"`
	Regions         []RegionJSON       `json:"regions,omitempty"`
	Ranges          []RangeJSON        `json:"ranges,omitempty"`
	WholeSystem     *WholeSystemJSON   `json:"whole_system,omitempty" jsonschema_description:"how a full kernel dump is read (info)"`
	Bytes           *BytesJSON         `json:"bytes,omitempty" jsonschema_description:"a piece of memory (memory --va, --pa)"`
	Processes       []ProcessEntryJSON `json:"processes,omitempty"`
	Streams         []StreamJSON       `json:"streams,omitempty"`
	Symbols         []SymbolFileJSON   `json:"symbols,omitempty" jsonschema_description:"files that the modules call for (symbols)"`
	Structure       *StructureJSON     `json:"structure,omitempty" jsonschema_description:"a structure of a PDB (symbols types)"`
	CPUs            []CPUJSON          `json:"cpus,omitempty"`
	Pairing         *PairingJSON       `json:"pairing,omitempty"`
	Signature       *SignatureJSON     `json:"signature,omitempty"`
	Groups          []GroupJSON        `json:"groups,omitempty"`
	Buckets         []BucketJSON       `json:"buckets,omitempty" jsonschema_description:"of a database (buckets)"`
	Compared        *ComparedJSON      `json:"compared,omitempty" jsonschema_description:"what the buckets are compared with (buckets diff)"`
	Joined          []JoinedJSON       `json:"joined,omitempty" jsonschema_description:"databases whose dumps were added to one (buckets merge)"`
	Tuning          *TuningJSON        `json:"tuning,omitempty" jsonschema_description:"how parameters of clusters agree with what people say (buckets tune)"`
	NextSteps       []string           `json:"next_steps,omitempty" jsonschema_description:"what would tell more than the list or the bucket (symbols list, buckets show); of a dump itself analysis has them"`
	MissingImages   []MissingImgJSON   `json:"missing_images,omitempty"`
	Scrub           *ScrubJSON         `json:"scrub,omitempty" jsonschema_description:"of a dump that was scrubbed (scrub)"`
	Comparison      *SeriesJSON        `json:"comparison,omitempty" jsonschema_description:"of dumps of one process, taken in a row (compare)"`
}

// ErrorJSON is one thing that went wrong.
type ErrorJSON struct {
	Code     string `json:"code" jsonschema:"enum=truncated,enum=out_of_range,enum=bad_count,enum=bad_record,enum=unsupported_format,enum=unsupported_platform,enum=cycle,enum=limit,enum=mismatch,enum=io,enum=internal"`
	Severity string `json:"severity" jsonschema:"enum=error,enum=warning"`
	File     string `json:"file,omitempty"`
	Stream   string `json:"stream,omitempty"`
	Offset   *int64 `json:"offset,omitempty"`
	Message  string `json:"message"`
}

// InputJSON is one file that was read.
type InputJSON struct {
	Path     string   `json:"path"`
	Member   string   `json:"member,omitempty" jsonschema_description:"of the archive that path is"`
	Size     *int64   `json:"size,omitempty"`
	SHA256   string   `json:"sha256,omitempty"`
	Format   string   `json:"format,omitempty"`
	DumpType string   `json:"dump_type,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	Comments []string `json:"comments,omitempty" jsonschema_description:"that the writer of the dump put in"`
}

// ProcessJSON is the dumped process.
type ProcessJSON struct {
	Name        string `json:"name,omitempty"`
	CommandLine string `json:"command_line,omitempty"`

	Emulation *EmulationJSON `json:"emulation,omitempty" jsonschema_description:"how a process runs that was made for another architecture"`
}

// EmulationJSON is how a process runs that was made for another architecture
// than its system's, and the module that tells.
type EmulationJSON struct {
	GuestArch string `json:"guest_arch"`
	HostArch  string `json:"host_arch"`
	Module    string `json:"module"`
}

// SystemJSON is the machine.
type SystemJSON struct {
	OS        string  `json:"os"`
	OSVer     string  `json:"os_ver,omitempty"`
	CPUArch   string  `json:"cpu_arch"`
	CPUInfo   string  `json:"cpu_info,omitempty"`
	CPUCount  *uint32 `json:"cpu_count,omitempty"`
	NTVersion string  `json:"nt_version,omitempty"`

	UptimeSeconds float64 `json:"uptime_seconds,omitempty" jsonschema_description:"how long the system had run"`
}

// CrashJSON is the exception; a dump without one has at most crashing_thread.
type CrashJSON struct {
	Type            string        `json:"type,omitempty"`
	Code            string        `json:"code,omitempty"`
	Address         string        `json:"address,omitempty"`
	AdjustedAddress *AdjustedJSON `json:"adjusted_address,omitempty"`
	Instruction     string        `json:"instruction,omitempty"`
	MemoryAccesses  []AccessJSON  `json:"memory_accesses,omitempty"`

	PointerUpdate *PointerUpdateJSON `json:"instruction_pointer_update,omitempty" jsonschema_description:"of a call, jump or return through a register or memory"`

	CrashingThread *int     `json:"crashing_thread,omitempty" jsonschema_description:"index in threads"`
	Assertion      string   `json:"assertion,omitempty"`
	Parameters     []string `json:"parameters,omitempty" jsonschema_description:"of the exception"`
	NonContinuable bool     `json:"non_continuable,omitempty"`
	Record         string   `json:"record,omitempty" jsonschema_description:"address of the exception record that this one points to"`

	PossibleBitFlips     []BitFlipJSON `json:"possible_bit_flips,omitempty" jsonschema_description:"most likely first"`
	CrashInconsistencies []string      `json:"crash_inconsistencies,omitempty" jsonschema_description:"ways in which the crash cannot have happened as told"`
}

// AdjustedJSON is the address that a fault was really about: for
// "non-canonical" address, for "null-pointer" offset.
type AdjustedJSON struct {
	Kind    string `json:"kind"`
	Address string `json:"address,omitempty"`
	Offset  string `json:"offset,omitempty"`
}

// AccessJSON is one memory operand of the faulting instruction.
type AccessJSON struct {
	Address    string `json:"address,omitempty"`
	Size       int    `json:"size"`
	AccessType string `json:"access_type" jsonschema_description:"read, write or readwrite"`
	Protect    string `json:"protect,omitempty" jsonschema_description:"protection of the memory there"`
	Alignment  int    `json:"alignment,omitempty" jsonschema_description:"bytes that the address has to be a multiple of; absent when any address will do"`

	IsLikelyGuardPage bool `json:"is_likely_guard_page,omitempty"`
}

// PointerUpdateJSON is where an instruction goes.
type PointerUpdateJSON struct {
	Address           string `json:"address"`
	IsLikelyGuardPage bool   `json:"is_likely_guard_page,omitempty"`
}

// ModuleJSON is a loaded module.
type ModuleJSON struct {
	BaseAddr       string `json:"base_addr"`
	EndAddr        string `json:"end_addr"`
	Filename       string `json:"filename"`
	CodeID         string `json:"code_id,omitempty"`
	DebugFile      string `json:"debug_file,omitempty"`
	DebugID        string `json:"debug_id,omitempty"`
	Version        string `json:"version,omitempty"`
	Timestamp      string `json:"timestamp,omitempty"`
	TimestampKind  string `json:"timestamp_kind,omitempty" jsonschema_description:"date; hash: no date that can be, the build is reproducible; or unsure: many others of the list are hashes (drivers)"`
	Size           uint64 `json:"size"`
	Kind           string `json:"kind" jsonschema:"enum=user,enum=kernel"`
	MissingSymbols bool   `json:"missing_symbols"`
	LoadedSymbols  bool   `json:"loaded_symbols"`
	SymbolMismatch bool   `json:"symbol_mismatch,omitempty"`
	Mapped         bool   `json:"mapped,omitempty" jsonschema_description:"of a process of a full kernel dump: no list of the loader that is in the dump has it, but the process mapped its image (VADs)"`
	Unlisted       bool   `json:"unlisted,omitempty" jsonschema_description:"the dump's list of modules lacks it: it was found in the loader's inverted function table"`
}

// UnloadedJSON is a module that had been unloaded.
type UnloadedJSON struct {
	BaseAddr string `json:"base_addr"`
	EndAddr  string `json:"end_addr"`
	Filename string `json:"filename"`
	Unloaded string `json:"unloaded_at,omitempty" jsonschema_description:"when it was, of a kernel dump that says it"`
}

// HandleJSON is an open handle.
type HandleJSON struct {
	Handle     string `json:"handle"`
	TypeName   string `json:"type_name,omitempty"`
	ObjectName string `json:"object_name,omitempty"`
	Access     string `json:"access,omitempty" jsonschema_description:"granted access mask"`
	Object     string `json:"object,omitempty" jsonschema_description:"address of the object, in kernel dumps"`

	ProcessID     *uint32 `json:"process_id,omitempty" jsonschema_description:"of a thread or a process"`
	ThreadID      *uint32 `json:"thread_id,omitempty" jsonschema_description:"of a thread"`
	OwnerThreadID *uint32 `json:"owner_thread_id,omitempty" jsonschema_description:"of a mutex that is held"`
	State         string  `json:"state,omitempty" jsonschema_description:"how the object stands, in words"`
}

// RegionJSON is a described range of virtual memory.
type RegionJSON struct {
	Base           string `json:"base"`
	Size           uint64 `json:"size"`
	State          string `json:"state,omitempty"`
	Protect        string `json:"protect,omitempty"`
	Type           string `json:"type,omitempty"`
	AllocationBase string `json:"allocation_base,omitempty"`

	CommitPages *uint64 `json:"commit_pages,omitempty" jsonschema_description:"pages that the range charges to the commit limit"`
	File        string  `json:"file,omitempty" jsonschema_description:"that the range maps"`
	VAD         string  `json:"vad,omitempty" jsonschema_description:"address of the kernel's descriptor"`
	Kind        string  `json:"kind,omitempty" jsonschema:"enum=physical,enum=awe,enum=write_watch,enum=large_pages,enum=rotate_physical,enum=large_section" jsonschema_description:"of memory that is not of the usual kind"`
}

// RangeJSON is a range of virtual memory that the dump holds.
type RangeJSON struct {
	Base   string `json:"base"`
	Size   uint64 `json:"size"`
	Offset int64  `json:"offset"`
}

// StreamJSON is one part of a dump file.
type StreamJSON struct {
	Type   *uint32 `json:"type,omitempty"`
	Name   string  `json:"name,omitempty"`
	Offset *int64  `json:"offset,omitempty"`
	Size   *int64  `json:"size,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// CPUJSON is what a processor was running.
type CPUJSON struct {
	CPU          uint32      `json:"cpu"`
	ThreadID     *uint32     `json:"thread_id,omitempty"`
	ProcessID    *uint32     `json:"process_id,omitempty"`
	ProcessName  string      `json:"process_name,omitempty"`
	Idle         bool        `json:"idle,omitempty" jsonschema_description:"its idle thread is the current one"`
	Stack        string      `json:"stack,omitempty" jsonschema:"enum=dpc,enum=interrupt,enum=unknown" jsonschema_description:"the processor's own stack that it is on: it runs a DPC or an interrupt"`
	PRCB         string      `json:"prcb,omitempty"`
	ETHREAD      string      `json:"ethread,omitempty"`
	KernelStop   *StopJSON   `json:"kernel_stop,omitempty"`
	Frames       []FrameJSON `json:"frames,omitempty"`
	KernelFrames []FrameJSON `json:"kernel_frames,omitempty"`
}

// PairingJSON says how two files were matched.
type PairingJSON struct {
	User     string   `json:"user,omitempty"`
	Kernel   string   `json:"kernel,omitempty"`
	How      string   `json:"how,omitempty"`
	PID      *uint32  `json:"pid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// GroupJSON is a set of threads with the same stack.
type GroupJSON struct {
	ID           string      `json:"id"`
	ThreadIDs    []uint32    `json:"thread_ids"`
	Frames       []FrameJSON `json:"frames,omitempty"`
	KernelFrames []FrameJSON `json:"kernel_frames,omitempty"`
}

// MissingImgJSON is an image that was needed and not found.
type MissingImgJSON struct {
	Filename string   `json:"filename"`
	Key      string   `json:"key,omitempty"`
	Tried    []string `json:"tried,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}
