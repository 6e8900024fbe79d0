package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	handleSize        = 32 // MINIDUMP_HANDLE_DESCRIPTOR
	handle2Size       = 40 // MINIDUMP_HANDLE_DESCRIPTOR_2
	handleInfoHeader  = 12
	maxHandleInfos    = 16 // records of one handle; real ones have at most a few
	maxHandleInfoData = 512
	handleOpSize      = 32
	maxBacktrace      = 32 // AVRF_MAX_TRACES
)

// HandleData returns the HandleData stream.
func (f *File) HandleData() ([]dump.Handle, error) {
	return f.handles.get(f, (*File).decodeHandles)
}

// Handles implements dump.Source.
func (f *File) Handles() []dump.Handle {
	h, _ := f.HandleData()
	return h
}

func (f *File) decodeHandles() ([]dump.Handle, *dump.Error) {
	c, fs := f.open(StreamHandleData, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, record, count := c.U32(), c.U32(), c.U32()
	n := fs.table(c, header, record, 12, handleSize, uint64(count), noLimit)
	out := make([]dump.Handle, 0, n)
	text := f.texts(fs)
	text.seen = make(map[int64]string) // handles share their type's name
	infos := make([]int64, 0, n)
	for range n {
		r := c.Sub(int(record))
		h := dump.Handle{Value: r.U64()}
		h.Type = text.utf16(int64(r.U32()), "a handle's type")
		h.Name = text.utf16(int64(r.U32()), "a handle's name")
		h.Attributes, h.Access, h.HandleCount, h.PointerCount = r.U32(), r.U32(), r.U32(), r.U32()
		info := int64(0)
		if record >= handle2Size-4 {
			info = int64(r.U32())
		}
		infos = append(infos, info)
		out = append(out, h)
	}
	for i := range out {
		out[i].Info = text.handleInfo(infos[i])
		out[i].State = objectState(out[i].Info)
	}
	return out, fs.done()
}

// handleInfo follows a chain of MINIDUMP_HANDLE_OBJECT_INFORMATION records.
func (t *texts) handleInfo(offset int64) []dump.HandleInfo {
	var out []dump.HandleInfo
	var visited [maxHandleInfos]int64
	for n := 0; offset != 0; n++ {
		for _, v := range visited[:n] {
			if v == offset {
				t.fs.errorf(dump.Cycle, offset, "a chain of object information returns to itself")
				return out
			}
		}
		if n == maxHandleInfos {
			t.fs.errorf(dump.Limit, offset, "a chain of object information has more than %d records", maxHandleInfos)
			return out
		}
		visited[n] = offset
		if !t.spend(offset, handleInfoHeader) { // many handles may share one chain
			return out
		}
		c, err := t.w.at(offset, handleInfoHeader)
		if err != nil {
			t.fail(err, "object information of a handle")
			return out
		}
		next, kind, size := int64(c.U32()), c.U32(), c.U32()
		data := t.blob(offset+handleInfoHeader, int(min(size, maxHandleInfoData)), "object information of a handle")
		out = append(out, dump.HandleInfo{Kind: kind, Data: append([]byte(nil), data...)})
		offset = next
	}
	return out
}

// HandleOperation is an AVRF_HANDLE_OPERATION (public avrfsdk.h): what
// Application Verifier recorded of a handle.
type HandleOperation struct {
	Handle              uint64
	ProcessID, ThreadID uint32
	Operation           uint32 // eHANDLE_TRACE_OPERATIONS: 1 open, 2 close, 3 bad reference
	BacktraceIndex      uint32
	Backtrace           []uint64 // return addresses, innermost first
}

// HandleOperations is the HandleOperationList stream.
type HandleOperations struct {
	EntrySize  uint32
	Operations []HandleOperation
}

// HandleOperationList returns the HandleOperationList stream.
func (f *File) HandleOperationList() (*HandleOperations, error) {
	return f.handleOps.get(f, (*File).decodeHandleOperations)
}

func (f *File) decodeHandleOperations() (*HandleOperations, *dump.Error) {
	c, fs := f.open(StreamHandleOperationList, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, record, count := c.U32(), c.U32(), c.U32()
	n := fs.table(c, header, record, 12, handleOpSize, uint64(count), noLimit)
	out := &HandleOperations{EntrySize: record, Operations: make([]HandleOperation, 0, n)}
	for range n {
		out.Operations = append(out.Operations, readHandleOperation(c.Sub(int(record))))
	}
	return out, fs.done()
}

func readHandleOperation(r *cursor.Cursor) HandleOperation {
	op := HandleOperation{Handle: r.U64(), ProcessID: r.U32(), ThreadID: r.U32(), Operation: r.U32()}
	r.Skip(4)
	depth := r.U32()
	op.BacktraceIndex = r.U32()
	for range min(depth, maxBacktrace, uint32(r.Left()/8)) {
		op.Backtrace = append(op.Backtrace, r.U64())
	}
	return op
}
