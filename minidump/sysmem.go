package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// SystemMemory is the SystemMemoryInfo stream (MINIDUMP_SYSTEM_MEMORY_INFO_1):
// the state of the whole machine's memory. A part that the writer did not give
// or that the stream does not reach is nil.
type SystemMemory struct {
	Revision, Flags      uint16
	Basic                SystemBasic
	FileCache            *FileCache
	Performance          *BasicPerformance
	Counters             *PerformanceCounters
	DirtyPages           *[2]uint64 // CcTotalDirtyPages, CcDirtyPageThreshold
	ResidentAndCommitted *[2]uint64 // ResidentAvailablePages, SharedCommittedPages
}

// SystemBasic is MINIDUMP_SYSTEM_BASIC_INFORMATION.
type SystemBasic struct {
	TimerResolution                uint32 // 100 ns
	PageSize                       uint32 // bytes
	PhysicalPages                  uint32
	LowestPage, HighestPage        uint32
	AllocationGranularity          uint32 // bytes
	MinUserAddress, MaxUserAddress uint64
	ActiveProcessors               uint64 // affinity mask
	Processors                     uint32
}

// FileCache is MINIDUMP_SYSTEM_FILECACHE_INFORMATION; sizes in bytes but for
// the two in pages.
type FileCache struct {
	CurrentSize, PeakSize                        uint64
	PageFaults                                   uint32
	MinWorkingSet, MaxWorkingSet                 uint64
	CurrentPagesInTransition, PeakPagesInTransit uint64
	TransitionRePurposeCount                     uint32
	Flags                                        uint32
}

// BasicPerformance is MINIDUMP_SYSTEM_BASIC_PERFORMANCE_INFORMATION, in pages.
type BasicPerformance struct {
	Available, Committed, CommitLimit, PeakCommitment uint64
}

// PerformanceCounters is the larger part of
// MINIDUMP_SYSTEM_PERFORMANCE_INFORMATION.
type PerformanceCounters struct {
	IdleTime                          uint64 // 100 ns, summed over the processors
	ReadBytes, WriteBytes, OtherBytes uint64
	Values                            [70]uint32 // PerformanceCounterNames in order
}

// PerformanceCounterNames names PerformanceCounters.Values in the order of the
// structure.
var PerformanceCounterNames = [70]string{
	"IoReadOperationCount", "IoWriteOperationCount", "IoOtherOperationCount", "AvailablePages", "CommittedPages",
	"CommitLimit", "PeakCommitment", "PageFaultCount", "CopyOnWriteCount", "TransitionCount", "CacheTransitionCount",
	"DemandZeroCount", "PageReadCount", "PageReadIoCount", "CacheReadCount", "CacheIoCount", "DirtyPagesWriteCount",
	"DirtyWriteIoCount", "MappedPagesWriteCount", "MappedWriteIoCount", "PagedPoolPages", "NonPagedPoolPages",
	"PagedPoolAllocs", "PagedPoolFrees", "NonPagedPoolAllocs", "NonPagedPoolFrees", "FreeSystemPtes",
	"ResidentSystemCodePage", "TotalSystemDriverPages", "TotalSystemCodePages", "NonPagedPoolLookasideHits",
	"PagedPoolLookasideHits", "AvailablePagedPoolPages", "ResidentSystemCachePage", "ResidentPagedPoolPage",
	"ResidentSystemDriverPage", "CcFastReadNoWait", "CcFastReadWait", "CcFastReadResourceMiss", "CcFastReadNotPossible",
	"CcFastMdlReadNoWait", "CcFastMdlReadWait", "CcFastMdlReadResourceMiss", "CcFastMdlReadNotPossible", "CcMapDataNoWait",
	"CcMapDataWait", "CcMapDataNoWaitMiss", "CcMapDataWaitMiss", "CcPinMappedDataCount", "CcPinReadNoWait", "CcPinReadWait",
	"CcPinReadNoWaitMiss", "CcPinReadWaitMiss", "CcCopyReadNoWait", "CcCopyReadWait", "CcCopyReadNoWaitMiss",
	"CcCopyReadWaitMiss", "CcMdlReadNoWait", "CcMdlReadWait", "CcMdlReadNoWaitMiss", "CcMdlReadWaitMiss", "CcReadAheadIos",
	"CcLazyWriteIos", "CcLazyWritePages", "CcDataFlushes", "CcDataPages", "ContextSwitches", "FirstLevelTbFills",
	"SecondLevelTbFills", "SystemCalls",
}

// MINIDUMP_SYSMEMINFO1_* flags: which of the later parts are valid.
const (
	sysMemBasicPerformance = 0x2
	sysMemDirtyPages       = 0x4
	sysMemResident         = 0x8
)

// SystemMemory returns the SystemMemoryInfo stream.
func (f *File) SystemMemory() (*SystemMemory, error) {
	return f.systemMemory.get(f, (*File).decodeSystemMemory)
}

func (f *File) decodeSystemMemory() (*SystemMemory, *dump.Error) {
	c, fs := f.open(StreamSystemMemoryInfo, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	m := &SystemMemory{Revision: c.U16(), Flags: c.U16()}
	m.Basic = SystemBasic{c.U32(), c.U32(), c.U32(), c.U32(), c.U32(), c.U32(), c.U64(), c.U64(), c.U64(), c.U32()}
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	cache := FileCache{c.U64(), c.U64(), c.U32(), c.U64(), c.U64(), c.U64(), c.U64(), c.U32(), c.U32()}
	if c.Err() == nil {
		m.FileCache = &cache
	}
	perf := BasicPerformance{c.U64(), c.U64(), c.U64(), c.U64()}
	if c.Err() == nil && m.Flags&sysMemBasicPerformance != 0 {
		m.Performance = &perf
	}
	m.readCounters(c)
	fs.add(c.Err())
	return m, fs.done()
}

func (m *SystemMemory) readCounters(c *cursor.Cursor) {
	counters := &PerformanceCounters{IdleTime: c.U64(), ReadBytes: c.U64(), WriteBytes: c.U64(), OtherBytes: c.U64()}
	for i := range counters.Values {
		counters.Values[i] = c.U32()
	}
	if c.Err() == nil {
		m.Counters = counters
	}
	pair := func(flag uint16) *[2]uint64 {
		if m.Flags&flag == 0 {
			if c.Left() >= 16 {
				c.Skip(16)
			}
			return nil
		}
		v := [2]uint64{c.U64(), c.U64()}
		if c.Err() != nil {
			return nil
		}
		return &v
	}
	m.DirtyPages = pair(sysMemDirtyPages)
	m.ResidentAndCommitted = pair(sysMemResident)
}

// VMCounters is the ProcessVmCounters stream (MINIDUMP_PROCESS_VM_COUNTERS_1
// or _2): the process's memory use in bytes. Counters that the writer did not
// give are nil.
type VMCounters struct {
	Revision, Flags                                  uint16
	PageFaults                                       uint32
	PeakWorkingSet, WorkingSet                       uint64
	PeakPagedPool, PagedPool                         uint64
	PeakNonPagedPool, NonPagedPool                   uint64
	Pagefile, PeakPagefile                           uint64
	PeakVirtualSize, VirtualSize, Private            *uint64
	PrivateWorkingSet, SharedCommit                  *uint64
	JobSharedCommit, JobPrivateCommit                *uint64
	JobPeakPrivateCommit, JobPrivateLimit, JobTotals *uint64
}

// MINIDUMP_PROCESS_VM_COUNTERS_* flags of revision 2.
const (
	vmVirtualSize = 0x2
	vmEx          = 0x4
	vmEx2         = 0x8
	vmJob         = 0x10
)

// VMCounters returns the ProcessVmCounters stream.
func (f *File) VMCounters() (*VMCounters, error) {
	return f.vmCounters.get(f, (*File).decodeVMCounters)
}

func (f *File) decodeVMCounters() (*VMCounters, *dump.Error) {
	c, fs := f.open(StreamProcessVMCounters, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	v := &VMCounters{Revision: c.U16(), Flags: c.U16(), PageFaults: c.U32(), PeakWorkingSet: c.U64(), WorkingSet: c.U64(),
		PeakPagedPool: c.U64(), PagedPool: c.U64(), PeakNonPagedPool: c.U64(), NonPagedPool: c.U64(), Pagefile: c.U64(), PeakPagefile: c.U64()}
	optional := func(valid bool) *uint64 {
		if c.Left() < 8 {
			return nil
		}
		n := c.U64()
		if !valid {
			return nil
		}
		return &n
	}
	if v.Revision < 2 { // the two bytes of Flags are padding
		v.Flags = 0
		v.Private = optional(true)
	} else {
		flag := func(bit uint16) *uint64 { return optional(v.Flags&bit != 0) }
		v.PeakVirtualSize, v.VirtualSize, v.Private = flag(vmVirtualSize), flag(vmVirtualSize), flag(vmEx)
		v.PrivateWorkingSet, v.SharedCommit = flag(vmEx2), flag(vmEx2)
		v.JobSharedCommit, v.JobPrivateCommit, v.JobPeakPrivateCommit = flag(vmJob), flag(vmJob), flag(vmJob)
		v.JobPrivateLimit, v.JobTotals = flag(vmJob), flag(vmJob)
	}
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	return v, fs.done()
}
