package threadcontext

import "dumptriage/internal/cursor"

// MaxExceptionParameters is EXCEPTION_MAXIMUM_PARAMETERS.
const MaxExceptionParameters = 15

// ExceptionRecord is an EXCEPTION_RECORD of winnt.h, of either pointer size.
type ExceptionRecord struct {
	Code, Flags     uint32
	Record, Address uint64
	Count           uint32   // of the parameters, as the record says
	Parameters      []uint64 // nil when it says more than there can be
}

// ExceptionRecordSize returns the size of the structure in bytes.
func ExceptionRecordSize(ptr int) int {
	if ptr == 4 {
		return 0x50
	}
	return 0x98
}

// ParseExceptionRecord reads the record at the cursor.
func ParseExceptionRecord(c *cursor.Cursor, ptr int) ExceptionRecord {
	e := ExceptionRecord{Code: c.U32(), Flags: c.U32(), Record: c.Pointer(ptr), Address: c.Pointer(ptr), Count: c.U32()}
	if ptr == 8 {
		c.Skip(4)
	}
	if c.Err() == nil && e.Count <= MaxExceptionParameters {
		for range e.Count {
			e.Parameters = append(e.Parameters, c.Pointer(ptr))
		}
	}
	return e
}
