package crash

// HeapFailure is what the heap found when it ended the program.
type HeapFailure struct {
	Type    uint32 // of heapFailures
	Name    string // "" when the type has none
	Heap    uint64
	Address uint64 // of the block, 0 unknown
}

// Windows 10 1803 put invalid_allocation_type in front of usage_after_free and those
// behind it; what the builds between it and 1709 had is not known.
const (
	firstMoved  = 10
	lastUnmoved = 16299
	movedSince  = 17134
)

// heapFailures are the names of _HEAP_FAILURE_TYPE without their prefix, by the type
// information of ntdll's public symbols from Windows 10 1803 on.
var heapFailures = []string{"internal", "unknown", "generic", "entry_corruption", "multiple_entries_corruption", "virtual_block_corruption",
	"buffer_overrun", "buffer_underrun", "block_not_busy", "invalid_argument", "invalid_allocation_type", "usage_after_free",
	"cross_heap_operation", "freelists_corruption", "listentry_corruption", "lfh_bitmap_mismatch", "segment_lfh_bitmap_corruption",
	"segment_lfh_double_free", "vs_subsegment_corruption", "null_heap", "allocation_limit", "commit_limit", "invalid_va_mgr_query"}

// heapFailure reads the _HEAP_FAILURE_INFORMATION that the exception's only parameter
// points to: version, size, type, heap, address. It lies in ntdll, which proves it
// along with its shape.
func (j *judge) heapFailure() {
	p := j.crash.Parameters
	if j.v.Class != HeapCorruption || j.crash.Code != codeHeapCorruption || len(p) == 0 {
		return
	}
	at, size := j.arch.Narrow(p[0]), uint64(j.arch.PointerSize())
	head, ok := j.words(at, 3)
	if !ok || j.mem.Module(at) == nil {
		return
	}
	const leastSize, mostSize, mostVersion, page = 0x30, 0x4000, 0xff, 0x1000
	heap, ok1 := j.pointer(at + 8 + size)
	address, ok2 := j.pointer(at + 8 + 2*size)
	if !ok1 || !ok2 || head[0] > mostVersion || head[1] < leastSize || head[1] > mostSize || heap%page != 0 || heap == 0 && head[2] == 0 {
		return
	}
	f := &HeapFailure{Type: head[2], Heap: heap, Address: address}
	f.Name = heapFailureName(head[2], j.inc.System.Build)
	j.v.Heap = f
}

// heapFailureName is the name of a type in a build of Windows, "" when it has none or
// the build leaves open which.
func heapFailureName(failure, build uint32) string {
	at := uint64(failure)
	switch {
	case at < firstMoved || build >= movedSince:
	case build != 0 && build <= lastUnmoved:
		at++
	default:
		return ""
	}
	if at >= uint64(len(heapFailures)) {
		return ""
	}
	return heapFailures[at]
}
