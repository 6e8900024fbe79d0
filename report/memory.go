package report

import (
	"fmt"
	"strings"

	"dumptriage/report/codes"
)

// memoryState names a MEM_ state of MEMORY_BASIC_INFORMATION.
func memoryState(v uint32) string {
	return named(v, map[uint32]string{0x1000: "MEM_COMMIT", 0x2000: "MEM_RESERVE", 0x10000: "MEM_FREE"})
}

// memoryType names a MEM_ type of MEMORY_BASIC_INFORMATION.
func memoryType(v uint32) string {
	return named(v, map[uint32]string{0x20000: "MEM_PRIVATE", 0x40000: "MEM_MAPPED", 0x1000000: "MEM_IMAGE"})
}

func named(v uint32, names map[uint32]string) string {
	if v == 0 {
		return ""
	}
	if s := names[v]; s != "" {
		return s
	}
	return fmt.Sprintf("%#x", v)
}

// protections are the PAGE_ flags of winnt.h, the access first.
var protections = []struct {
	bit  uint32
	name string
}{
	{0x01, "PAGE_NOACCESS"}, {0x02, "PAGE_READONLY"}, {0x04, "PAGE_READWRITE"}, {0x08, "PAGE_WRITECOPY"},
	{0x10, "PAGE_EXECUTE"}, {0x20, "PAGE_EXECUTE_READ"}, {0x40, "PAGE_EXECUTE_READWRITE"}, {0x80, "PAGE_EXECUTE_WRITECOPY"},
	{0x100, "PAGE_GUARD"}, {0x200, "PAGE_NOCACHE"}, {0x400, "PAGE_WRITECOMBINE"}, {0x40000000, "PAGE_TARGETS_INVALID"},
}

func protection(v uint32) string {
	var names []string
	for _, p := range protections {
		if v&p.bit != 0 {
			names = append(names, p.name)
			v &^= p.bit
		}
	}
	if v != 0 || len(names) == 0 {
		names = append(names, fmt.Sprintf("%#x", v))
	}
	return strings.Join(names, " | ")
}

func isLive(code uint32) bool {
	_, _, live := codes.BugCheck(code)
	return live
}
