package dump

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format names a dump file format by its magic.
type Format string

// The formats; the text is part of the JSON contract.
const (
	FormatMinidump Format = "mdmp"     // MDMP: MiniDumpWriteDump and its kin
	FormatKernel64 Format = "pagedu64" // PAGEDU64: 64-bit kernel dump
	FormatKernel32 Format = "pagedump" // PAGEDUMP: 32-bit kernel dump
	FormatUser64   Format = "userdu64" // USERDU64: old full user dump, 64-bit
	FormatUser32   Format = "userdump" // USERDUMP: old full user dump, 32-bit
)

// Source is an opened dump of any format. The slices it returns are its own
// and decoded on first use; callers must not change them. All its methods are
// safe after damage: they return what could be read, and Damage says the rest.
type Source interface {
	// Format returns the file format.
	Format() Format
	// Kind describes the kind of dump within the format in a few words, such
	// as "full memory" or "triage (live, procdump -mk)".
	Kind() string
	// Flags returns the raw flags that say what the dump holds, by name.
	Flags() []string
	// Captured returns when the dump was written, zero when it does not say.
	Captured() time.Time
	// System describes the machine.
	System() *System
	// Process describes the process that was dumped; in kernel dumps the
	// current or only one. It may be all zero.
	Process() *Process
	// Threads returns the threads in file order.
	Threads() []Thread
	// Modules returns the loaded modules in file order.
	Modules() []Module
	// UnloadedModules returns modules that had been unloaded.
	UnloadedModules() []Module
	// Handles returns the process's handles.
	Handles() []Handle
	// Memory returns the virtual memory in the dump.
	Memory() Memory
	// Regions returns what is known of protection and state of memory.
	Regions() []Region
	// Exception returns the exception that the dump was written for, or nil.
	Exception() *Exception
	// BugCheck returns a kernel dump's bugcheck, or nil.
	BugCheck() *BugCheck
	// CPUs returns what each processor was running, in kernel dumps.
	CPUs() []CPU
	// Damage returns what could not be read so far. Lazily decoded parts add
	// to it when they are asked for.
	Damage() []*Error
}

// System is the machine and operating system of a dump.
type System struct {
	Arch                Arch // of the dumped process or kernel
	Major, Minor, Build uint32
	Revision            uint32 // update build revision, 0 when not known
	NTVersion           string // exact kernel version "10.0.19041.3803", "" when not known
	ServicePack         string
	ProductType         uint8 // VER_NT_WORKSTATION 1, domain controller 2, server 3; 0 unknown
	SuiteMask           uint16
	CPUCount            uint32 // 0 unknown
	CPUVendor           string // "GenuineIntel", "AuthenticAMD" ..., "" unknown
	CPUFamily           uint32
	CPUModel            uint32
	CPUStepping         uint32
	CPUMHz              uint32 // 0 unknown
	BuildLab            string // build string, "" unknown
	Uptime              time.Duration
}

// Process is the dumped process.
type Process struct {
	PID         uint32
	HasPID      bool
	ParentPID   uint32
	Name        string // image name; kernel dumps hold at most 15 characters of it
	CommandLine string // "" when not in the dump
	Created     time.Time
	UserTime    time.Duration
	KernelTime  time.Duration
	PEB         uint64
	EPROCESS    uint64 // kernel dumps
	DirBase     uint64 // kernel dumps: physical address of the page table root

	// Of full kernel dumps, which hold many processes.
	UserDirBase uint64    // root of the tables that user mode runs on when they are split (KVA shadow)
	Exited      time.Time // zero while it runs
	ThreadCount int       // threads that have not ended, -1 not known; 0 too in other dumps
	Wow64       bool      // a 32-bit process on a 64-bit system
	Session     uint32
	HasSession  bool
	How         string // by what it was found: "list", "cid_table", "scan", joined with "+"
	State       ProcessState
}

// Ended reports whether a process has ended, by its time of exit or its state.
func (p *Process) Ended() bool { return !p.Exited.IsZero() || p.State == ProcessEnded }

// ProcessState says what is out of the ordinary with a process of a full kernel
// dump. Its text is part of the JSON contract.
type ProcessState string

// The states of processes.
const (
	ProcessActive   ProcessState = ""
	ProcessEnded    ProcessState = "ended"    // kept by a handle or a reference
	ProcessUnlisted ProcessState = "unlisted" // not in the list of active processes, though that is whole
	ProcessWithout  ProcessState = "no_id"    // in the list, but not in the table of ids, though that is whole
)

// CodeView is a module's debug identity.
type CodeView struct {
	Signature string   // "RSDS" (PDB 7.0) or "NB10" (PDB 2.0); "" when there is none
	GUID      [16]byte // RSDS, in file order
	Stamp     uint32   // NB10 signature
	Age       uint32
	PDB       string // path or name as recorded
}

// DebugID returns the identity as Breakpad and symbol servers of its kind write
// it: the GUID's fields in capitals without dashes and the age, or for a PDB 2.0
// the signature and the age. It is "" when there is none.
func (cv *CodeView) DebugID() string {
	switch cv.Signature {
	case "RSDS":
		g := cv.GUID
		return fmt.Sprintf("%02X%02X%02X%02X%02X%02X%02X%02X%X%x", g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8:], cv.Age)
	case "NB10":
		return fmt.Sprintf("%08X%x", cv.Stamp, cv.Age)
	}
	return ""
}

// FileVersion is a four-part version number, all zero when not known.
type FileVersion [4]uint16

// Module is a loaded or unloaded image.
type Module struct {
	Base, Size    uint64
	TimeDateStamp uint32 // 0 when not known
	CheckSum      uint32
	Path          string // as the dump has it, with its directories
	Version       FileVersion
	Product       FileVersion
	CodeView      CodeView
	Kernel        bool
	Unloaded      bool
	UnloadedAt    time.Time // zero when not known
	Reproducible  bool      // its debug directory says so: TimeDateStamp is a hash
	Mapped        bool      // known by the process's mapping of its image alone: no list of the loader that is in the dump has it
}

// Contains reports whether va lies in the module.
func (m *Module) Contains(va uint64) bool { return va >= m.Base && va-m.Base < m.Size }

// End returns the address just past the module, saturating.
func (m *Module) End() uint64 {
	if m.Base+m.Size < m.Base {
		return ^uint64(0)
	}
	return m.Base + m.Size
}

// Name returns the base name of the module's path, which may use either slash.
func (m *Module) Name() string { return BaseName(m.Path) }

// BaseName returns what follows the last slash or backslash of a Windows path.
func BaseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '\\' || path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// ntNames are the file names of one and the same kernel: the loader always calls
// it by the first, symbol stores use the name that it was linked with.
var ntNames = []string{"ntoskrnl.exe", "ntkrnlmp.exe", "ntkrla57.exe", "ntkrnlpa.exe", "ntkrpamp.exe"}

// FileNames returns the names, in lower case, that a module's image file may
// have, its own first. The kernel has several, any other module one, and a
// module without a name none.
func (m *Module) FileNames() []string {
	name := strings.ToLower(m.Name())
	if name == "" {
		return nil
	}
	names := []string{name}
	if m.IsNT() {
		names = append(names, slices.DeleteFunc(slices.Clone(ntNames), func(n string) bool { return n == name })...)
	}
	return names
}

// IsNT reports whether a module is the kernel itself, by its name.
func (m *Module) IsNT() bool { return slices.Contains(ntNames, strings.ToLower(m.Name())) }

// Thread is one thread: of a user dump with its user-mode registers, of a
// kernel dump with its kernel-mode ones.
type Thread struct {
	ID            uint32
	Name          string
	TEB           uint64
	SuspendCount  uint32
	PriorityClass uint32
	Priority      uint32
	// StackBase and StackLimit bound the thread's stack: it grows down from
	// StackBase. Both zero when not known.
	StackBase, StackLimit uint64
	Context               Registers // empty when it could not be read
	ContextSource         ContextSource
	Times                 *ThreadTimes
	StartAddress          uint64
	LastError             uint32
	HasLastError          bool
	Kernel                *KernelThread // kernel dumps only
}

// ContextSource says where a thread's registers came from.
type ContextSource uint8

// The places a CONTEXT is taken from.
const (
	ContextNone        ContextSource = iota
	ContextThread                    // the thread list of a user dump
	ContextException                 // the exception stream of a user dump
	ContextHeader                    // the header of a kernel dump
	ContextPRCB                      // the CONTEXT that a PRCB points to
	ContextLiveBlock                 // the full CONTEXT block of a live triage dump
	ContextSwitchFrame               // a KSWITCH_FRAME at KTHREAD.KernelStack
	ContextParameter                 // a CONTEXT that a bugcheck parameter points to
	ContextTrapFrame                 // a KTRAP_FRAME
	ContextTask                      // a task state segment of x86, which a task gate left
)

// ThreadTimes is a thread's accounting; zero times mean not known.
type ThreadTimes struct {
	Created, Exited  time.Time
	Kernel, User     time.Duration
	Affinity         uint64
	ExitStatus       uint32
	DumpFlags        uint32
	DumpError        uint32
	HasExit, HasInfo bool // HasInfo: Kernel and User are known, be they zero
}

// KernelThread is what a kernel dump's ETHREAD says of a thread.
type KernelThread struct {
	ETHREAD      uint64
	EPROCESS     uint64
	PID          uint32
	State        uint8 // KTHREAD_STATE; 0xff in live triage dumps means "captured by APC"
	WaitReason   uint8 // KWAIT_REASON, stale unless waiting
	CPU          int   // processor it was running on, -1 when not running
	KernelStack  uint64
	InitialStack uint64
	StackLimit   uint64
	StackBase    uint64
	// TrapFrame is the address of the KTRAP_FRAME through which the thread
	// entered the kernel from user mode, checked for plausibility; 0 when there
	// is none. User holds the user-mode registers it proves.
	TrapFrame     uint64
	TrapFrameRule string // how TrapFrame was found
	Idle          bool   // a processor's idle thread, whose ids are 0
	Interrupted   bool   // TrapFrame is of an interrupt or exception, no system service
	User          Registers
	Task          Registers // x86: in the task state segment of the processor that ran it, which only a task gate fills
	Live          bool      // captured inside the thread by the live triage writer
	// Outer are the stack segments that were left for the current one, from the
	// inside out: by calls back into user mode, or because the stack was grown.
	Outer []StackSegment
	// Switched is the processor's own stack that a running thread's registers are
	// on, nil when they are on its own.
	Switched *ProcessorStack
	// Wait is what a waiting thread waits for, nil when it does not wait or the
	// dump does not say.
	Wait *KernelWait
	Note string
}

// CPU is one processor of a kernel dump.
type CPU struct {
	Number    uint32
	PRCB      uint64
	ETHREAD   uint64 // CurrentThread, 0 when not known
	Idle      bool
	Crashed   bool   // it wrote the dump
	ThreadID  uint32 // 0 when the thread is not in the dump
	Context   Registers
	Source    ContextSource
	StackBase uint64 // top of the stack memory found for it, 0 unknown
	Switched  *ProcessorStack
}

// StackSegment is a kernel stack that a thread left for another one.
type StackSegment struct {
	StackLimit, StackBase     uint64
	KernelStack, InitialStack uint64
	TrapFrame                 uint64    // of the entry from user mode, 0 none
	User                      Registers // that it proves
	Entry                     uint64    // KiCallUserMode, which KernelStack is a stack pointer of; 0 not known
	Grown                     bool      // the stack was grown: no user mode in between
}

// ProcessorStack is a stack of a processor's own, on which it runs deferred
// procedure calls or interrupts while its thread's stack stays as it was.
type ProcessorStack struct {
	Kind        string // "dpc" or "interrupt"; "unknown" when it was found by its place alone
	Limit, Base uint64
}

// Region is what a dump says of a range of virtual memory.
type Region struct {
	Base, Size     uint64
	AllocationBase uint64
	State          uint32 // MEM_COMMIT 0x1000, MEM_RESERVE 0x2000, MEM_FREE 0x10000
	Protect        uint32 // PAGE_* flags
	AllocProtect   uint32
	Type           uint32 // MEM_IMAGE 0x1000000, MEM_MAPPED 0x40000, MEM_PRIVATE 0x20000
	File           string // of data that it maps, "" none or not known
	Image          string // file of the image that it maps, "" none or not known
	VAD            *VAD   // of a process of a full kernel dump
}

// VAD is the kernel's descriptor of a range that a process reserved or mapped at
// once. Single pages of the range may be in another state and have another
// protection than it was made with.
type VAD struct {
	Address   uint64 // of the MMVAD
	Kind      string // "" usual, else awe, physical, write_watch, large_pages, rotate_physical or large_section
	Commit    uint64 // pages charged
	HasCommit bool   // false: not known, or without limit
}

// Executable reports whether the region's protection allows execution.
func (r *Region) Executable() bool { return r.Protect&0xf0 != 0 }

// Handle is an open handle of the dumped process.
type Handle struct {
	Value        uint64
	Type         string
	Name         string
	Attributes   uint32
	Access       uint32
	HandleCount  uint32
	PointerCount uint32
	Object       uint64 // the object's address, in a kernel dump
	Info         []HandleInfo
	State        *ObjectState // what Info says, nil when none of it is understood
}

// ObjectState is what a user dump says of the object that a handle is of. A field is
// nil where it says nothing.
type ObjectState struct {
	Thread    *ClientID // a thread
	TEB       uint64    // of Thread, 0 not known
	ProcessID *uint32   // a process
	Owner     *ClientID // of a mutex, nil also when nobody owns it
	Exited    bool      // the thread or process has ended
	Mutex     *MutexState
	Event     *EventState
	Semaphore *SemaphoreState
}

// ClientID names a thread by its process's id and its own.
type ClientID struct{ Process, Thread uint32 }

// MutexState is a mutex's count, 1 when it is free, and whether its last owner ended
// without giving it back.
type MutexState struct {
	Count     int32
	Abandoned bool
}

// EventState is an event: Manual stays set until it is reset.
type EventState struct{ Manual, Set bool }

// SemaphoreState is a semaphore's count and how high it can be.
type SemaphoreState struct{ Count, Max int32 }

// HandleInfo is one record of a handle's object information chain.
type HandleInfo struct {
	Kind uint32 // MINIDUMP_HANDLE_OBJECT_INFORMATION_TYPE
	Data []byte // the record's bytes, at most a few hundred
}

// Exception is the exception that a dump was written for.
type Exception struct {
	ThreadID   uint32
	Code       uint32
	Flags      uint32
	Record     uint64 // nested record's address
	Address    uint64
	Parameters []uint64 // at most 15
	Context    Registers
}

// BugCheck is a kernel dump's bugcheck.
type BugCheck struct {
	Code       uint32 // without the minidump bit 0x10000000
	Raw        uint32
	Parameters [4]uint64
	// Hidden is what stands for those parameters that are not to be told; the others
	// have "".
	Hidden [4]string
}
