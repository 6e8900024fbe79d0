package kdump

import "fmt"

// Values of DUMP_HEADER.DumpType.
const (
	typeFull      = 1
	typeSummary   = 2
	typeHeader    = 3
	typeTriage    = 4
	typeBitmap    = 5
	typeKernel    = 6
	typeAutomatic = 7
	typeRangeK    = 8
	typeRangeKA   = 9
	typeRangeF    = 0xa
)

// kindName names a DumpType.
func kindName(t uint32) string {
	switch t {
	case typeFull:
		return "complete memory"
	case typeSummary:
		return "kernel memory, summary"
	case typeHeader:
		return "header only"
	case typeTriage:
		return "triage"
	case typeBitmap:
		return "complete or active memory, bitmap"
	case typeKernel:
		return "kernel or live memory, bitmap"
	case typeAutomatic:
		return "automatic memory"
	case typeRangeK:
		return "kernel memory, ranges (.dump /k)"
	case typeRangeKA:
		return "active memory, ranges (.dump /ka)"
	case typeRangeF:
		return "complete memory, ranges (.dump /f)"
	}
	return fmt.Sprintf("unknown DumpType %#x", t)
}

// attributeNames are the bits of DUMP_HEADER.Attributes as WinDbg prints them.
var attributeNames = []string{
	"HiberCrash", "DumpDevicePowerOff", "InsufficientDumpfileSize",
	"KernelGeneratedTriageDump", "LiveDumpGeneratedDump",
}

// fieldNames are the bits of DUMP_HEADER.MiniDumpFields: which parts of a
// triage dump the writer stored. Bit 7 has no known meaning of its own.
var fieldNames = []string{
	"Context", "Exception", "Prcb", "Process", "Thread", "CallStack", "DriverList", "",
	"MemoryManager", "DataPage", "DebuggerData", "DataBlocks",
}

func bitNames(flags []string, v uint32, names []string, prefix string) []string {
	for bit := range 32 {
		if v&(1<<bit) == 0 {
			continue
		}
		if bit < len(names) && names[bit] != "" {
			flags = append(flags, names[bit])
		} else {
			flags = append(flags, fmt.Sprintf("%s(%#x)", prefix, uint32(1)<<bit))
		}
	}
	return flags
}
