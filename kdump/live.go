package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// isLive recognises the live triage writer by how it lays out the file: the
// block table stands last, right before the end mark, with all data below it;
// nothing follows, and RequiredDumpSpace says the same size. The bugcheck writer
// puts the table before its data and appends secondary data. Newer kernels also
// set LiveDumpGeneratedDump.
func (f *File) isLive() bool {
	t := f.tri
	table := int64(t.blocks.off)
	end := table + int64(t.blocks.size)*blockSize
	if table == 0 || end != int64(t.validOffset) || int64(t.validOffset)+4 != int64(t.sizeOfDump) {
		return false
	}
	if !f.hdr.required.ok || f.hdr.required.v != uint64(t.sizeOfDump) {
		return false
	}
	for _, b := range f.blocks {
		if b.Off+int64(b.Size) > table {
			return false
		}
	}
	return f.size <= int64(t.sizeOfDump)
}

// statusMark ends the array of one NTSTATUS per requested thread: "TCSB".
const statusMark = 0x42534354

// maxStatus bounds the status array: the requester passes at most some dozens of
// threads.
const maxStatus = 4096

// ThreadStatus returns, for a live dump, the NTSTATUS of each thread that the
// requester asked for, in the order of the request: why some are missing. The
// dump does not say which thread was asked for at which place. Nil when the dump
// has no such list.
func (f *File) ThreadStatus() []uint32 {
	f.statusOnce.Do(f.readStatus)
	return f.status
}

func (f *File) readStatus() {
	if !f.live {
		return
	}
	const stream = "ThreadStatus"
	for i, b := range f.blocks {
		if i >= maxBlocks/16 {
			return
		}
		if b.Size < 8 || b.Size%4 != 0 || b.Size > 4*(maxStatus+1) {
			continue
		}
		var mark *cursor.Cursor
		f.ahead(func() { mark = cursor.At(f.r, f.size, b.Off+int64(b.Size)-4, 4, stream) })
		if field32(mark, 0) != statusMark {
			continue
		}
		c := cursor.At(f.r, f.size, b.Off, int64(b.Size), stream)
		for range b.Size/4 - 1 {
			f.status = append(f.status, c.U32())
		}
		if failed := failures(f.status); failed > 0 {
			e := dump.Errorf(dump.Limit, stream, "%d of %d requested threads were not captured by the kernel", failed, len(f.status))
			e.Warning = true
			f.damage(e)
		}
		return
	}
}

func failures(status []uint32) int {
	n := 0
	for _, s := range status {
		if s>>30 == 3 { // NT_ERROR
			n++
		}
	}
	return n
}
