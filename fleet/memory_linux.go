package fleet

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// heldBySystem returns the bytes of memory that are the process's own, by
// /proc/self/status: in memory (RssAnon) and swapped out (VmSwap), whoever asked for
// them. Mapped files (RssFile), also those that lie in memory (RssShmem), do not count.
// It is 0 where the system does not tell.
func heldBySystem() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return ownMemory(b)
}

// ownMemory adds up the lines that count, such as "RssAnon:	    4276 kB".
func ownMemory(status []byte) uint64 {
	held := uint64(0)
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "RssAnon" && name != "VmSwap" {
			continue
		}
		if kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 44); err == nil {
			held += kb << 10
		}
	}
	return held
}
