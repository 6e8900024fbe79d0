package minidump

import (
	"fmt"

	"dumptriage/dump"
)

// Stream types of MINIDUMP_STREAM_TYPE and of other writers, as far as this
// package decodes them.
const (
	StreamUnused              = 0
	StreamThreadList          = 3
	StreamModuleList          = 4
	StreamMemoryList          = 5
	StreamException           = 6
	StreamSystemInfo          = 7
	StreamThreadExList        = 8
	StreamMemory64List        = 9
	StreamCommentA            = 10
	StreamCommentW            = 11
	StreamHandleData          = 12
	StreamFunctionTable       = 13
	StreamUnloadedModuleList  = 14
	StreamMiscInfo            = 15
	StreamMemoryInfoList      = 16
	StreamThreadInfoList      = 17
	StreamHandleOperationList = 18
	StreamToken               = 19
	StreamJavaScriptData      = 20
	StreamSystemMemoryInfo    = 21
	StreamProcessVMCounters   = 22
	StreamIptTrace            = 23
	StreamThreadNames         = 24
	StreamWineHostModules     = 0xfff0 // Wine: the Unix side's modules, in the layout of ModuleList
	StreamLastReserved        = 0xffff
	StreamBreakpadInfo        = 0x47670001
	StreamAssertion           = 0x47670002
	StreamCrashpadInfo        = 0x43500001
)

// StreamInfo is an entry of the stream directory.
type StreamInfo struct {
	Type   uint32
	Name   string // StreamName of the type
	Offset int64  // file offset in bytes
	Size   int64  // bytes, as the directory claims
	Note   string // why the stream is not used, "" when it is
	Err    *dump.Error
}

// usable reports whether the stream claims any bytes.
func (s *StreamInfo) usable() bool { return s.Size > 0 }

// streamNames names the types of minidumpapiset.h (without their "Stream"
// suffix), and those that Breakpad, Crashpad, Mozilla, LLDB and Wine add.
var streamNames = map[uint32]string{
	0: "Unused", 1: "Reserved0", 2: "Reserved1",
	StreamThreadList: "ThreadList", StreamModuleList: "ModuleList", StreamMemoryList: "MemoryList",
	StreamException: "Exception", StreamSystemInfo: "SystemInfo", StreamThreadExList: "ThreadExList",
	StreamMemory64List: "Memory64List", StreamCommentA: "CommentA", StreamCommentW: "CommentW",
	StreamHandleData: "HandleData", StreamFunctionTable: "FunctionTable",
	StreamUnloadedModuleList: "UnloadedModuleList", StreamMiscInfo: "MiscInfo",
	StreamMemoryInfoList: "MemoryInfoList", StreamThreadInfoList: "ThreadInfoList",
	StreamHandleOperationList: "HandleOperationList", StreamToken: "Token",
	StreamJavaScriptData: "JavaScriptData", StreamSystemMemoryInfo: "SystemMemoryInfo",
	StreamProcessVMCounters: "ProcessVmCounters", StreamIptTrace: "IptTrace", StreamThreadNames: "ThreadNames",
	0x8000: "ceStreamNull", 0x8001: "ceStreamSystemInfo", 0x8002: "ceStreamException",
	0x8003: "ceStreamModuleList", 0x8004: "ceStreamProcessList", 0x8005: "ceStreamThreadList",
	0x8006: "ceStreamThreadContextList", 0x8007: "ceStreamThreadCallStackList",
	0x8008: "ceStreamMemoryVirtualList", 0x8009: "ceStreamMemoryPhysicalList",
	0x800a: "ceStreamBucketParameters", 0x800b: "ceStreamProcessModuleMap", 0x800c: "ceStreamDiagnosisList",
	StreamWineHostModules: "WineHostModuleList", StreamLastReserved: "LastReserved",
	StreamBreakpadInfo: "BreakpadInfo", StreamAssertion: "BreakpadAssertion",
	0x47670003: "LinuxCpuInfo", 0x47670004: "LinuxProcStatus", 0x47670005: "LinuxLsbRelease",
	0x47670006: "LinuxCmdLine", 0x47670007: "LinuxEnviron", 0x47670008: "LinuxAuxv",
	0x47670009: "LinuxMaps", 0x4767000a: "LinuxDsoDebug",
	StreamCrashpadInfo: "CrashpadInfo",
	0x4d7a0001:         "MozMacosCrashInfo", 0x4d7a0002: "MozMacosBootargs", 0x4d7a0003: "MozLinuxLimits",
	0x4d7a0004: "MozSoftErrors", 0x4c4c4442: "LLDBGenerated",
}

// StreamName returns the name of a stream type, or its number in hexadecimal
// when it is not known.
func StreamName(streamType uint32) string {
	if s, ok := streamNames[streamType]; ok {
		return s
	}
	return fmt.Sprintf("stream %#x", streamType)
}
